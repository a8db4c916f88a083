#include "system/placement/launch_words.h"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "system/placement/launcher_gone.h"

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

/// "A" of "A=b".
std::string name_in(const std::string& setting) { return setting.substr(0, setting.find('=')); }

/// "x" of "-x" and "--x"; empty where the word is no flag.
std::string flag_in(const std::string& word) {
  const bool is_flag = word.starts_with('-') && word.find_first_not_of('-') != word.npos;
  return is_flag ? word.substr(word.find_first_not_of('-')) : "";
}

/// Names of variables stay, and their values go: they may be secrets, and these words get into
/// files that people share. mpirun and Hydra take values from the environment where only names are
/// given. Hydra has "-genv A b" and "-genv A=b".
Command without_values(const Command& command) {
  Command kept;
  bool below_env = false;  // env A=b cputrain
  for (auto word = command.begin(); word != command.end(); ++word) {
    const std::string flag = flag_in(*word);
    const auto more = command.end() - word - 1;
    if ((flag == "x" || *word == "mca_base_env_list") && more > 0) {
      kept.push_back(*word++);
      kept.push_back(name_in(*word));
    } else if ((flag == "env" || flag == "genv") && more > 0) {
      kept.push_back(*word++ + "list");
      kept.push_back(name_in(*word));
      if (kept.back() == *word && more > 1) ++word;
    } else if (!below_env || !flag.empty() || name_in(*word) == *word) {
      kept.push_back(*word);
    }
    below_env = below_env || file_name(*word) == "env";
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
