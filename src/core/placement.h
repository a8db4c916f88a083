#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Who may run where. Hardware threads are numbered as the operating system does; a core has one
/// or two of them, which share its vector units, so cores are what arithmetic is planned by.
namespace cputrain {

/// One machine as a rank sees it.
struct Machine {
  std::string host;
  std::string cpu_model;
  std::string instruction_set;  ///< "AVX-512 (bf16, VNNI)", "AVX2", ...
  int sockets = 0, numa_nodes = 0;
  int cores = 0,
      hardware_threads = 0;         ///< of the whole machine, or of the container it seems to be
  double memory_gb = 0;             ///< 1e9 bytes; less where a control group allows less
  std::vector<std::string> caches;  ///< "L2 1024 KiB", one line a level
  std::vector<int> allowed_cpus;    ///< hardware threads this process may run on
  std::vector<int> core_of_cpu;     ///< the core of each of them, as a number
  int allowed_cores = 0;            ///< physical cores among them
  double cpu_quota = 0;  ///< CPUs' worth of time that the control group allows; 0: no limit
};

/// What one rank tells the others about the place it was given.
struct RankPlace {
  int rank = 0;
  std::string host;
  int machine_cores = 0;  ///< what the whole machine has: are there idle ones?
  double cpu_quota = 0;   ///< for all ranks of the machine together; 0: no limit
  std::vector<int> cpus;  ///< hardware threads that the rank may run on
  std::vector<int> core_of_cpu;

  bool operator==(const RankPlace&) const = default;
};

RankPlace place_of(int rank, const Machine&);

/// One line of text for Communicator::gather, and back. Throws Error(internal) on other text.
std::string to_text(const RankPlace&);
RankPlace rank_place_from(std::string_view text);

/// The threads of the ranks of one machine.
struct Placement {
  std::vector<int> threads;           ///< for each rank, in the order given
  std::vector<std::string> warnings;  ///< what (why it matters); what to try
  std::string summary;                ///< "96 ranks x 1 thread on 48 cores (96 hardware threads)"
};

/// Threads follow the cores that a rank was given: a rank with cores of its own gets one thread for
/// each; a core that several ranks may use counts for each of them as its part; what a control
/// group's quota takes away is taken from all alike. Every rank gets at least one thread.
/// `asked_threads` (--threads, OMP_NUM_THREADS) wins over all that.
Placement plan_threads(const std::vector<RankPlace>& ranks_of_this_node,
                       std::optional<int> asked_threads);

/// The plan of the whole job, the same on every rank.
struct JobPlacement {
  std::vector<int> threads;        ///< by rank
  std::vector<std::string> lines;  ///< one a distinct placement: "host a: 96 ranks x 1 thread ..."
  std::vector<std::string> warnings;  ///< each once, with the hosts it is about
};

/// From everybody's to_text(), by rank, as Communicator::gather returns it.
JobPlacement plan_job(const std::vector<std::string>& places, std::optional<int> asked_threads);

}  // namespace cputrain
