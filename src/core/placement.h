#pragma once

#include <string>
#include <vector>

namespace cputrain {

/// One machine as a rank sees it.
struct Machine {
  std::string host;
  std::string cpu_model;
  std::string instruction_set;  ///< "AVX-512 (bf16, VNNI)", "AVX2", ...
  int sockets = 0, numa_nodes = 0;
  int cores = 0, hardware_threads = 0;  ///< of the whole machine
  double memory_gb = 0;
  std::vector<std::string> caches;  ///< "L2 1024 KiB", one line a level
  std::vector<int> allowed_cpus;    ///< hardware threads this process may run on
  int allowed_cores = 0;            ///< physical cores among them
};

}  // namespace cputrain
