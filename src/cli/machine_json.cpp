#include "cli/machine_json.h"

#include <nlohmann/json.hpp>

namespace cputrain {

nlohmann::ordered_json machine_json(const Machine& m) {
  return {{"host", m.host},
          {"cpu", m.cpu_model},
          {"instruction_set", m.instruction_set},
          {"sockets", m.sockets},
          {"numa_nodes", m.numa_nodes},
          {"cores", m.cores},
          {"hardware_threads", m.hardware_threads},
          {"allowed_cores", m.allowed_cores},
          {"allowed_hardware_threads", m.allowed_cpus.size()},
          {"cpu_quota", m.cpu_quota},
          {"caches", m.caches},
          {"memory_gb", m.memory_gb}};
}

}  // namespace cputrain
