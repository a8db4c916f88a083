#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "emulated/fibers.h"

/// What is known of each byte of device and shared memory where kernels are checked: whether it
/// may be touched, whether it was written, and who touched it last. Threads that touch the same
/// byte, one of them writing, without a barrier between are a race. __syncthreads orders the
/// threads of a block, __syncwarp those of a warp; shuffles and products order nothing, as in PTX;
/// blocks of one launch are not ordered.
namespace cputrain::emulated {

/// Whether the kernels of this program report their accesses; from the library of the kernels.
bool kernels_are_checked();
/// Called by announcement.cpp, which is compiled as the kernels are.
void announce_kernels(bool checked);

/// Last accesses of a byte, or of an aligned word of 4 bytes.
struct Cell {
  std::uint64_t write, read;
};

/// A page of memory: all alike, or with a cell for each word, or with one for each byte (once
/// something smaller than a word was touched).
struct ShadowPage {
  enum Kind : std::uint8_t { nothing, fresh, written, words, bytes };
  Cell* cells = nullptr;  ///< kPageBytes / 4 of them or kPageBytes
  Kind kind = nothing;
};

/// A range of addresses with what is known of it.
struct Shadow {
  const std::byte* base = nullptr;
  std::size_t size = 0;
  ShadowPage* pages = nullptr;  ///< null: kernels are not checked
  bool shared = false;

  bool holds(const void* p) const { return offset(p) < size; }
  std::size_t offset(const void* p) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(p) - base);
  }
};

/// That of device memory; made at the first call.
Shadow& global_shadow(const std::byte* base, std::size_t size);
/// Pages of a range, with address space only where kernels are checked.
Shadow make_shadow(const std::byte* base, std::size_t size, bool shared);

/// An array is there, which nobody has written.
void shadow_of_array(Shadow&, std::size_t offset, std::size_t bytes);
/// Nothing is in these whole pages any more.
void shadow_without_array(Shadow&, std::size_t offset, std::size_t bytes);
/// A copy has written.
void shadow_written(Shadow&, std::size_t offset, std::size_t bytes);
/// Cells of bytes are given up: shared memory begins anew with each launch.
void shadow_of_words(Shadow&);
/// How many bytes from there on were written, at most `bytes`.
std::size_t first_unwritten(const Shadow&, std::size_t offset, std::size_t bytes);

/// --- Clock of accesses, kept by the emulator.

void clock_launch();
void clock_block();
void clock_barrier();            ///< __syncthreads
void clock_warp(unsigned warp);  ///< __syncwarp

/// --- Accesses of the thread that runs. End the kernel if they are wrong; `pc` is a return address
/// in the line that is to blame, none stands for the place of the last call.

void check_read(const void*, std::size_t bytes, const void* pc);
void check_write(const void*, std::size_t bytes, const void* pc);
void check_atomic(const void*, std::size_t bytes, const void* pc);
/// A cp.async writes there from now on until it was waited for.
void check_copy_begins(const void* dst, std::size_t bytes);
void check_copy_ends(const void* dst, std::size_t bytes);

/// --- Shared memory of the block that runs (shared_memory.cpp).

Shadow& shared_shadow();
/// Whether these bytes are of the block's variables; `offset` from the beginning of shared memory.
bool in_shared_variables(std::size_t offset, std::size_t bytes);
std::string describe_shared(std::size_t offset);

}  // namespace cputrain::emulated
