#include "training/run/train_on_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/shell_words.h"
#include "training/session/typed_command.h"

namespace cputrain::training {
namespace {

/// Whether a flag belongs to one start, and not to the training.
bool is_of_this_start(const std::string& flag) {
  constexpr std::string_view kFlags[] = {"resume",  "out",     "overwrite",
                                         "weights", "partial", "end-with"};
  return std::ranges::find(kFlags, flag) != std::end(kFlags);
}

/// "runs/first-2", which is not there yet.
std::string new_folder(const std::filesystem::path& run) {
  const std::string name = (run.has_filename() ? run : run.parent_path()).string();
  std::error_code ignored;
  int number = 2;
  while (std::filesystem::exists(fmt::format("{}-{}", name, number), ignored)) ++number;
  return fmt::format("{}-{}", name, number);
}

bool is_another_network(const std::string& row) {
  return row.starts_with("model: ") || row.starts_with("network: ") || row.starts_with("classes: ");
}

}  // namespace

std::string train_on_advice(const Session& session, const TrainingSpec& spec,
                            const std::vector<std::string>& differences,
                            const std::filesystem::path& weights,
                            const std::filesystem::path& run) {
  if (differences.empty() || std::ranges::any_of(differences, is_another_network)) return "";
  std::vector<std::string> words = typed_command(
      session, spec.flags, [](const std::string& flag) { return !is_of_this_start(flag); });
  words.insert(words.end(), {"--weights", weights.string(), "--out", new_folder(run)});
  return "; to begin a new training with its weights and these flags: " + command_line(words);
}

}  // namespace cputrain::training
