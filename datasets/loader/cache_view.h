#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "system/pages.h"

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

/// The forms in which a cache has its images, by their places in it. Where those of training are
/// larger, they are the first.
struct CachedForms {
  data::ImageForm form;
  std::size_t larger = 0;  ///< so many are

  Shape shape(std::size_t position) const {
    return is_larger(position) ? form.kept_shape() : form.shape;
  }
  data::Resizing resize(std::size_t position) const {
    return is_larger(position) ? form.kept_resize() : form.resize;
  }
  bool is_larger(std::size_t position) const { return position < larger; }
  /// Bytes of the pixels before that place.
  std::size_t before(std::size_t position) const {
    const std::size_t first = std::min(position, larger);
    return first * form.kept_shape().size() + (position - first) * form.shape.size();
  }
};

/// The block of decoded images as all ranks of a node see it, zeros at first: counters, a result an
/// image, the pixels of as many as it keeps.
class CacheView {
 public:
  CacheView(const system::SharedBlock&, std::size_t images, std::size_t kept, const CachedForms&);
  static std::size_t bytes(std::size_t images, std::size_t kept, const CachedForms&);

  bool keeps(std::size_t position) const { return position < kept_; }
  bool keeps_all() const { return kept_ == images_; }
  /// An image must be one that it keeps.
  std::span<std::uint8_t> pixels(std::size_t position) const {
    return {pixels_ + forms_.before(position), forms_.shape(position).size()};
  }

  /// Whether the image has been read; what was written of it is then seen.
  bool is_read(std::size_t position) const { return state(position).load() == kRead; }
  /// Whether the caller, and nobody else, is to read it now.
  bool claim(std::size_t position) const;
  void give_back(std::size_t position) const { state(position).store(kMissing); }
  /// The claimed image was read.
  void store(std::size_t position, const data::ReadResult&, data::Flaw) const;

  /// The image must have been read.
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
  std::size_t images_, kept_;
  CachedForms forms_;
};

/// How a cache reads its images: ascending, those that are larger by themselves.
struct CacheReader {
  const data::Dataset& data;
  std::span<const std::uint32_t> images;
  CachedForms forms;
  data::Exif exif;
  CacheView view;

  std::size_t position_of(std::uint32_t image) const;
  std::size_t bytes_of(std::size_t position) const { return forms.shape(position).size(); }
  /// Reads an image in the cache's form into the start of `space`.
  data::ReadResult read(std::size_t position, std::span<std::uint8_t> space) const;
  /// Reads an image that was claimed, into the cache or, where that does not keep it, into `space`.
  /// Where that throws, it is given back.
  std::span<std::uint8_t> read_claimed(std::size_t position, std::span<std::uint8_t> space) const;
};

}  // namespace cputrain::datasets
