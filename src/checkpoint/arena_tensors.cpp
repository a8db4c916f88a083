#include "checkpoint/arena_tensors.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "loop/optimizer.h"

namespace cputrain::checkpoint {

using weights::safetensors::OutTensor;

bool all_parameters(const compute::Parameter&) { return true; }

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

TensorFile::TensorFile(const std::filesystem::path& path)
    : file_(weights::safetensors::open(path)) {}

void TensorFile::require(const std::string& name, const std::vector<std::size_t>& extents) {
  const weights::TensorInfo* const tensor = file_.find(name);
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
       "checkpoint file {} {} (the training cannot go on from it); use another checkpoint",
       file_.path().string(), printable(what));
}

}  // namespace cputrain::checkpoint
