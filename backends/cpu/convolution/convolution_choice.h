#pragma once

#include <array>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/dnnl_primitives.h"
#include "core/casts.h"
#include "model/graph.h"

/// Decisions about convolutions and their maps that are made by rule, not by timing: the same
/// command gives the same bits every time.
namespace cputrain::cpu {

/// Goes up with every change of rules or own kernels, those of dense layers and sums included, that
/// changes bits or speeds: trainings remember it with what they found, and with reproducible
/// weights.
constexpr int kKernelsVersion = 13;

/// What computes a block: the library's direct kernels; our Winograd kernels, in the directions
/// where winograd_pays(); SparseConvolution; the library's bf16 kernels; or ours in tiles.
enum class ConvolutionMethod { direct, winograd, sparse, bf16, tiles };

struct ConvolutionMethods {
  std::array<ConvolutionMethod, 3> by_direction{};
  ConvolutionMethod operator[](Direction d) const { return by_direction[to_size(d)]; }
  ConvolutionMethod& operator[](Direction d) { return by_direction[to_size(d)]; }
  bool operator==(const ConvolutionMethods&) const = default;
};

/// The methods where nothing is measured. In front of a pool at most a quarter of the gradients is
/// not zero, so zeros are skipped there, in forward only where Winograd cannot take the pool along
/// (`pools_tiles`). Elsewhere bf16 goes before Winograd. Tiles of bf16 go before all others.
ConvolutionMethods fixed_methods(const std::vector<ConvolutionMethod>& possible, bool pooled,
                                 bool pools_tiles);

/// Whether forward goes to what measures quickest, as both ways back do. In front of a pool it does
/// not: its rounding decides which of two nearly equal numbers wins a window, and so which way
/// gradients go, and losses would depend on what each job had measured. bf16, which rounds more
/// than that, is measured, the library's and ours.
bool measures_forward(const std::vector<ConvolutionMethod>& possible, bool pooled);

/// Whether a block has enough work in a micro-batch for its methods to be timed. Below one or two
/// milliseconds there is little to gain, and with the rule the same command gives the same bits.
bool worth_measuring(double macs_per_image, int images);

/// Whether Winograd F(4x4, 3x3) is possible and pays. From measurements beside oneDNN 2.6.3 on one
/// Zen 4 core, with AVX-512 and with AVX2, 1 to 16 images, 16 to 512 channels, maps of 3 to 224
/// pixels: few tiles cannot pay for the transformed kernel, and where tiles cover more than twice
/// the map there is little to gain.
bool winograd_pays(const ConvolutionProblem&, Direction);

/// Whether maps are numbers of 16 bits. Networks with normalizations are bound by memory, and have
/// no pools behind convolutions, whose fused kernels know floats. What is made of the image,
/// or by a dense layer, stays float; sums of both kinds have no operator.
bool has_narrow_maps(const model::Graph&, const KernelChoice&);

/// Channels in a block of maps. Tiles need 16; where they are emulated, the library's kernels may
/// be slow.
int block_of_maps(const KernelChoice&);

/// A run of images that one primitive works on.
struct Piece {
  int first;
  int count;
};

/// Cuts a micro-batch into pieces whose maps stay in the cache between a convolution, the pooling
/// behind it and their backward passes: the large map then exists for a few images only. All pieces
/// have one of two sizes, which differ by one. `bytes`: one image's source and destination.
std::vector<Piece> cut_into_pieces(int images, std::size_t bytes, int threads);

}  // namespace cputrain::cpu
