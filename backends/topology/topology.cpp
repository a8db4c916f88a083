#include "backends/topology/topology.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

#include "backends/topology/cpu_info.h"
#include "backends/topology/openmp.h"
#include "core/casts.h"
#include "core/error.h"
#include "system/file_system.h"
#include "system/limits/control_group.h"

namespace cputrain::topology {

namespace {

void check(int result, const char* call) {
  if (result < 0) {
    fail(ExitCode::internal, std::string(call) +
                                 " failed (threads cannot be placed without knowing the cores); "
                                 "check that /sys is mounted");
  }
}

/// hwloc's tree of this machine: only what this process's container lets it see.
class LoadedTree final {
 public:
  LoadedTree() {
    check(hwloc_topology_init(&tree_), "hwloc_topology_init");
    check(hwloc_topology_load(tree_), "hwloc_topology_load");
  }
  ~LoadedTree() { hwloc_topology_destroy(tree_); }
  LoadedTree(const LoadedTree&) = delete;
  LoadedTree& operator=(const LoadedTree&) = delete;

  hwloc_topology_t tree() const { return tree_; }

 private:
  hwloc_topology_t tree_ = nullptr;
};

int count(hwloc_topology_t tree, hwloc_obj_type_t type) {
  return std::max(0, hwloc_get_nbobjs_by_type(tree, type));
}

/// The mask of the calling thread.
std::vector<int> bound_cpus(hwloc_topology_t tree) {
  const hwloc_bitmap_t set = hwloc_bitmap_alloc();
  const int result = hwloc_get_cpubind(tree, set, HWLOC_CPUBIND_THREAD);
  std::vector<int> cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) {
    cpus.push_back(cpu);
  }
  hwloc_bitmap_free(set);
  check(result, "hwloc_get_cpubind");
  return cpus;
}

/// The core of a hardware thread, by the first of its threads: hwloc's own number counts those
/// alone that this container may use, and others may be another's. A thread is a core where hwloc
/// knows none.
int core_of(hwloc_topology_t tree, int cpu) {
  hwloc_obj_t object = hwloc_get_pu_obj_by_os_index(tree, static_cast<unsigned>(cpu));
  while (object != nullptr && object->type != HWLOC_OBJ_CORE) object = object->parent;
  return object != nullptr ? hwloc_bitmap_first(object->complete_cpuset) : cpu;
}

/// The NUMA node beside a hardware thread (the first, where fast and large memory are two).
int numa_of(const hwloc_obj* hardware_thread) {
  if (hardware_thread == nullptr || hardware_thread->nodeset == nullptr) return 0;
  return std::max(0, hwloc_bitmap_first(hardware_thread->nodeset));
}

/// NUMA nodes that have hardware threads; others are memory alone.
int numa_nodes(hwloc_topology_t tree) {
  std::set<int> nodes;
  for (hwloc_obj_t thread = nullptr;
       (thread = hwloc_get_next_obj_by_type(tree, HWLOC_OBJ_PU, thread)) != nullptr;) {
    nodes.insert(numa_of(thread));
  }
  return std::max(1, to_int(nodes.size()));
}

/// "L2 1024 KiB x 2": the first of a level and how many there are.
std::vector<std::string> read_caches(hwloc_topology_t tree) {
  struct Level {
    hwloc_obj_type_t type;
    const char* name;
  };
  constexpr std::array<Level, 4> kLevels{{{HWLOC_OBJ_L1CACHE, "L1"},
                                          {HWLOC_OBJ_L2CACHE, "L2"},
                                          {HWLOC_OBJ_L3CACHE, "L3"},
                                          {HWLOC_OBJ_L4CACHE, "L4"}}};
  std::vector<std::string> caches;
  for (const Level& level : kLevels) {
    const int found = count(tree, level.type);
    if (found == 0) continue;
    const hwloc_obj_t first = hwloc_get_obj_by_type(tree, level.type, 0);
    caches.push_back(std::string(level.name) + " " + std::to_string(first->attr->cache.size >> 10) +
                     " KiB" + (found > 1 ? " x " + std::to_string(found) : ""));
  }
  return caches;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data()
                                                                           : "localhost";
}

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

}  // namespace

placement::Machine machine_of(hwloc_topology_t tree, const std::vector<int>& allowed_cpus) {
  placement::Machine machine;
  machine.sockets = std::max(1, count(tree, HWLOC_OBJ_PACKAGE));
  machine.numa_nodes = numa_nodes(tree);
  machine.hardware_threads = count(tree, HWLOC_OBJ_PU);
  machine.cores = count(tree, HWLOC_OBJ_CORE);
  if (machine.cores == 0) machine.cores = machine.hardware_threads;
  machine.memory_gb = to_double(hwloc_get_root_obj(tree)->total_memory) / 1e9;
  machine.cpu_id.cores = machine.cores;
  machine.cpu_id.caches = read_caches(tree);
  machine.allowed_cpus = allowed_cpus;
  for (const int cpu : allowed_cpus) {
    machine.core_of_cpu.push_back(core_of(tree, cpu));
    machine.numa_of_cpu.push_back(
        numa_of(hwloc_get_pu_obj_by_os_index(tree, static_cast<unsigned>(cpu))));
  }
  machine.allowed_cores =
      to_int(std::set<int>(machine.core_of_cpu.begin(), machine.core_of_cpu.end()).size());
  return machine;
}

placement::Machine read_machine() {
  const LoadedTree loaded;
  const system::GroupLimits limits = system::read_group_limits("/");
  const std::string cpuinfo = system::text_in("/proc/cpuinfo");
  const std::vector<int> by_openmp = openmp_cpus();
  placement::Machine machine =
      machine_of(loaded.tree(), by_openmp.empty() ? bound_cpus(loaded.tree()) : by_openmp);
  machine.host = host_name();
  machine.kernel = boot_id();
  machine.cpu_model = cpu_model(cpuinfo);
  placement::CpuId id = cpu_id(cpuinfo);
  id.cores = machine.cores;
  id.caches = std::move(machine.cpu_id.caches);
  machine.cpu_id = std::move(id);
  machine.instruction_set = instruction_set(cpuinfo);
  // A virtual machine may be given memory as it uses it; its NUMA nodes have what is there by now.
  machine.memory_gb =
      std::max(machine.memory_gb, total_memory(system::text_in("/proc/meminfo")) / 1e9);
  if (limits.memory_bytes > 0) {
    machine.memory_gb = std::min(machine.memory_gb, limits.memory_bytes / 1e9);
  }
  machine.cpu_quota = limits.cpus;
  machine.cpu_group = limits.cpu_group;
  const TeamLimit team = openmp_team_limit();
  machine.team_limit = team.threads;
  machine.team_limited_by = team.named;
  machine.openmp_binds = openmp_binds();
  return machine;
}

}  // namespace cputrain::topology
