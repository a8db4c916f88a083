#include "model/layers/pools.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "model/layers/members.h"

namespace cputrain::model {
namespace {

/// Outputs along one axis; at least 1, else Error(usage).
int windows(const char* what, Padding padding, int n, int kernel, int stride) {
  if (padding == Padding::same) return (n + stride - 1) / stride;
  const auto [before, after] = pad_amount(padding, n, kernel, stride);
  const int padded = n + before + after;
  if (padded < kernel) {
    fail(ExitCode::usage, std::string("a ") + what + " of size " + std::to_string(kernel) +
                              " does not fit an input of " + std::to_string(n) +
                              " (nothing would be left of the image); use a larger --image-size");
  }
  return (padded - kernel) / stride + 1;
}

/// A pool's windows lie side by side unless it says otherwise.
void pool_members(LayerMembers& m, int& size, int& stride, Padding& padding) {
  m.need("size", size, 1, kMaxExtent);
  if (m.file()) stride = size;
  m.windows(stride, padding);
}

}  // namespace

PadAmount pad_amount(Padding padding, int n, int kernel, int stride) {
  if (padding == Padding::valid) return {0, 0};
  if (padding == Padding::half) return {kernel / 2, kernel / 2};
  const int outputs = (n + stride - 1) / stride;
  const int total = std::max((outputs - 1) * stride + kernel - n, 0);
  return {total / 2, total - total / 2};
}

Shape window_shape(const char* what, Padding padding, const Shape& src, int kernel, int stride,
                   int channels) {
  return {windows(what, padding, src.height, kernel, stride),
          windows(what, padding, src.width, kernel, stride), channels};
}

LayerFacts ZeroPad::facts() const {
  return {.keras_name = "zero_padding2d", .passage = Passage::linear, .lays_out = true};
}

Shape ZeroPad::output(std::span<const Shape> src) const {
  const auto& [height, width, channels] = src.front();
  return {height + top + bottom, width + left + right, channels};
}

void ZeroPad::members(LayerMembers& m) {
  m.may("top", top, 0, kMaxExtent);
  m.may("bottom", bottom, 0, kMaxExtent);
  m.may("left", left, 0, kMaxExtent);
  m.may("right", right, 0, kMaxExtent);
}

LayerFacts MaxPool::facts() const {
  return {.keras_name = "max_pooling2d",
          .passage = Passage::bends,
          .has_kinks = true,
          .pools_at_once = true};
}

Shape MaxPool::output(std::span<const Shape> src) const {
  return window_shape("max pool", padding, src.front(), size, stride, src.front().channels);
}

void MaxPool::members(LayerMembers& m) { pool_members(m, size, stride, padding); }

LayerFacts AveragePool::facts() const {
  return {.keras_name = "average_pooling2d", .passage = Passage::linear};
}

Shape AveragePool::output(std::span<const Shape> src) const {
  return window_shape("average pool", padding, src.front(), size, stride, src.front().channels);
}

void AveragePool::members(LayerMembers& m) { pool_members(m, size, stride, padding); }

LayerFacts GlobalAveragePool::facts() const {
  return {.keras_name = "global_average_pooling2d", .passage = Passage::linear};
}

Shape GlobalAveragePool::output(std::span<const Shape> src) const {
  return {1, 1, src.front().channels};
}

}  // namespace cputrain::model
