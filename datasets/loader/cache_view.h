#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "system/shared_block.h"

namespace cputrain::datasets {

/// How reading an image went, as all ranks of the node see it.
struct SharedResult {
  std::uint8_t state;  ///< CacheView::State
  std::uint8_t status;
  std::uint8_t warned;
  data::Flaw flaw;
  std::array<char, 92> detail;  // cut to fit, ends in 0
};
static_assert(sizeof(SharedResult) == 96);

/// The block of decoded images as all ranks of a node see it, zeros at first: counters, a result an
/// image, the pixels.
class CacheView {
 public:
  /// `image`: of no pixels where images lie ready in a file.
  CacheView(const system::SharedBlock&, std::size_t images, Shape image);
  static std::size_t bytes(std::size_t images, Shape image);

  std::size_t images() const { return images_; }
  std::span<std::uint8_t> pixels(std::size_t position) const {
    return {pixels_ + position * image_bytes_, image_bytes_};
  }

  /// Whether the image has been read; what was written of it is then seen.
  bool is_read(std::size_t position) const { return state(position).load() == kRead; }
  /// Whether the caller, and nobody else, is to read it now.
  bool claim(std::size_t position) const;
  void give_back(std::size_t position) const { state(position).store(kMissing); }
  /// The claimed image was read into pixels().
  void store(std::size_t position, const data::ReadResult&, data::Flaw) const;

  /// Of an image that was read.
  data::ReadResult result(std::size_t position) const;
  data::Flaw flaw(std::size_t position) const { return shared(position).flaw; }

  std::size_t count_read() const { return read().load(); }
  /// The first in order of those that are known to be damaged.
  std::optional<std::size_t> damaged() const;

 private:
  enum State : std::uint8_t { kMissing, kClaimed, kRead };

  SharedResult& shared(std::size_t position) const;
  std::atomic_ref<std::uint8_t> state(std::size_t position) const {
    return std::atomic_ref<std::uint8_t>(shared(position).state);
  }
  std::atomic_ref<std::uint64_t> read() const { return counter(0); }
  std::atomic_ref<std::uint64_t> damage() const { return counter(1); }  ///< 0: none, else 1 + it
  std::atomic_ref<std::uint64_t> counter(std::size_t i) const {
    return std::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t*>(base_)[i]);
  }

  std::uint8_t* base_;
  std::uint8_t* pixels_;
  std::size_t images_, image_bytes_;
};

/// Reads an image that was claimed. Where that throws, it is given back.
void read_claimed(const data::Dataset&, std::uint32_t image, std::size_t position, Shape,
                  data::Resize, data::Exif, const CacheView&);

}  // namespace cputrain::datasets
