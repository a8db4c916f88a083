#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compute/program.h"
#include "weights/safetensors.h"

/// Arenas as tensors of a file, in canonical layout, each number as the same bits: floats as F32,
/// doubles as F64.
namespace cputrain::checkpoint {

/// Which of a program's parameters.
using Chosen = std::function<bool(const compute::Parameter&)>;
bool all_parameters(const compute::Parameter&);

/// Numbers of all of them, one after the other.
std::size_t count_of(const compute::Program&, const Chosen&);
/// These numbers, of an arena in the backend's layout, in model order.
std::vector<double> numbers_of(const compute::Program&, const Array& arena, const Chosen&);
/// The same as floats.
std::vector<float> floats_of(const compute::Program&, const Array& arena, const Chosen&);

/// A file of a checkpoint, of which every tensor is asked for. It may be hostile.
class TensorFile {
 public:
  /// Error(data).
  explicit TensorFile(const std::filesystem::path&);

  /// Error(data) where it lacks such a tensor, or has one of another shape or type than F32 and
  /// F64.
  void require(const std::string& name, const std::vector<std::size_t>& extents);
  bool has(const std::string& name) const { return file_.find(name) != nullptr; }
  /// Error(data) where a tensor was not required.
  void require_no_others() const;

  /// The numbers of a tensor that was required. Error(data).
  std::vector<double> read(const std::string& name) const { return file_.read(*file_.find(name)); }
  const weights::TensorFile& file() const { return file_; }
  [[noreturn]] void wrong(const std::string& what) const;

 private:
  weights::TensorFile file_;
  std::set<std::string> required_;
};

}  // namespace cputrain::checkpoint
