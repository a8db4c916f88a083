#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/text.h"

namespace cputrain::weights {

/// Parts of a Keras configuration in the making.

inline std::string keras_network(const std::string& kind, const std::string& layers,
                                 const std::string& more = "") {
  return fmt::format(R"({{"class_name": "{}", "config": {{"layers": [{}]{}}}}})", kind, layers,
                     more);
}

/// `more` stands beside its configuration.
inline std::string keras_layer(const std::string& kind, const std::string& name,
                               const std::string& config = "", const std::string& more = "") {
  return fmt::format(R"({{"class_name": "{}", "config": {{"name": "{}"{}}}{}}})", kind, name,
                     config.empty() ? "" : ", " + config, more);
}

const std::string kKerasLinear = R"(, "activation": "linear")";

inline std::string keras_windows(const std::string& word, int size, int stride,
                                 const std::string& padding = "valid", int dilation = 1) {
  return fmt::format(R"("{}": [{}, {}], "strides": [{}, {}], "padding": "{}",
                        "dilation_rate": [{}, {}])",
                     word, size, size, stride, stride, padding, dilation, dilation);
}

/// What a layer of a functional network reads.
inline std::string keras_inbound(const std::vector<std::string>& names, bool keras2) {
  std::vector<std::string> tensors;
  for (const std::string& name : names) {
    tensors.push_back(keras2 ? fmt::format(R"(["{}", 0, 0, {{}}])", name)
                             : fmt::format(R"({{"class_name": "__keras_tensor__", "config":
                                               {{"keras_history": ["{}", 0, 0]}}}})",
                                           name));
  }
  const std::string all = join(tensors, ",");
  if (keras2) return fmt::format(R"(, "inbound_nodes": [[{}]])", all);
  return fmt::format(R"(, "inbound_nodes": [{{"args": [{}], "kwargs": {{}}}}])",
                     names.size() > 1 ? "[" + all + "]" : all);
}

}  // namespace cputrain::weights
