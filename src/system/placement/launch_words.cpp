#include "system/placement/launch_words.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string_view>

#include "system/placement/launcher.h"

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

/// Cores of each rank, at least one.
int cores_each(const LaunchHost& host, int ranks) { return std::max(1, host.cores / ranks); }

bool fits_numa(const LaunchHost& host, int ranks) {
  return host.numa_nodes > 1 && ranks % host.numa_nodes == 0 && host.cores % host.numa_nodes == 0;
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

std::string mpirun_options(const LaunchHost& host, int ranks) {
  const std::string np = "-np " + std::to_string(ranks);
  const bool quota = host.cpu_quota > 0 && host.cpu_quota < host.cores;
  if (ranks > host.hardware_threads) return np + " --oversubscribe --bind-to none";
  if (ranks > host.cores) return np + " --use-hwthread-cpus --bind-to hwthread";
  if (quota) return np + " --bind-to none";
  if (ranks == host.cores) return np + " --bind-to core";
  const std::string each = ":PE=" + std::to_string(cores_each(host, ranks));
  if (fits_numa(host, ranks)) {
    return np + " --map-by ppr:" + std::to_string(ranks / host.numa_nodes) + ":numa" + each +
           " --bind-to core";
  }
  return np + " --map-by slot" + each + " --bind-to core";
}

std::string mpirun_options(const LaunchHost& host, int ranks, int threads) {
  const std::string np = "-np " + std::to_string(ranks);
  const std::string each = ":PE=" + std::to_string(threads);
  const int cpus = ranks * threads;
  const bool quota = host.cpu_quota > 0 && host.cpu_quota < host.cores;
  if (cpus > host.hardware_threads) return np + " --oversubscribe --bind-to none";
  if (quota) return np + (ranks > host.cores ? " --oversubscribe" : "") + " --bind-to none";
  if (cpus > host.cores) {
    const std::string map = threads == 1 ? "" : " --map-by slot" + each;
    return np + " --use-hwthread-cpus" + map + " --bind-to hwthread";
  }
  if (fits_numa(host, ranks) && cpus / host.numa_nodes <= host.cores / host.numa_nodes) {
    return np + " --map-by ppr:" + std::to_string(ranks / host.numa_nodes) + ":numa" + each +
           " --bind-to core";
  }
  return np + (threads == 1 ? "" : " --map-by slot" + each) + " --bind-to core";
}

std::vector<LaunchLine> launch_lines(const LaunchHost& host, bool as_root, bool mpi) {
  const std::string program = "./cputrain ...";
  const bool quota = host.cpu_quota > 0 && host.cpu_quota < host.cores;
  const int cores =
      quota ? std::max(1, static_cast<int>(std::floor(host.cpu_quota))) : std::max(1, host.cores);
  if (!mpi || cores == 1) return {{program, "one process on all cores"}};
  const auto line = [&](int ranks) {
    return std::string("mpirun ") + (as_root ? "--allow-run-as-root " : "") +
           mpirun_options(host, ranks) + " " + program;
  };
  std::vector<LaunchLine> lines;
  lines.push_back({line(cores), quota ? "one rank for each CPU of the control group's quota"
                                      : "one rank a physical core"});
  if (!quota && host.hardware_threads > host.cores) {
    lines.push_back({line(host.hardware_threads), "one rank a hardware thread"});
  }
  if (!quota && host.numa_nodes > 1 && host.numa_nodes < host.cores) {
    lines.push_back({line(host.numa_nodes), "one rank a NUMA node, with threads"});
  }
  lines.push_back({program, "one process with a thread a core"});
  return lines;
}

}  // namespace cputrain::placement
