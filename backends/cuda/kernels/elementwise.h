#pragma once

#include <cstdint>
#include <variant>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/pass_facts.h"
#include "backends/cuda/kernels/shapes.h"
#include "core/shape.h"
#include "model/layers/pointwise.h"

/// What is done number by number, in maps that are stored as `Numbers` say. `count` numbers are a
/// multiple of kChannelBlock.
namespace cputrain::cuda {

struct ImageLoad {
  int images = 0, height = 0, width = 0;  ///< at most kMostChunks pixels in all
  PerColour scale = 1, offset = 0;
  const PassFacts* facts = nullptr;  ///< on the device: bytes and moves
  int pixels = 1;                    ///< in a position of the map: 1 or kPixelsOfPair
  int left = 0;                      ///< zeros in the place of pixels before each row

  constexpr int columns() const { return pieces(left + width, pixels); }
};
/// The images as numbers `byte * scale + offset` in a map (shapes.h) whose padding becomes zero;
/// product and sum are rounded once on a GPU.
void load_images(Stream, Numbers, const ImageLoad&, void* map);

/// dst = src, rounded to tf32 or bf16: how the copies of weights are made that products read.
void round_numbers(Stream, Numbers, std::int64_t count, const float* src, void* dst);

template <class... Rectifiers>
std::variant<Rectifiers..., model::Silu> with_silu(const std::variant<Rectifiers...>&);
/// Layers that change each number by itself.
using Pointwise = decltype(with_silu(model::Rectifier{}));
/// dst = what the layer makes of src, which may be dst. NaN stays NaN.
void activate(Stream, Numbers, const Pointwise&, std::int64_t count, const void* src, void* dst);
/// diff_src = the gradient of what the layer read; it may be diff_dst. `known`: what a rectifier
/// made, or what SiLU read. `add`: to what is there, for SiLU alone.
void activate_backward(Stream, Numbers, const Pointwise&, std::int64_t count, const void* known,
                       const void* diff_dst, void* diff_src, bool add);

/// dst = the sum of the maps, in their order; of one, a copy. dst may be one of them. Every call
/// adds at most kMostMaps.
inline constexpr int kMostMaps = 8;
struct MapList {
  const void* of[kMostMaps];
  int count;
};
void add_maps(Stream, Numbers, std::int64_t count, const MapList&, void* dst);

/// Which numbers of which images dropout keeps: f(seed, step, layer, sample), as DropoutMask of
/// core/random/random.h, for numbers in canonical order (rows, columns, channels without padding).
struct DropoutCall {
  float rate = 0;
  std::uint32_t layer = 0;  ///< the node's origin in the graph
  int images = 0;
  int positions = 1;  ///< in one image's map
  int channels = 1;   ///< in a position, without padding
};
/// map = map / (1 - rate) where it is kept, else 0, in place: forward of maps, backward of
/// gradients. Reads seed, step and samples of the facts.
void dropout(Stream, Numbers, const DropoutCall&, const PassFacts* facts, void* map);

/// Maps one behind the other by their channels. Where a part lies: `channels` of its own are first
/// .. first + channels - 1 of the whole's.
struct ConcatPart {
  int positions = 0;                       ///< all images'
  int channels = 1, first = 0, whole = 1;  ///< without padding
};

/// Copies the part into the whole, with the padding behind the last channel. Parts are copied one
/// after the other.
void concat_forward(Stream, Numbers, const ConcatPart&, const void* part, void* whole);

/// The part's gradient, with zeros as padding, written or added to what is there.
void concat_backward(Stream, Numbers, const ConcatPart&, const void* diff_whole, void* diff_part,
                     bool add);

}  // namespace cputrain::cuda
