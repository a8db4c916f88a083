#include "training/session/typed_command.h"

#include <unistd.h>

#include "system/placement/launch_words.h"

namespace cputrain::training {

std::vector<std::string> typed_command(const Session& session, const TrainingFlags& flags,
                                       const std::function<bool(const std::string& flag)>& wanted) {
  std::vector<std::string> words =
      placement::launch_words(session.communicator->size(), ::getpid());
  words.push_back(flags.program);
  words.insert(words.end(), flags.task.typed.begin(), flags.task.typed.end());
  for (const auto& [flag, value] : flags.given) {
    if (wanted && !wanted(flag)) continue;
    words.push_back("--" + flag);
    if (!flags.switches.contains(flag)) words.push_back(value);
  }
  return words;
}

}  // namespace cputrain::training
