#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/casts.h"
#include "data/dataset.h"
#include "datasets/decode/decode.h"
#include "datasets/folders/content_hash.h"
#include "datasets/pixels/resize.h"

namespace cputrain::datasets {

/// Images that lie in files of many, as pixels. A file has count(), name() and add_to(ContentHash&)
/// and, of each image, label(), image() and the bytes as they are stored().
template <class File>
class StoredImages final : public data::Dataset {
 public:
  /// `hash`: of what else the fingerprint tells apart.
  StoredImages(std::vector<File> files, std::vector<std::string> classes, ContentHash hash = {})
      : files_(std::move(files)), classes_(std::move(classes)) {
    for (const File& file : files_) {
      starts_.push_back(size_);
      size_ += file.count();
      file.add_to(hash);
    }
    fingerprint_ = hash.value();
  }

  std::size_t size() const override { return size_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::uint64_t fingerprint() const override { return fingerprint_; }

  int label(std::size_t index) const override {
    const auto [file, at] = locate(index);
    return file->label(at);
  }

  std::string name(std::size_t index) const override {
    const auto [file, at] = locate(index);
    return fmt::format("{}[{}]", file->name(), at);
  }

  data::ReadResult read(std::size_t index, Shape size, const data::Resizing& resize,
                        std::span<std::uint8_t> dst) const override {
    const auto [file, at] = locate(index);
    resize_image(file->image(at), size, resize, dst);
    return {};
  }

  data::SampleFacts inspect(std::size_t index) const override {
    const auto [file, at] = locate(index);
    return {{},
            ContentHash().add(std::span<const std::uint8_t>(file->stored(at))).value(),
            false,
            data::flaw_of({}, file->image(at).rgb, data::Exif::apply)};
  }

 private:
  std::pair<const File*, std::size_t> locate(std::size_t index) const {
    const auto after = std::ranges::upper_bound(starts_, index);
    const auto file = to_size(after - starts_.begin()) - 1;
    return {&files_[file], index - starts_[file]};
  }

  std::vector<File> files_;
  std::vector<std::size_t> starts_;  ///< index of each file's first image
  std::vector<std::string> classes_;
  std::size_t size_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace cputrain::datasets
