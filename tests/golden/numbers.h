#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "compute/program.h"
#include "core/shape.h"
#include "model/layer.h"

/// Numbers that golden_numbers.py computes by the same formulas, so that no file need hold them.
namespace cputrain::golden {

/// Owns images first .. first+count-1 and their labels (image i shows class i % classes).
class Samples {
 public:
  Samples(Shape image, int classes, std::uint64_t seed, int first, int count);
  /// Images begin .. end-1 of these.
  compute::MicroBatch piece(int begin, int end) const;
  compute::MicroBatch all() const { return piece(0, static_cast<int>(pointers_.size())); }
  /// Image `index` as if it showed class `label`; until the next call.
  compute::MicroBatch labelled(int index, int label);

 private:
  std::vector<std::vector<std::uint8_t>> pixels_;
  std::vector<const std::uint8_t*> pointers_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> samples_;
  std::int32_t label_ = 0;
};

/// Stands for a whole tensor: an error in any element shows in one of them.
struct Sums {
  double norm;  ///< Euclidean
  double dot;   ///< with noise of mean 0 in [-0.5, 0.5), a function of (seed, key)
};
Sums sums(std::span<const double> tensor, std::uint64_t seed, std::uint32_t key);

/// How far a tensor lies from the exact one.
struct Difference {
  double error, norm;  ///< norms of the difference and of the exact tensor
  /// Infinite where it is no number: NaN would pass for the best of all in a maximum.
  double relative() const;
};
Difference difference(std::span<const double> values, std::span<const double> exact);

/// FNV-1a, 32 bits.
std::uint32_t name_key(std::string_view);

/// What a parameter of a built-in model holds at first, a function of (seed, name).
std::vector<double> start_values(const model::ParameterSpec&, std::uint64_t seed);

}  // namespace cputrain::golden
