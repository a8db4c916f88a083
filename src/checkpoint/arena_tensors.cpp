#include "checkpoint/arena_tensors.h"

#include <fmt/format.h>

#include <cassert>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "loop/optimizer.h"

namespace cputrain::checkpoint {

using weights::safetensors::OutTensor;

bool all_parameters(const compute::Parameter&) { return true; }
bool learnt_parameters(const compute::Parameter& parameter) { return parameter.learnt; }
bool averaged_parameters(const compute::Parameter& parameter) { return parameter.averaged; }

Chosen kept_by(std::string_view state) {
  const bool averages = state == loop::kAverageName;
  return [averages](const compute::Parameter& parameter) {
    return parameter.learnt || (averages && parameter.averaged);
  };
}

std::string state_tensor_name(std::string_view parameter, std::string_view state) {
  return fmt::format("{}/{}", parameter, state);
}

std::size_t count_of(const compute::Program& program, const Chosen& chosen) {
  std::size_t count = 0;
  for (const compute::Parameter& p : program.layout().parameters) count += chosen(p) ? p.count : 0;
  return count;
}

namespace {

/// All that canonical(parameter) returns, one behind the other.
template <class T, class F>
std::vector<T> joined(const compute::Program& program, const Chosen& chosen, const F& canonical) {
  std::vector<T> all;
  all.reserve(count_of(program, chosen));
  const auto& parameters = program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!chosen(parameters[p])) continue;
    const std::vector<T> values = canonical(p);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

std::vector<double> numbers_of(const compute::Program& program, const Array& arena,
                               const Chosen& chosen) {
  return joined<double>(program, chosen,
                        [&](std::size_t p) { return program.parameters().to_canonical(p, arena); });
}

std::vector<float> floats_of(const compute::Program& program, const Array& arena,
                             const Chosen& chosen) {
  return joined<float>(program, chosen, [&](std::size_t p) {
    return program.parameters().to_canonical_floats(p, arena);
  });
}

void put_numbers(const compute::Program& program, std::span<const double> numbers,
                 const Array& arena, const Chosen& chosen) {
  const auto& parameters = program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!chosen(parameters[p])) continue;
    program.parameters().from_canonical(p, numbers.first(parameters[p].count), arena);
    numbers = numbers.subspan(parameters[p].count);
  }
  assert(numbers.empty());
}

void add_tensors(std::vector<OutTensor>& tensors, const compute::Program& program,
                 const Array& arena, const Chosen& chosen,
                 const std::function<std::string(const std::string&)>& name) {
  const auto& parameters = program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!chosen(parameters[p])) continue;
    OutTensor tensor{
        name(parameters[p].name), {parameters[p].extents.begin(), parameters[p].extents.end()}, {}};
    if (arena.dtype == DType::f64) {
      tensor.doubles = [&program, arena, p] { return program.parameters().to_canonical(p, arena); };
    } else {
      tensor.values = [&program, arena, p] {
        return program.parameters().to_canonical_floats(p, arena);
      };
    }
    tensors.push_back(std::move(tensor));
  }
}

OutTensor tensor_of(std::string name, std::vector<std::size_t> extents, DType dtype,
                    std::function<std::vector<double>()> numbers) {
  OutTensor tensor{std::move(name), std::move(extents), {}};
  if (dtype == DType::f64) {
    tensor.doubles = std::move(numbers);
  } else {
    tensor.values = [numbers = std::move(numbers)] {
      const std::vector<double> doubles = numbers();
      return std::vector<float>(doubles.begin(), doubles.end());
    };
  }
  return tensor;
}

TensorFile::TensorFile(std::filesystem::path path) : file_(std::move(path)) {}

void TensorFile::require(const std::string& name, const std::vector<std::size_t>& extents) {
  const weights::safetensors::TensorInfo* const tensor = file_.find(name);
  if (!tensor) wrong("has no tensor " + name);
  if (tensor->dtype != "F32" && tensor->dtype != "F64") {
    wrong(fmt::format("has tensor {} of type {}, not F32 or F64", name, tensor->dtype));
  }
  if (tensor->extents != extents) {
    wrong(fmt::format("has tensor {} of shape [{}], not [{}]", name,
                      fmt::join(tensor->extents, ", "), fmt::join(extents, ", ")));
  }
  required_.insert(name);
}

void TensorFile::require_no_others() const {
  for (const auto& tensor : file_.tensors()) {
    if (!required_.contains(tensor.name)) {
      wrong(fmt::format("has a tensor {}, which this training does not know", tensor.name));
    }
  }
}

void TensorFile::wrong(const std::string& what) const {
  fail(ExitCode::data,
       fmt::format("checkpoint file {} {} (the training cannot go on from it); use another "
                   "checkpoint",
                   file_.path().string(), printable(what)));
}

}  // namespace cputrain::checkpoint
