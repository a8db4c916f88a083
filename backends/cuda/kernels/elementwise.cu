#include "backends/cuda/kernels/elementwise.h"

#include "backends/cuda/device/language.h"
#include "backends/cuda/kernels/quads.h"
#include "core/random_words.h"

namespace cputrain::cuda {
namespace {

inline constexpr unsigned kThreads = 256;

CPUTRAIN_DEVICE std::size_t thread_of_launch() {
  return static_cast<std::size_t>(blockIdx.x) * kThreads + threadIdx.x;
}

unsigned blocks_for(std::size_t threads) {
  return static_cast<unsigned>(pieces(threads, kThreads));
}

/// The three bytes of a pixel of the images, numbered through all of them.
CPUTRAIN_DEVICE uchar4 moved_pixel(const ImageLoad& load, unsigned pixel) {
  const unsigned width = static_cast<unsigned>(load.width);
  const unsigned positions = static_cast<unsigned>(load.height) * width;
  const int y = static_cast<int>(pixel % positions / width);
  const int x = static_cast<int>(pixel % width);
  const compute::ImageMove move = load.facts->moves[pixel / positions];
  if (y < move.top || y >= move.bottom || x < move.left || x >= move.right) {
    return make_uchar4(0, 0, 0, 0);
  }
  const auto place = static_cast<unsigned>(move.first + y * move.down + x * move.across);
  const std::uint8_t* bytes =
      load.facts->bytes + (static_cast<std::size_t>(move.source) * positions + place) * 3;
  return make_uchar4(bytes[0], bytes[1], bytes[2], 0);
}

/// Two threads a pixel: one for the colours, one for the padding.
__global__ void __launch_bounds__(kThreads)
    load_images_kernel(std::size_t quads, ImageLoad load, float* __restrict__ map) {
  const std::size_t quad = thread_of_launch();
  if (quad >= quads) return;
  float4 values = quad_of(0, 0, 0, 0);
  if (quad % 2 == 0) {
    const uchar4 colours = moved_pixel(load, static_cast<unsigned>(quad / 2));
    values = quad_of(static_cast<float>(colours.x) * load.scale + load.offset,
                     static_cast<float>(colours.y) * load.scale + load.offset,
                     static_cast<float>(colours.z) * load.scale + load.offset, 0);
  }
  store_quad(map + quad * kQuad, values);
}

CPUTRAIN_DEVICE float not_below_zero(float value) { return value < 0 ? 0 : value; }

__global__ void __launch_bounds__(kThreads) relu_forward_kernel(std::size_t count, float* map) {
  const std::size_t first = thread_of_launch() * kQuad;
  if (first >= count) return;
  const float4 v = load_quad(map + first);
  store_quad(map + first, quad_of(not_below_zero(v.x), not_below_zero(v.y), not_below_zero(v.z),
                                  not_below_zero(v.w)));
}

__global__ void __launch_bounds__(kThreads)
    relu_backward_kernel(std::size_t count, const float* __restrict__ map,
                         float* __restrict__ diff) {
  const std::size_t first = thread_of_launch() * kQuad;
  if (first >= count) return;
  const float4 v = load_quad(map + first), d = load_quad(diff + first);
  store_quad(diff + first,
             quad_of(v.x > 0 ? d.x : 0, v.y > 0 ? d.y : 0, v.z > 0 ? d.z : 0, v.w > 0 ? d.w : 0));
}

/// The words of elements `element` .. `element` + 3 of a sample: those of one group, or of two.
CPUTRAIN_DEVICE RandomWords words_of(const PassFacts& facts, std::uint32_t layer,
                                     std::uint32_t sample, std::uint64_t element) {
  const std::uint32_t group = static_cast<std::uint32_t>(element / 4);
  const unsigned shift = static_cast<unsigned>(element % 4);
  RandomWords words = dropout_words(facts.seed, facts.step, layer, sample, group);
  if (shift == 0) return words;
  RandomWords next = dropout_words(facts.seed, facts.step, layer, sample, group + 1);
  if (shift & 1) {
    words = {words.y, words.z, words.w, next.x};
    next = {next.y, next.z, next.w, 0};
  }
  if (shift & 2) words = {words.z, words.w, next.x, next.y};
  return words;
}

__global__ void __launch_bounds__(kQuadThreads)
    dropout_kernel(DropoutCall call, float scale, const PassFacts* __restrict__ facts,
                   float* __restrict__ map) {
  const Quad quad = quad_of_thread();
  // Padding is zero and stays so: quads of nothing else are left alone.
  if (!quad.inside(call.images * call.positions, call.channels)) return;
  const unsigned positions = static_cast<unsigned>(call.positions);
  const std::uint64_t position = quad.position % positions;
  const std::uint64_t element =
      position * static_cast<unsigned>(call.channels) + static_cast<unsigned>(quad.channel);
  const RandomWords words =
      words_of(*facts, call.layer, facts->samples[quad.position / positions], element);
  float* target = map + quad.offset(padded_channels(call.channels));
  const float4 v = load_quad(target);
  store_quad(target, quad_of(dropout_keeps(words.x, call.rate) ? v.x * scale : 0,
                             dropout_keeps(words.y, call.rate) ? v.y * scale : 0,
                             dropout_keeps(words.z, call.rate) ? v.z * scale : 0,
                             dropout_keeps(words.w, call.rate) ? v.w * scale : 0));
}

}  // namespace

void load_images(Stream stream, const ImageLoad& load, float* map) {
  static_assert(padded_channels(3) == 2 * kQuad);
  const std::size_t quads = static_cast<std::size_t>(load.images) *
                            static_cast<std::size_t>(load.height) *
                            static_cast<std::size_t>(load.width) * 2;
  if (quads == 0) return;
  launch(stream, "load_images", load_images_kernel, dim3(blocks_for(quads)), dim3(kThreads), 0,
         quads, load, map);
}

void relu_forward(Stream stream, std::size_t count, float* map) {
  if (count == 0) return;
  launch(stream, "relu_forward", relu_forward_kernel, dim3(blocks_for(count / kQuad)),
         dim3(kThreads), 0, count, map);
}

void relu_backward(Stream stream, std::size_t count, const float* map, float* diff) {
  if (count == 0) return;
  launch(stream, "relu_backward", relu_backward_kernel, dim3(blocks_for(count / kQuad)),
         dim3(kThreads), 0, count, map, diff);
}

void dropout(Stream stream, const DropoutCall& call, const PassFacts* facts, float* map) {
  const int positions = call.images * call.positions;
  if (positions == 0) return;
  const float scale = call.rate < 1 ? 1 / (1 - call.rate) : 0;
  const QuadLaunch l = quad_launch(positions, padded_channels(call.channels));
  launch(stream, "dropout", dropout_kernel, l.grid, l.block, 0, call, scale, facts, map);
}

}  // namespace cputrain::cuda
