#include "placement/launch_words.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "placement/launcher_gone.h"

namespace cputrain::placement {
namespace {

using Command = std::vector<std::string>;

/// A process' command as /proc/PID/cmdline has it: words that end with a zero.
Command command_of(pid_t process, const std::filesystem::path& proc) {
  std::ifstream file(proc / std::to_string(process) / "cmdline", std::ios::binary);
  Command words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string file_name(const std::string& word) {
  return std::filesystem::path(word).filename().string();
}

std::string name_of(const Command& command) {
  return command.empty() ? "" : file_name(command.front());
}

/// What people type; orted, prted and hydra_pmi_proxy are started by these.
bool is_typed(std::string_view name) {
  return name.starts_with("mpirun") || name.starts_with("mpiexec") || name == "orterun" ||
         name == "prterun";
}

/// Names of variables stay, and their values go: they may be secrets, and these words get into
/// files that people share. mpirun and Hydra take values from the environment where only names are
/// given.
Command without_values(const Command& command) {
  Command kept;
  for (auto word = command.begin(); word != command.end(); ++word) {
    const auto left = command.end() - word;
    if (*word == "-x" && left > 1) {
      kept.push_back(*word++);
      kept.push_back(word->substr(0, word->find('=')));
    } else if ((*word == "-env" || *word == "-genv") && left > 2) {
      kept.push_back(*word++ + "list");
      kept.push_back(*word++);
    } else {
      kept.push_back(*word);
    }
  }
  return kept;
}

/// Those before the program; none where they are not those of all ranks.
Command words_before(Command command, const std::string& program) {
  const bool several = std::ranges::find(command, ":") != command.end();
  const auto at = std::ranges::find(command, program, file_name);
  if (several || program.empty() || at == command.end()) return {};
  command.erase(at, command.end());
  if (name_of(command) == "prterun") command.front() = "mpirun";  // which Open MPI 5 becomes
  return without_values(command);
}

}  // namespace

std::vector<std::string> launch_words(int ranks, pid_t process, const std::filesystem::path& proc) {
  if (ranks == 1) return {};
  constexpr int kMostLaunchers = 3;  // one above the other
  const std::string count = std::to_string(ranks);
  auto launcher = find_launcher(process, proc);
  for (int i = 0; launcher && i < kMostLaunchers; ++i) {
    const Command command = command_of(launcher->id, proc);
    const std::string name = name_of(command);
    if (i == 0 && name.starts_with("slurmstepd")) return {"srun", "-n", count};
    if (is_typed(name)) {
      auto words = words_before(command, name_of(command_of(process, proc)));
      if (!words.empty()) return words;
      break;
    }
    launcher = find_launcher(launcher->id, proc);
  }
  return {"mpirun", "-np", count};
}

}  // namespace cputrain::placement
