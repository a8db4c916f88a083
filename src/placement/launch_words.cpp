#include "placement/launch_words.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "placement/launcher_gone.h"

namespace cputrain::placement {
namespace {

/// A process' command as /proc/PID/cmdline has it: words that end with a zero.
std::vector<std::string> command_of(pid_t process, const std::filesystem::path& proc) {
  std::ifstream file(proc / std::to_string(process) / "cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string file_name(const std::string& word) {
  return std::filesystem::path(word).filename().string();
}

std::string name_of(const std::vector<std::string>& command) {
  return command.empty() ? "" : file_name(command.front());
}

/// What people type; orted, prted and hydra_pmi_proxy are started by these.
bool is_typed(std::string_view name) {
  return name.starts_with("mpirun") || name.starts_with("mpiexec") || name == "orterun" ||
         name == "prterun";
}

/// Those before the program; none where they are not those of all ranks.
std::vector<std::string> words_before(std::vector<std::string> command,
                                      const std::string& program) {
  const bool several = std::ranges::find(command, ":") != command.end();
  const auto at = std::ranges::find(command, program, file_name);
  if (several || program.empty() || at == command.end()) return {};
  command.erase(at, command.end());
  if (name_of(command) == "prterun") command.front() = "mpirun";  // which Open MPI 5 becomes
  return command;
}

}  // namespace

std::vector<std::string> launch_words(int ranks, pid_t process, const std::filesystem::path& proc) {
  if (ranks == 1) return {};
  constexpr int kMostLaunchers = 3;  // one above the other
  const std::string count = std::to_string(ranks);
  auto launcher = find_launcher(process, proc);
  for (int i = 0; launcher && i < kMostLaunchers; ++i) {
    const std::vector<std::string> command = command_of(launcher->id, proc);
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
