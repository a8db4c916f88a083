#pragma once

#include <array>
#include <vector>

#include "backends/cpu/dnnl_primitives.h"

/// Decisions about a convolution that are made by rule, not by timing: the same command gives the
/// same bits every time.
namespace cputrain::cpu {

/// Goes up with every change of rules or own kernels, those of dense layers and sums included, that
/// changes bits or speeds: trainings remember it with what they found, and with reproducible
/// weights.
constexpr int kKernelsVersion = 9;

/// Who computes a block: the library directly; our Winograd kernels, in the directions where the
/// rule says that they pay; the library with narrow numbers; or SparseConvolution.
enum class ConvolutionMethod { direct, winograd, sparse, bf16 };

struct ConvolutionMethods {
  std::array<ConvolutionMethod, 3> by_direction{};
  ConvolutionMethod operator[](Direction d) const {
    return by_direction[static_cast<std::size_t>(d)];
  }
  ConvolutionMethod& operator[](Direction d) { return by_direction[static_cast<std::size_t>(d)]; }
  bool operator==(const ConvolutionMethods&) const = default;
};

/// What is taken of those that are possible where nothing is measured: zeros are skipped behind a
/// pool, where at most a quarter of the gradients is not zero; else narrow numbers go before
/// Winograd.
ConvolutionMethods fixed_methods(const std::vector<ConvolutionMethod>& possible, bool pooled);

/// Whether forward goes to what measures quickest, as both ways back do. In front of a pool it does
/// not: its rounding decides which of two nearly equal numbers wins a window, and so which way
/// gradients go, and losses would depend on what each job had measured.
/// Narrow numbers, which round more than that, are measured.
bool measures_forward(const std::vector<ConvolutionMethod>& possible, bool pooled);

/// Whether timing tells the methods apart: of a block with less work than this in a micro-batch
/// (one or two milliseconds) there is little to gain, and by rule the same command gives the same
/// bits.
bool worth_measuring(double macs_per_image, int images);

/// Whether Winograd F(4x4, 3x3) is possible and pays. From measurements beside oneDNN 2.6.3 on one
/// Zen 4 core, with AVX-512 and with AVX2, 1 to 16 images, 16 to 512 channels, maps of 3 to 224
/// pixels: few tiles cannot pay for the transformed kernel, and where tiles cover more than twice
/// the map there is little to gain.
bool winograd_pays(const ConvolutionProblem&, Direction);

/// A run of images that one primitive works on.
struct Piece {
  int first;
  int count;
};

/// Cuts a micro-batch into pieces whose maps stay in the cache between a convolution, the pooling
/// behind it and their backward passes: the large map then exists for a few images only. All pieces
/// have one of two sizes, which differ by one. `bytes` is of one image's source and destination.
std::vector<Piece> cut_into_pieces(int images, std::size_t bytes, int threads);

}  // namespace cputrain::cpu
