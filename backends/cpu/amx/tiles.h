#pragma once

#include <cstddef>
#include <cstdint>

/// Tiles are registers of 16 rows of 64 bytes, and kernels see them through a class: HardwareTiles
/// (AMX) or EmulatedTiles, which computes the same bits on any machine. An object is what the
/// calling thread has of them; all tiles are whole ones. Both have
///
///   zero<T>()                tile T = 0
///   load<T>(from)            16 rows of 64 bytes, one behind the other
///   store<T>(to)             the same
///   multiply_add<C, A, B>()  C (16 x 16 floats) += A (16 x 32 bf16) B (32 x 16 bf16)
///
/// In B two rows of the matrix lie in one of the tile: row i has B[2 i][n] and B[2 i + 1][n] side
/// by side for n = 0, 1, ... In each element of C, multiply_add makes two chains of fused
/// multiply-adds from zero, over even and over odd k, adds the odd one to the even one, and that to
/// C: one rounding of C for 32 products. All of them round to the nearest, ties to even, read
/// denormal numbers as zero and write zero for them, whatever MXCSR says.
namespace cputrain::cpu::amx {

/// The upper half of a float.
using Bf16 = std::uint16_t;

constexpr int kTileRows = 16;
constexpr std::size_t kRowBytes = 64;
constexpr std::size_t kRowFactors = kRowBytes / sizeof(Bf16);  ///< 32
constexpr std::size_t kFactors = kTileRows * kRowFactors;      ///< of A or B
constexpr std::size_t kSums = kTileRows * kRowBytes / sizeof(float);
constexpr int kTiles = 8;

}  // namespace cputrain::cpu::amx
