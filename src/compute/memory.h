#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/array.h"
#include "system/pages.h"

namespace cputrain::compute {

/// Where the arrays of a backend lie: weights, gradients, optimizer state, all that its kernels
/// read and write. This one is the host's: pages of this process, and memcpy. Unless is_host(), the
/// host may touch arrays through these calls alone: their addresses mean something to the backend
/// only. Calls may come from any thread. They see what the backend's calls before them computed,
/// and are done when they return.
class Memory {
 public:
  virtual ~Memory() = default;

  /// Zeros, on a 64-byte boundary, which are freed with the block; this memory lasts longer.
  /// Error(internal) where there is no room.
  virtual std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes);
  /// To the host. `src` may be anywhere within a block, as may the other addresses.
  virtual void read(const void* src, std::span<std::byte> dst) {
    copy(src, dst.data(), dst.size());
  }
  /// From the host.
  virtual void write(std::span<const std::byte> src, void* dst) {
    copy(src.data(), dst, src.size());
  }
  /// The same of what nothing writes that a device is still at: they do not wait for it.
  virtual void read_now(const void* src, std::span<std::byte> dst) { read(src, dst); }
  virtual void write_now(std::span<const std::byte> src, void* dst) { write(src, dst); }
  /// Memory of the host that arrays are quickest to read to and write from; this memory lasts
  /// longer. Its contents are undefined.
  virtual std::unique_ptr<system::SharedBlock> staging(std::size_t bytes);
  /// Between two places of this memory that do not overlap.
  virtual void copy(const void* src, void* dst, std::size_t bytes);
  /// Whether it is memory of this process, so that code of the host may use the arrays as they are
  /// and the ranks of a node may share them.
  virtual bool is_host() const { return true; }
  /// Bytes that this rank can still get of a memory that is not the host's, its part where several
  /// ranks have one device; nothing where that is not known. (The host's:
  /// system/limits/process_limits.h.) A rank takes some of a device as soon as it has a backend
  /// there, so ask when all of them have.
  virtual std::optional<std::size_t> available() const { return std::nullopt; }
};

/// It has no state, so that one serves all.
Memory& host_memory();

/// An array in a memory, which is freed with the object.
class OwnedArray {
 public:
  OwnedArray() = default;  ///< empty
  OwnedArray(Memory&, std::size_t elements, DType);

  const Array& array() const { return array_; }
  std::size_t bytes() const { return array_.size * size_of(array_.dtype); }

 private:
  std::unique_ptr<system::SharedBlock> block_;
  Array array_;
};

/// Calls look(piece) for the whole of an array, piece by piece in order, each of them for the host
/// to read: the array itself at once where it lies there, else copies that last for the call.
void read_in_pieces(Memory&, const Array&, const std::function<void(const Array& piece)>& look);

/// Elements of the pieces in which an array goes to the host and back: large enough for the way to
/// cost no more than the bytes.
std::size_t piece_elements(DType);

/// The hash of an array's bytes.
std::uint64_t hash_of(Memory&, const Array&);

/// Whether no value is NaN or infinite. A network can hide such weights: a ReLU turns NaN into 0,
/// and its predictions mean nothing.
bool all_numbers(std::span<const float>);
bool all_numbers(std::span<const double>);

/// A few numbers, whatever their type.
std::vector<double> read_numbers(Memory&, const Array& src);
/// `src` is as long as `dst`; what is kept as float is rounded.
void write_numbers(Memory&, std::span<const double> src, const Array& dst);

}  // namespace cputrain::compute
