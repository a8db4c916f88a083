#include "training/run/machine_json.h"

#include <nlohmann/json.hpp>

namespace cputrain::training {

nlohmann::ordered_json machine_json(const placement::Machine& m) {
  return {{"host", m.host},
          {"cpu", m.cpu_model},
          {"cpu_id", to_json(m.cpu_id)},
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

nlohmann::ordered_json placement_json(const placement::JobPlacement& job) {
  nlohmann::ordered_json map = nlohmann::ordered_json::array();
  for (const placement::RankPlan& plan : job.ranks) {
    nlohmann::ordered_json rank{{"rank", plan.rank},
                                {"host", plan.host},
                                {"cores", plan.cores},
                                {"numa_nodes", plan.numa},
                                {"hardware_threads", plan.cpus},
                                {"threads", plan.threads},
                                {"input_threads", plan.input_threads},
                                {"bound", plan.bind},
                                {"communication_core", plan.communication_core}};
    if (plan.communication_cpu) rank["communication_hardware_thread"] = *plan.communication_cpu;
    map.push_back(std::move(rank));
  }
  return map;
}

}  // namespace cputrain::training
