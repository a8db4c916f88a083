#include "backends/cpu/amx/dense.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

namespace cputrain::cpu::amx {
namespace {

/// Forward sums over slabs of inputs, each for itself, then in their order.
constexpr std::size_t kSlabs = 32;
/// Weights that forward packs at once, in whole rows; packed they fit a second-level cache.
constexpr std::size_t kWeightsAtOnce = 200000;
/// Rows of weights, or of their gradients, that a task on either way back has.
constexpr std::size_t kRowsOfTask = 64;
constexpr std::size_t kPair = 2 * kBlock;

constexpr std::size_t whole(std::size_t n, std::size_t of) { return (n + of - 1) / of * of; }

/// Factors of a packed matrix.
constexpr std::size_t packed(std::size_t rows, std::size_t columns) {
  return whole(rows, kPair) * whole(columns, kPair);
}

/// Rows of weights that are packed at once.
constexpr std::size_t rows_at_once(std::size_t out) {
  return std::max(kPair, kWeightsAtOnce / out / kPair * kPair);
}

constexpr std::size_t lines_of(std::size_t bytes) { return whole(bytes, 64); }

int count_of(std::size_t n) { return to_int(n); }

}  // namespace

bool Dense::possible(std::size_t in, std::size_t out) {
  constexpr std::size_t kLeastWeights = 1 << 20;
  return in % kBlock == 0 && out % kBlock == 0 && in * out >= kLeastWeights;
}

Dense::Dense(std::size_t images, std::size_t in, std::size_t out, int threads,
             const Kernels& kernels)
    : images_(images), in_(in), out_(out), threads_(to_size(threads)), kernels_(kernels) {
  assert(in % kBlock == 0 && out % kBlock == 0);
}

std::size_t Dense::slab_rows() const { return whole((in_ + kSlabs - 1) / kSlabs, kPair); }

/// Each thread's piece of the images and of the weights, and sums of slabs.
std::size_t Dense::forward_bytes() const {
  return threads_ * packed(images_, rows_at_once(out_)) * sizeof(Bf16) +
         lines_of(kSlabs * images_ * out_ * sizeof(float)) +
         threads_ * packed(rows_at_once(out_), out_) * sizeof(Bf16);
}

/// Packed gradients of outputs, and each thread's piece of the weights or of the images.
std::size_t Dense::backward_bytes() const {
  return (packed(images_, out_) + threads_ * packed(kRowsOfTask, std::max(out_, images_))) *
         sizeof(Bf16);
}

void Dense::forward(std::size_t images, const float* x, const float* weights, float* y,
                    std::byte* scratch) const {
  const std::size_t rows = slab_rows(), slabs = (in_ + rows - 1) / rows;
  const std::size_t numbers = images * out_;
  auto* const images_packed = reinterpret_cast<Bf16*>(scratch);
  std::byte* const behind = scratch + threads_ * packed(images_, rows_at_once(out_)) * sizeof(Bf16);
  auto* const sums = reinterpret_cast<float*>(behind);
  auto* const pieces =
      reinterpret_cast<Bf16*>(behind + lines_of(kSlabs * images_ * out_ * sizeof(float)));
  parallel_tasks(slabs, [&](std::size_t slab, std::size_t thread) {
    const std::size_t end = std::min(in_, (slab + 1) * rows);
    Bf16* const own = images_packed + thread * packed(images_, rows_at_once(out_));
    Bf16* const piece = pieces + thread * packed(rows_at_once(out_), out_);
    for (std::size_t row = slab * rows; row < end; row += rows_at_once(out_)) {
      const int count = count_of(std::min(rows_at_once(out_), end - row));
      kernels_.pack_matrix({x + row, in_, count_of(images), count}, TileForm::rows, own);
      kernels_.pack_matrix({weights + row * out_, out_, count, count_of(out_)}, TileForm::pairs,
                           piece);
      kernels_.multiply({.a = own,
                         .b = piece,
                         .steps = (count + 31) / 32,
                         .rows = count_of(images),
                         .columns = count_of(out_),
                         .transposed = false,
                         .adds = row > slab * rows,
                         .to = sums + slab * numbers,
                         .row = out_});
    }
  });
  parallel_ranges(numbers, [&](std::size_t begin, std::size_t end) {
    for (std::size_t slab = 0; slab < slabs; ++slab) {
      const float* const part = sums + slab * numbers;
      for (std::size_t i = begin; i < end; ++i) y[i] += part[i];
    }
  });
}

void Dense::backward_data(std::size_t images, const float* diff_y, const float* weights, bool adds,
                          float* diff_x, std::byte* scratch) const {
  auto* const gradients = reinterpret_cast<Bf16*>(scratch);
  Bf16* const pieces = gradients + packed(images_, out_);
  kernels_.pack_matrix({diff_y, out_, count_of(images), count_of(out_)}, TileForm::pairs_of_rows,
                       gradients);
  parallel_tasks((in_ + kRowsOfTask - 1) / kRowsOfTask, [&](std::size_t task, std::size_t thread) {
    const std::size_t row = task * kRowsOfTask;
    const int rows = count_of(std::min(kRowsOfTask, in_ - row));
    Bf16* const piece = pieces + thread * packed(kRowsOfTask, std::max(out_, images_));
    kernels_.pack_matrix({weights + row * out_, out_, rows, count_of(out_)}, TileForm::rows, piece);
    kernels_.multiply({.a = piece,
                       .b = gradients,
                       .steps = count_of(whole(out_, kPair) / kPair),
                       .rows = rows,
                       .columns = count_of(images),
                       .transposed = true,
                       .adds = adds,
                       .to = diff_x + row,
                       .row = in_});
  });
}

void Dense::backward_weights(std::size_t images, const float* x, const float* diff_y, bool adds,
                             float* diff_weights, std::byte* scratch) const {
  auto* const gradients = reinterpret_cast<Bf16*>(scratch);
  Bf16* const pieces = gradients + packed(images_, out_);
  kernels_.pack_matrix({diff_y, out_, count_of(images), count_of(out_)}, TileForm::pairs,
                       gradients);
  parallel_tasks((in_ + kRowsOfTask - 1) / kRowsOfTask, [&](std::size_t task, std::size_t thread) {
    const std::size_t row = task * kRowsOfTask;
    const int rows = count_of(std::min(kRowsOfTask, in_ - row));
    Bf16* const piece = pieces + thread * packed(kRowsOfTask, std::max(out_, images_));
    kernels_.pack_matrix({x + row, in_, count_of(images), rows}, TileForm::columns, piece);
    kernels_.multiply({.a = piece,
                       .b = gradients,
                       .steps = count_of(whole(images, kPair) / kPair),
                       .rows = rows,
                       .columns = count_of(out_),
                       .transposed = false,
                       .adds = adds,
                       .to = diff_weights + row * out_,
                       .row = out_,
                       .past_caches = reinterpret_cast<std::uintptr_t>(diff_weights) % 64 == 0});
  });
}

}  // namespace cputrain::cpu::amx
