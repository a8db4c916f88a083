#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "system/placement/binder.h"
#include "system/placement/machine.h"

/// Where ranks run: from the hardware threads that every rank of a job may use to the threads that
/// it starts and the cores they run on.
namespace cputrain::placement {

/// What one rank sends the others about the place it was given.
struct RankPlace {
  int rank = 0;
  std::string host;                         ///< any text
  std::string kernel;                       ///< as in Machine: a word
  int machine_cores = 0, machine_cpus = 0;  ///< the whole machine's: are there idle ones?
  int numa_nodes = 1;                       ///< the whole machine's
  double cpu_quota = 0;                     ///< for all ranks of the group together; 0: no limit
  std::uint64_t cpu_group = 0;              ///< as in Machine
  int team_limit = 0;                       ///< as in Machine
  std::string team_limited_by = "-";        ///< a word
  bool user_binds = false;  ///< OMP_PROC_BIND or the like is set: we keep our hands off
  Binder binder;
  std::vector<int> cpus;                      ///< hardware threads that the rank may run on
  std::vector<int> core_of_cpu, numa_of_cpu;  ///< by hardware thread

  bool operator==(const RankPlace&) const = default;
};

RankPlace place_of(int rank, const Machine&, bool user_binds, const Binder&);

/// One line of text for Communicator::gather, and back. Throws Error(internal) on other text.
std::string to_text(const RankPlace&);
RankPlace rank_place_from(std::string_view text);

/// What a person asked for; nothing means that the plan decides.
struct PlacementRequest {
  std::optional<int> threads;     ///< --threads, OMP_NUM_THREADS: of every rank
  std::optional<int> io_threads;  ///< --io-threads
  std::optional<bool> bind;       ///< --bind, --no-bind
};

/// What one rank is to do.
struct RankPlan {
  int rank = 0;
  std::string host;
  std::vector<int> cpus{};   ///< hardware threads for its computing threads, ascending
  std::vector<int> cores{};  ///< their cores, each once
  std::vector<int> numa{};   ///< their NUMA nodes, each once
  int threads = 1;           ///< that compute
  int held_back = 0;         ///< more that would, but for RankPlace::team_limit
  int input_threads = 1;     ///< that prepare images meanwhile
  bool bind = false;         ///< the rank must bind itself to `cpus`; else that is its mask already
  /// One core is kept free of computing threads, for a thread that communicates.
  bool communication_core = false;
  /// Where that thread can be bound; nothing where the rank is not bound either.
  std::optional<int> communication_cpu{};
};

/// The ranks of one machine, or of the whole job.
struct Placement {
  std::vector<RankPlan> ranks;  ///< in the order given
  /// "96 ranks x 1 thread on 48 cores (96 hardware threads)"; of a job one a distinct placement,
  /// with its hosts before it: "host a: 96 ranks x 1 thread ...".
  std::vector<std::string> lines;
  std::vector<std::string> warnings;  ///< what (why it matters); what to try
  std::vector<std::string> limits;    ///< the same of threads that are not to be had
  /// Threads of all ranks for each hardware thread, or CPU of quota; of the host that has most.
  double crowding = 0;

  /// By rank.
  std::vector<std::string> hosts() const;
};

/// Threads follow the cores that a rank was given: a rank with cores of its own gets one thread for
/// each; a core that several ranks may use counts for each of them as its part; what a control
/// group's quota takes away is taken from all alike. Every rank gets at least one thread, and no
/// more than OpenMP gives it, whatever was asked for. In a job of several hosts a rank with four
/// cores or more computes on all but one.
///
/// Ranks that share a mask are bound to parts of it (divide_cores()), where they are several, fill
/// the machine (other jobs could not get out of their way, nor they out of the others'), have room
/// in it, and were not bound otherwise. `request.bind` decides where the first two are open.
Placement plan_node(const std::vector<RankPlace>& ranks_of_this_node, const PlacementRequest&,
                    int hosts = 1);

/// The plan of the whole job, the same on every rank, from all ranks' to_text(), by rank, as
/// Communicator::gather returns it. Each warning is there once, with the hosts it is about; limits
/// are for every command that computes. `nodes` has the node of each rank, the machine whose memory
/// it shares: MPI says which, once for memory and cores. Names of hosts decide nothing, since
/// containers have names of their own, and machines may have the same. Nodes that one system runs,
/// by its boot id, get a warning where their threads are more than its cores.
Placement plan_job(const std::vector<std::string>& places, const std::vector<int>& nodes,
                   const PlacementRequest&);

/// Where ranks run: "rank 3 on a: cores 12-15 (NUMA node 0, hardware threads 12-15,60-63), 4
/// threads, 1 for input, bound". Ranks with the same place have one line, and so have more than a
/// few that have the cores one after the other: "ranks 0 to 95 on a: ...".
std::vector<std::string> map_of(const Placement&);

/// "0-3,8": numbers in ascending order as the kernel and taskset write them.
std::string range_text(const std::vector<int>& ascending);

/// Divides the hardware threads of one mask between the ranks that share it, in their order, by
/// their threads and cores for communication: whole cores while there are enough, then single
/// hardware threads, a core's two side by side. Ranks are spread over the NUMA nodes and stay
/// inside one where one has room. Plans must be new ones of that mask. False, and nothing is
/// divided, where the mask has too few of them.
bool divide_cores(const RankPlace& mask, const std::vector<RankPlan*>& ranks);

/// All ranks of a machine together.
struct MachineRanks {
  /// What a control group gives its ranks.
  struct Group {
    double quota = 0;  ///< CPUs of time; 0: no limit
    double cores = 0;  ///< that they could use without it; one that n ranks may use counts as 1/n
  };

  std::set<int> cpus;                ///< hardware threads that any rank may use
  std::map<int, int> ranks_on_core;  ///< how many ranks may run on each core
  std::map<std::uint64_t, Group> groups;
  double quota = 0;  ///< CPUs of all groups; 0: no limit
  int machine_cores = 0, machine_cpus = 0, numa_nodes = 1;
  bool one_core_each = true;
  bool user_binds = false;

  explicit MachineRanks(const std::vector<RankPlace>&);

  int cores() const { return static_cast<int>(ranks_on_core.size()); }
  int hardware_threads() const { return static_cast<int>(cpus.size()); }
  bool quota_binds() const { return quota > 0 && quota < cores(); }
  /// How many threads can compute at once.
  double capacity() const;
  /// Cores that this rank can call its own: one that n ranks may use counts as 1/n.
  int share(const RankPlace&) const;

 private:
  double part_of(const RankPlace&) const;
};

/// "2 ranks x 2 threads make 4 threads on 2 hardware threads (...)": what is wrong with too many.
std::string too_many_threads(const MachineRanks&, const std::vector<RankPlan>&);

/// What is said of a machine's plan, whose ranks are planned: its summary, limits and warnings.
void describe(const std::vector<RankPlace>&, const MachineRanks&, const PlacementRequest&,
              Placement& plan);

}  // namespace cputrain::placement
