#include "backends/topology/topology.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>

#include "backends/topology/control_group.h"
#include "backends/topology/cpu_info.h"
#include "backends/topology/openmp_places.h"
#include "core/error.h"

namespace cputrain {

namespace {

void check(int result, const char* call) {
  if (result < 0) {
    fail(ExitCode::internal, std::string(call) +
                                 " failed (threads cannot be placed without knowing the cores); "
                                 "check that /sys is mounted");
  }
}

/// hwloc's tree of this machine: only what this process's container lets it see.
class Topology final {
 public:
  Topology() {
    check(hwloc_topology_init(&tree_), "hwloc_topology_init");
    check(hwloc_topology_load(tree_), "hwloc_topology_load");
  }
  ~Topology() { hwloc_topology_destroy(tree_); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  hwloc_topology_t tree() const { return tree_; }
  int count(hwloc_obj_type_t type) const {
    return std::max(0, hwloc_get_nbobjs_by_type(tree_, type));
  }

 private:
  hwloc_topology_t tree_ = nullptr;
};

/// The mask of the calling thread.
std::vector<int> bound_cpus(const Topology& topology) {
  const hwloc_bitmap_t set = hwloc_bitmap_alloc();
  const int result = hwloc_get_cpubind(topology.tree(), set, HWLOC_CPUBIND_THREAD);
  std::vector<int> cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) {
    cpus.push_back(cpu);
  }
  hwloc_bitmap_free(set);
  check(result, "hwloc_get_cpubind");
  return cpus;
}

/// The core of a hardware thread; a number of its own where hwloc knows no cores.
int core_of(const Topology& topology, int cpu) {
  hwloc_obj_t object = hwloc_get_pu_obj_by_os_index(topology.tree(), static_cast<unsigned>(cpu));
  while (object != nullptr && object->type != HWLOC_OBJ_CORE) object = object->parent;
  return object != nullptr ? static_cast<int>(object->logical_index)
                           : topology.count(HWLOC_OBJ_CORE) + cpu;
}

/// "L2 1024 KiB x 2": the first of a level and how many there are.
std::vector<std::string> read_caches(const Topology& topology) {
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
    const int count = topology.count(level.type);
    if (count == 0) continue;
    const hwloc_obj_t first = hwloc_get_obj_by_type(topology.tree(), level.type, 0);
    caches.push_back(std::string(level.name) + " " + std::to_string(first->attr->cache.size >> 10) +
                     " KiB" + (count > 1 ? " x " + std::to_string(count) : ""));
  }
  return caches;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data()
                                                                           : "localhost";
}

std::string read_file(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Machine read_machine() {
  const Topology topology;
  const GroupLimits limits = read_group_limits("/");
  const std::string cpuinfo = read_file("/proc/cpuinfo");
  Machine machine;
  machine.host = host_name();
  machine.cpu_model = cpu_model(cpuinfo);
  machine.instruction_set = instruction_set(cpuinfo);
  machine.sockets = std::max(1, topology.count(HWLOC_OBJ_PACKAGE));
  machine.numa_nodes = std::max(1, topology.count(HWLOC_OBJ_NUMANODE));
  machine.hardware_threads = topology.count(HWLOC_OBJ_PU);
  machine.cores = topology.count(HWLOC_OBJ_CORE);
  if (machine.cores == 0) machine.cores = machine.hardware_threads;
  const auto memory = static_cast<double>(hwloc_get_root_obj(topology.tree())->total_memory);
  machine.memory_gb =
      (limits.memory_bytes > 0 ? std::min(memory, limits.memory_bytes) : memory) / 1e9;
  machine.caches = read_caches(topology);
  machine.cpu_quota = limits.cpus;
  machine.allowed_cpus = openmp_cpus();
  if (machine.allowed_cpus.empty()) machine.allowed_cpus = bound_cpus(topology);
  for (int cpu : machine.allowed_cpus) machine.core_of_cpu.push_back(core_of(topology, cpu));
  machine.allowed_cores = static_cast<int>(
      std::set<int>(machine.core_of_cpu.begin(), machine.core_of_cpu.end()).size());
  return machine;
}

}  // namespace cputrain
