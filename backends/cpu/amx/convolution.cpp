#include "backends/cpu/amx/convolution.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "backends/cpu/kernels/parallel.h"
#include "backends/cpu/kernels/sum.h"
#include "core/casts.h"

namespace cputrain::cpu::amx {
namespace {

constexpr std::size_t kLine = 64;

template <class T>
constexpr std::size_t lines_of(std::size_t count) {
  return (count * sizeof(T) + kLine - 1) / kLine * kLine;
}

std::size_t plane_of(const compute::SampleLayout& map) {
  return to_size(map.shape.height) * to_size(map.shape.width) * kBlock;
}

int blocks_of(const compute::SampleLayout& map) { return to_int(map.blocks()); }

/// Windows of pixels, which are not in blocks: 27 channels in two.
constexpr int kImageBlocks = 2;
constexpr int kImageTaps = 27;

/// Channels of outputs by those of windows, as kernels of one tap lie.
void fill_image_kernel(const float* weights, int outs, float* to) {
  const std::size_t block = kImageTaps * kBlock, whole = kImageBlocks * kBlock * kBlock;
  for (int out = 0; out < outs; ++out, weights += block, to += whole) {
    std::copy_n(weights, block, to);
    std::fill(to + block, to + whole, 0.0f);
  }
}

/// Images whose strips are all of them are taken together: sums are then read and written once for
/// all.
int images_together(const GradientShape& s, std::size_t budget) {
  if (s.strip < s.height) return 1;
  return to_int(std::clamp<std::size_t>(budget / (s.factors() * sizeof(Bf16)), 1, 64));
}

/// Factors of a strip stay in a core's second-level cache.
constexpr std::size_t kStripBytes = 768 << 10;

}  // namespace

bool in_range(const float* numbers, std::size_t count) {
  constexpr std::size_t kTogether = 1024;
  bool zeros = true;
  for (std::size_t i = 0; i < count; i += kTogether) {
    const std::size_t end = std::min(count, i + kTogether);
    unsigned large = 0, something = 0;
    for (std::size_t k = i; k < end; ++k) {
      large |= static_cast<unsigned>(!(std::abs(numbers[k]) < kLeastLargest));  // NaN, too
      something |= static_cast<unsigned>(numbers[k] != 0);
    }
    if (large) return true;
    zeros = zeros && !something;
  }
  return zeros;
}

bool Convolution::possible(const ConvolutionShape& s) {
  const auto blocked = [](const compute::SampleLayout& map) {
    return map.block == kBlock && !map.padded();
  };
  const auto small = [](const model::PadAmount& pad) { return pad.before <= 2 && pad.after <= 2; };
  const auto none = [](const model::PadAmount& pad) { return pad.before + pad.after == 0; };
  const bool kernel =
      s.kernel == 3 || (s.kernel == 1 && !s.image && !s.pool && none(s.rows) && none(s.columns));
  // Finished sums are scaled, so that one scale and one offset hold for all colours.
  const auto one = [](const PerColour& values) { return values == values.of[0]; };
  const bool source = s.image ? s.parts == 1 && one(s.image->scale) && one(s.image->offset) &&
                                    s.image->scale.of[0] > 0 && s.src.shape.channels == 3
                              : blocked(s.src);
  return kernel && source && blocked(s.wide) && blocked(s.dst) && small(s.rows) &&
         small(s.columns) && s.dst.shape.height > 0 && s.dst.shape.width > 0;
}

Convolution::Convolution(const ConvolutionShape& shape, int threads, const Kernels& kernels)
    : shape_(shape), threads_(to_size(threads)), kernels_(kernels) {
  assert(possible(shape));
}

/// For kernels of one tap pixels may lie in any rows: in those that fill tiles.
Shape Convolution::flat(const compute::SampleLayout& map) const {
  const Shape& s = map.shape;
  const int pixels = s.height * s.width;
  if (shape_.kernel == 3) return s;
  for (const int width : {32, 16}) {
    if (pixels % width == 0) return {pixels / width, width, s.channels};
  }
  return {1, pixels, s.channels};
}

int Convolution::source_blocks() const {
  return shape_.image ? kImageBlocks : blocks_of(shape_.src);
}

/// From one image to the next: numbers, or pointers.
std::size_t Convolution::source_size() const { return shape_.image ? 1 : shape_.src.size(); }

/// A pool leaves out the last row or column of odd extents.
PassShape Convolution::forward_shape() const {
  const Shape to = flat(shape_.dst);
  const int scale = shape_.pool ? 2 : 1;
  const bool image = shape_.image.has_value();
  return {.kernel = image ? 1 : shape_.kernel,
          .parts = shape_.parts,
          .above = image ? 0 : shape_.rows.before,
          .left = image ? 0 : shape_.columns.before,
          .height = scale * to.height,
          .width = scale * to.width,
          .ins = source_blocks(),
          .outs = blocks_of(shape_.dst),
          .pools = shape_.pool,
          .to_plane = plane_of(shape_.dst)};
}

PassShape Convolution::backward_shape() const {
  const Shape to = flat(shape_.src);
  return {.kernel = shape_.kernel,
          .parts = shape_.parts,
          .above = shape_.kernel - 1 - shape_.rows.before,
          .left = shape_.kernel - 1 - shape_.columns.before,
          .height = to.height,
          .width = to.width,
          .ins = blocks_of(shape_.wide),
          .outs = blocks_of(shape_.src),
          .pools = false,
          .to_plane = plane_of(shape_.src)};
}

GradientShape Convolution::gradient_shape() const {
  const PassShape forward = forward_shape();
  GradientShape s{.kernel = forward.kernel,
                  .parts = forward.parts,
                  .above = forward.above,
                  .left = forward.left,
                  .height = forward.height,
                  .width = forward.width,
                  .ins = forward.ins,
                  .outs = forward.outs,
                  .strip = 0,
                  .src_image = source_size(),
                  .dst_image = shape_.dst.size()};
  const std::size_t row = (s.output_row() + s.source_row()) * sizeof(Bf16);
  const int fitting = to_int(std::clamp<std::size_t>(kStripBytes / row, 2, 64));
  s.strip = std::min(fitting / 2 * 2, s.height);
  return s;
}

MapRows Convolution::source_rows(const Source& src) const {
  const compute::SampleLayout& map = shape_.src;
  const Shape s = flat(map);
  MapRows rows{src.map, nullptr, nullptr, s.height, s.width, source_blocks(), plane_of(map)};
  if (!shape_.image) return rows;
  rows.images = src.images;
  rows.pixels = {s.height, s.width, shape_.rows.before, shape_.columns.before,
                 shape_.image->offset.of[0] / shape_.image->scale.of[0]};
  return rows;
}

MapRows Convolution::gradient_rows(const Outputs& outputs) const {
  const compute::SampleLayout& map = shape_.dst;
  const Shape s = flat(map);
  return {outputs.diff,
          shape_.relu ? outputs.dst : nullptr,
          shape_.pool ? outputs.winners : nullptr,
          s.height,
          s.width,
          blocks_of(map),
          plane_of(map)};
}

std::size_t Convolution::pass_bytes_of_thread(const PassShape& s) const {
  const std::size_t lines = shape_.image ? kLines * Pixels::line_size(s.pixels()) : 0;
  return lines_of<Bf16>(kRing * s.row_size()) + lines_of<Step>(s.steps()) + lines_of<Bf16>(lines);
}

std::size_t Convolution::pass_bytes_of(const PassShape& s) const {
  const std::size_t filled = shape_.image ? to_size(s.outs) * kImageBlocks * kBlock * kBlock : 0;
  return lines_of<Bf16>(s.weights_size()) + threads_ * pass_bytes_of_thread(s) +
         lines_of<float>(filled);
}

std::size_t Convolution::pass_bytes() const {
  const std::size_t forward = pass_bytes_of(forward_shape());
  return shape_.image ? forward : std::max(forward, pass_bytes_of(backward_shape()));
}

void Convolution::pack(const PassShape& s, const float* weights, bool turned, Bf16* to) const {
  parallel_for(to_size(pairs_of(s.outs)), [&](std::size_t pair) {
    kernels_.pack_kernel(s, weights, turned, to_int(pair), to + pair * s.weights_of_pair());
  });
}

/// Images are cut where threads would have few of them. Each cut makes two rows of factors twice.
void Convolution::run(const PassShape& s, int images, std::size_t from_image, std::size_t to_image,
                      const PassRun& of_first, std::byte* scratch) const {
  constexpr std::size_t kTasksPerThread = 4;
  const std::size_t pairs = to_size((s.height + 1) / 2);
  const std::size_t wanted =
      threads_ == 1 ? 1 : (kTasksPerThread * threads_ + to_size(images) - 1) / to_size(images);
  const std::size_t parts = std::clamp<std::size_t>(wanted, 1, pairs);
  std::byte* const memory = scratch + lines_of<Bf16>(s.weights_size());
  parallel_tasks(to_size(images) * parts, [&](std::size_t task, std::size_t thread) {
    const std::size_t image = task / parts, part = task % parts;
    std::byte* own = memory + thread * pass_bytes_of_thread(s);
    PassRun run = of_first;
    run.from = run.from.behind(image * from_image);
    run.to += image * to_image;
    if (run.winners) run.winners += image * to_image;
    run.first = to_int(pairs * part / parts);
    run.last = to_int(pairs * (part + 1) / parts);
    run.rows = reinterpret_cast<Bf16*>(own);
    own += lines_of<Bf16>(kRing * s.row_size());
    run.steps = reinterpret_cast<Step*>(own);
    run.lines = reinterpret_cast<Bf16*>(own + lines_of<Step>(s.steps()));
    kernels_.convolve(s, run);
  });
}

void Convolution::forward(int images, const Source& src, const float* weights, const float* bias,
                          float* dst, std::uint8_t* winners, std::byte* scratch) const {
  const PassShape s = forward_shape();
  auto* const packed = reinterpret_cast<Bf16*>(scratch);
  if (shape_.image) {
    auto* const filled = reinterpret_cast<float*>(scratch + lines_of<Bf16>(s.weights_size()) +
                                                  threads_ * pass_bytes_of_thread(s));
    fill_image_kernel(weights, s.outs, filled);
    weights = filled;
  }
  pack(s, weights, false, packed);
  run(s, images, source_size(), shape_.dst.size(),
      {.from = source_rows(src),
       .weights = packed,
       .bias = bias,
       .relu = shape_.relu,
       .adds = false,
       .scale = shape_.image ? shape_.image->scale.of[0] : 1,
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

  Strips(const GradientShape& s, bool images)
      : shape(s),
        together(to_size(images_together(s, kStripBytes))),
        strips(to_size((s.height + s.strip - 1) / s.strip)),
        thread_bytes(lines_of<Bf16>(together * s.factors()) +
                     lines_of<Step>(together * s.step_count()) +
                     (images ? lines_of<Bf16>(s.lines_size()) : 0)),
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
  const Strips strips(gradient_shape(), shape_.image.has_value());
  return threads_ * strips.thread_bytes + parts() * strips.sums * sizeof(float);
}

/// Gradients of weights of 27 taps from those of the map of windows.
void Convolution::finish_image_kernel(const GradientShape& s, const float* sums, int out, bool adds,
                                      float* kernel) const {
  constexpr std::size_t kBlocks = kImageBlocks * kBlock * kBlock, kCount = kImageTaps * kBlock;
  alignas(kLine) float made[kBlocks];
  kernels_.finish_kernel(s, sums, out, false, made);
  float* const to = kernel + to_size(out) * kCount;
  for (std::size_t i = 0; i < kCount; ++i) {
    to[i] = (adds ? to[i] : 0.0f) + made[i] * shape_.image->scale.of[0];
  }
}

void Convolution::backward_weights(int images, const Source& src, const Outputs& outputs,
                                   float* diff_weights, float* diff_bias, bool adds,
                                   std::byte* scratch) const {
  const Strips strips(gradient_shape(), shape_.image.has_value());
  const GradientShape& s = strips.shape;
  const std::size_t groups = (to_size(images) + strips.together - 1) / strips.together;
  const std::size_t units = groups * strips.strips, count = std::min(parts(), units);
  auto* const sums = reinterpret_cast<float*>(scratch + threads_ * strips.thread_bytes);
  parallel_tasks(count, [&](std::size_t part, std::size_t thread) {
    std::byte* const own = scratch + thread * strips.thread_bytes;
    std::byte* const behind = own + lines_of<Bf16>(strips.together * s.factors());
    float* const of_part = sums + part * strips.sums;
    std::fill_n(of_part, strips.sums, 0.0f);
    for (std::size_t unit = units * part / count; unit < units * (part + 1) / count; ++unit) {
      const std::size_t image = unit / strips.strips * strips.together;
      const int first = to_int(unit % strips.strips) * s.strip;
      kernels_.add_gradients(
          s, {.source = source_rows(src).behind(image * s.src_image),
              .gradients = gradient_rows(outputs).behind(image * s.dst_image),
              .images = to_int(std::min(strips.together, to_size(images) - image)),
              .first = first,
              .last = std::min(first + s.strip, s.height),
              .factors = reinterpret_cast<Bf16*>(own),
              .steps = reinterpret_cast<Step*>(behind),
              .sums = of_part,
              .lines = reinterpret_cast<Bf16*>(behind +
                                               lines_of<Step>(strips.together * s.step_count()))});
    }
  });
  add_parts(sums, count, strips.sums);
  parallel_for(to_size(s.outs), [&](std::size_t out) {
    if (shape_.image) {
      finish_image_kernel(s, sums, to_int(out), adds, diff_weights);
    } else {
      const std::size_t of_block = to_size(s.ins * s.taps()) * kBlock * kBlock;
      kernels_.finish_kernel(s, sums, to_int(out), adds, diff_weights + out * of_block);
    }
  });
  if (!diff_bias) return;
  const float* const bias = sums + s.kernel_sums();
  for (std::size_t c = 0; c < to_size(s.outs * kBlock); ++c) {
    diff_bias[c] = (adds ? diff_bias[c] : 0.0f) + bias[c];
  }
}

}  // namespace cputrain::cpu::amx
