#include "backends/cpu/amx/convolution.h"

#include <algorithm>
#include <cassert>

#include "backends/cpu/kernels/parallel.h"
#include "backends/cpu/kernels/sum.h"

namespace cputrain::cpu::amx {
namespace {

constexpr std::size_t kLine = 64;

template <class T>
constexpr std::size_t lines_of(std::size_t count) {
  return (count * sizeof(T) + kLine - 1) / kLine * kLine;
}

std::size_t plane_of(const compute::SampleLayout& map) {
  return size(map.shape.height) * size(map.shape.width) * kBlock;
}

int blocks_of(const compute::SampleLayout& map) { return static_cast<int>(map.blocks()); }

std::size_t bytes_of_thread(const PassShape& s) {
  return lines_of<Bf16>(kRing * s.row_size()) + lines_of<Step>(s.steps());
}
std::size_t bytes_of(const PassShape& s, std::size_t threads) {
  return lines_of<Bf16>(s.weights_size()) + threads * bytes_of_thread(s);
}

/// Images whose strips are all of them are taken together: sums are then read and written once for
/// all.
int images_together(const GradientShape& s, std::size_t budget) {
  if (s.strip < s.height) return 1;
  return static_cast<int>(std::clamp<std::size_t>(budget / (s.factors() * sizeof(Bf16)), 1, 64));
}

/// Factors of a strip stay in a core's second-level cache.
constexpr std::size_t kStripBytes = 768 << 10;

}  // namespace

bool Convolution::possible(const ConvolutionShape& s) {
  const auto blocked = [](const compute::SampleLayout& map) {
    return map.block == kBlock && !map.padded();
  };
  const auto small = [](const model::PadAmount& pad) { return pad.before <= 2 && pad.after <= 2; };
  return blocked(s.src) && blocked(s.wide) && blocked(s.dst) && small(s.rows) && small(s.columns) &&
         s.dst.shape.height > 0 && s.dst.shape.width > 0;
}

Convolution::Convolution(const ConvolutionShape& shape, int threads, const Kernels& kernels)
    : shape_(shape), threads_(static_cast<std::size_t>(threads)), kernels_(kernels) {
  assert(possible(shape));
}

/// A pool leaves out the last row or column of odd extents.
PassShape Convolution::forward_shape() const {
  const Shape& to = shape_.dst.shape;
  const int scale = shape_.pool ? 2 : 1;
  return {shape_.rows.before,    shape_.columns.before, scale * to.height, scale * to.width,
          blocks_of(shape_.src), blocks_of(shape_.dst), shape_.pool,       plane_of(shape_.dst)};
}

PassShape Convolution::backward_shape() const {
  const Shape& to = shape_.src.shape;
  return {2 - shape_.rows.before, 2 - shape_.columns.before, to.height, to.width,
          blocks_of(shape_.wide), blocks_of(shape_.src),     false,     plane_of(shape_.src)};
}

GradientShape Convolution::gradient_shape() const {
  const PassShape forward = forward_shape();
  GradientShape s{forward.above,
                  forward.left,
                  forward.height,
                  forward.width,
                  forward.ins,
                  forward.outs,
                  0,
                  shape_.src.size(),
                  shape_.dst.size()};
  const std::size_t row = (s.output_row() + s.source_row()) * sizeof(Bf16);
  const int fitting = static_cast<int>(std::clamp<std::size_t>(kStripBytes / row, 2, 64));
  s.strip = std::min(fitting / 2 * 2, s.height);
  return s;
}

MapRows Convolution::source_rows(const float* src) const {
  const compute::SampleLayout& map = shape_.src;
  return {src, nullptr, nullptr, map.shape.height, map.shape.width, blocks_of(map), plane_of(map)};
}

MapRows Convolution::gradient_rows(const Outputs& outputs) const {
  const compute::SampleLayout& map = shape_.dst;
  return {outputs.diff,
          shape_.relu ? outputs.dst : nullptr,
          shape_.pool ? outputs.winners : nullptr,
          map.shape.height,
          map.shape.width,
          blocks_of(map),
          plane_of(map)};
}

std::size_t Convolution::pass_bytes() const {
  return std::max(bytes_of(forward_shape(), threads_), bytes_of(backward_shape(), threads_));
}

void Convolution::pack(const PassShape& s, const float* weights, bool turned, Bf16* to) const {
  parallel_for(size(pairs_of(s.outs)), [&](std::size_t pair) {
    kernels_.pack_kernel(weights, s.ins, s.outs, turned, static_cast<int>(pair),
                         to + pair * s.steps() * 2 * kFactors);
  });
}

/// Images are cut where threads would have few of them. Each cut makes two rows of factors twice.
void Convolution::run(const PassShape& s, int images, std::size_t from_image, std::size_t to_image,
                      const PassRun& of_first, std::byte* scratch) const {
  constexpr std::size_t kTasksPerThread = 4;
  const std::size_t pairs = size((s.height + 1) / 2);
  const std::size_t wanted =
      threads_ == 1 ? 1 : (kTasksPerThread * threads_ + size(images) - 1) / size(images);
  const std::size_t parts = std::clamp<std::size_t>(wanted, 1, pairs);
  std::byte* const memory = scratch + lines_of<Bf16>(s.weights_size());
  parallel_tasks(size(images) * parts, [&](std::size_t task, std::size_t thread) {
    const std::size_t image = task / parts, part = task % parts;
    std::byte* const own = memory + thread * bytes_of_thread(s);
    PassRun run = of_first;
    run.from = run.from.behind(image * from_image);
    run.to += image * to_image;
    if (run.winners) run.winners += image * to_image;
    run.first = static_cast<int>(pairs * part / parts);
    run.last = static_cast<int>(pairs * (part + 1) / parts);
    run.rows = reinterpret_cast<Bf16*>(own);
    run.steps = reinterpret_cast<Step*>(own + lines_of<Bf16>(kRing * s.row_size()));
    kernels_.convolve(s, run);
  });
}

void Convolution::forward(int images, const float* src, const float* weights, const float* bias,
                          float* dst, std::uint8_t* winners, std::byte* scratch) const {
  const PassShape s = forward_shape();
  auto* const packed = reinterpret_cast<Bf16*>(scratch);
  pack(s, weights, false, packed);
  run(s, images, shape_.src.size(), shape_.dst.size(),
      {.from = source_rows(src),
       .weights = packed,
       .bias = bias,
       .relu = shape_.relu,
       .adds = false,
       .to = dst,
       .winners = shape_.pool ? winners : nullptr},
      scratch);
}

void Convolution::backward_data(int images, const Outputs& outputs, const float* weights,
                                float* diff_src, bool adds, std::byte* scratch) const {
  const PassShape s = backward_shape();
  auto* const packed = reinterpret_cast<Bf16*>(scratch);
  pack(s, weights, true, packed);
  run(s, images, shape_.dst.size(), shape_.src.size(),
      {.from = gradient_rows(outputs),
       .weights = packed,
       .bias = nullptr,
       .relu = false,
       .adds = adds,
       .to = diff_src,
       .winners = nullptr},
      scratch);
}

/// What threads share on the way to gradients of weights.
struct Convolution::Strips {
  GradientShape shape;
  std::size_t together, strips, thread_bytes, sums;

  explicit Strips(const GradientShape& s)
      : shape(s),
        together(size(images_together(s, kStripBytes))),
        strips(size((s.height + s.strip - 1) / s.strip)),
        thread_bytes(lines_of<Bf16>(together * s.factors()) +
                     lines_of<Step>(together * s.step_count())),
        sums(lines_of<float>(s.sums()) / sizeof(float)) {}
};

/// Each part has sums of its own, which are added in their order: the same bits every time,
/// whichever thread takes a part. More parts than threads end together, but sums take memory.
std::size_t Convolution::parts() const {
  constexpr std::size_t kSumsOfThread = (4 << 20) / sizeof(float), kPartsOfThread = 4;
  if (threads_ == 1) return 1;
  return threads_ *
         std::clamp<std::size_t>(kSumsOfThread / gradient_shape().sums(), 1, kPartsOfThread);
}

std::size_t Convolution::gradient_bytes() const {
  const Strips strips(gradient_shape());
  return threads_ * strips.thread_bytes + parts() * strips.sums * sizeof(float);
}

void Convolution::backward_weights(int images, const float* src, const Outputs& outputs,
                                   float* diff_weights, float* diff_bias, bool adds,
                                   std::byte* scratch) const {
  const Strips strips(gradient_shape());
  const GradientShape& s = strips.shape;
  const std::size_t groups = (size(images) + strips.together - 1) / strips.together;
  const std::size_t units = groups * strips.strips, count = std::min(parts(), units);
  auto* const sums = reinterpret_cast<float*>(scratch + threads_ * strips.thread_bytes);
  parallel_tasks(count, [&](std::size_t part, std::size_t thread) {
    std::byte* const own = scratch + thread * strips.thread_bytes;
    float* const of_part = sums + part * strips.sums;
    std::fill_n(of_part, strips.sums, 0.0f);
    for (std::size_t unit = units * part / count; unit < units * (part + 1) / count; ++unit) {
      const std::size_t image = unit / strips.strips * strips.together;
      const int first = static_cast<int>(unit % strips.strips) * s.strip;
      kernels_.add_gradients(
          s, {.source = source_rows(src).behind(image * s.src_image),
              .gradients = gradient_rows(outputs).behind(image * s.dst_image),
              .images = static_cast<int>(std::min(strips.together, size(images) - image)),
              .first = first,
              .last = std::min(first + s.strip, s.height),
              .factors = reinterpret_cast<Bf16*>(own),
              .steps = reinterpret_cast<Step*>(own + lines_of<Bf16>(strips.together * s.factors())),
              .sums = of_part});
    }
  });
  add_parts(sums, count, strips.sums);
  parallel_for(size(s.outs), [&](std::size_t out) {
    kernels_.finish_kernel(s, sums, static_cast<int>(out), adds, diff_weights);
  });
  if (!diff_bias) return;
  const float* const bias = sums + s.kernel_sums();
  for (std::size_t c = 0; c < size(s.outs * kBlock); ++c) {
    diff_bias[c] = (adds ? diff_bias[c] : 0.0f) + bias[c];
  }
}

}  // namespace cputrain::cpu::amx
