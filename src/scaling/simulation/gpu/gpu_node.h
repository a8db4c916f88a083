#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cputrain::simulation {

class JsonObject;

/// The GPUs of a node, and what joins them with each other and with the host. All are alike.
struct GpuNode {
  std::string name;  ///< as costs call it: "H100"
  int per_node = 1;
  double memory_gb = 0;  ///< of each, 1e9 bytes
  /// What each GPU sends and receives at the same time in a ring of the node: the bus bandwidth of
  /// NCCL's tests.
  double ring_gbs = 0;
  double hop_us = 0;        ///< of each step of a ring
  double sum_us = 0;        ///< of each sum, however many GPUs
  double host_gbs = 0;      ///< from pinned memory to one GPU
  double all_host_gbs = 0;  ///< to all GPUs of the node at the same time
};

GpuNode gpu_node_from(const JsonObject&);
nlohmann::ordered_json to_json(const GpuNode&);

}  // namespace cputrain::simulation
