#include "training/request/backend_words.h"

#include <algorithm>

#include "core/precision.h"

namespace cputrain::training {

bool is_device(const std::string& backend) {
  const auto named = [&](std::string_view word) { return backend.find(word) != std::string::npos; };
  constexpr std::array<std::string_view, 3> kOfOthers{"gpu", "nccl", "rocm"};  // in other tables
  return std::ranges::any_of(kDeviceBackends, named) || std::ranges::any_of(kOfOthers, named);
}

std::string precision_in_figures(const std::string& backend, std::string_view precision) {
  if (precision != word_of(Precision::f32)) return std::string(precision);
  return is_device(backend) ? "tf32" : "";
}

std::string backend_in_figures(const std::string& backend, std::string_view precision) {
  const std::string word = precision_in_figures(backend, precision);
  return backend + (backend.empty() || word.empty() ? "" : " ") + word;
}

}  // namespace cputrain::training
