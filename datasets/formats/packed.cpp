#include "datasets/formats/packed.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <set>
#include <utility>

#include "core/casts.h"
#include "core/error.h"
#include "datasets/decode/limits.h"
#include "datasets/folders/content_hash.h"
#include "datasets/formats/container_file.h"
#include "datasets/formats/packed_format.h"

namespace cputrain::datasets {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kMostNameBytes = 1 << 16;  // each; paths of files have some thousand

[[noreturn]] void refuse(const std::string& path, const std::string& problem) {
  fail(ExitCode::data, fmt::format("packed file '{}' {} (its images are read as they lie there); "
                                   "pack the data again",
                                   path, problem));
}

PackedHeader read_header(const ContainerFile& file) {
  const std::string& path = file.path();
  if (file.size() < kPackedHeaderBytes) {
    refuse(path, fmt::format("has {} bytes, less than its header needs", file.size()));
  }
  std::array<std::uint8_t, kPackedHeaderBytes> bytes{};
  file.read(0, bytes);
  PackedHeader header{};
  std::copy_n(bytes.begin(), header.magic.size(), header.magic.begin());
  if (header.magic != kPackedMagic) refuse(path, "does not begin as 'data pack' writes it");
  for_each_field(header, [&](auto& field, std::size_t at) {
    field = little_endian<std::remove_reference_t<decltype(field)>>(bytes, at);
  });
  if (header.version < kBeforeExif || header.version > kPackedVersion) {
    refuse(path, fmt::format("has version {} where {} is known", header.version, kPackedVersion));
  }
  return header;
}

/// Sizes against each other and against the file, without overflow.
void check_sizes(const ContainerFile& file, const PackedHeader& h) {
  const std::string& path = file.path();
  const std::uint64_t size = file.size();
  if (h.file_bytes != size) {
    refuse(path, fmt::format("has {} bytes where {} are written in it", size, h.file_bytes));
  }
  if (h.height < 1 || h.width < 1 || h.channels != 3 || !PackedForm::of(h.form, h.version) ||
      exceeds_limits(h.height, h.width)) {
    refuse(path, fmt::format("claims images of {}x{}x{}", h.height, h.width, h.channels));
  }
  if (h.images > kMaxFiles || h.classes > kMaxClasses) {
    refuse(path, fmt::format("claims {} images of {} classes", h.images, h.classes));
  }
  // At most 5e7 images of 2^28 * 3 bytes: the products fit into 64 bits.
  const std::uint64_t head = kPackedHeaderBytes + h.images * kPackedEntryBytes;
  const std::uint64_t pixels = h.images * h.height * h.width * h.channels;
  if (h.pixels_at > size || head > h.pixels_at || h.name_bytes > h.pixels_at - head ||
      size - h.pixels_at != pixels) {
    refuse(path, fmt::format("claims {} images, {} bytes of names and pixels at {}, which its {} "
                             "bytes do not hold",
                             h.images, h.name_bytes, h.pixels_at, size));
  }
  if (h.name_bytes > (h.images + h.classes) * kMostNameBytes) {
    refuse(path, fmt::format("claims {} bytes of names", h.name_bytes));
  }
  if (file.checksum(kPackedChecked, h.pixels_at - kPackedChecked) != h.check) {
    refuse(path, "has a wrong checksum before its pixels");
  }
}

/// `count` texts that end in zero bytes, and nothing after them.
std::vector<std::string> read_names(const std::string& path, Bytes bytes, std::uint64_t count) {
  std::vector<std::string> names;
  auto begin = bytes.begin();
  while (begin != bytes.end()) {
    const auto end = std::find(begin, bytes.end(), 0);
    if (end == bytes.end() || names.size() == count) break;
    names.emplace_back(begin, end);
    begin = end + 1;
  }
  if (names.size() != count || begin != bytes.end()) {
    refuse(path, fmt::format("holds other than the {} names that it claims", count));
  }
  return names;
}

class PackedDataset final : public data::Dataset {
 public:
  explicit PackedDataset(const std::string& path)
      : file_(path, "it holds the images of --data"), header_(read_header(file_)) {
    check_sizes(file_, header_);
    entries_.resize(header_.images * kPackedEntryBytes);
    file_.read(kPackedHeaderBytes, entries_);
    std::vector<std::uint8_t> names(header_.name_bytes);
    file_.read(kPackedHeaderBytes + entries_.size(), names);
    names_ = read_names(path, names, header_.classes + header_.images);
    const auto middle = names_.begin() + static_cast<std::ptrdiff_t>(header_.classes);
    classes_.assign(names_.begin(), middle);
    names_.erase(names_.begin(), middle);
    const std::set<std::string> different(classes_.begin(), classes_.end());
    if (different.size() != classes_.size()) refuse(path, "names a class twice");
    for (std::size_t i = 0; i < size(); ++i) {
      if (entry(i, 0) >= header_.classes || entry(i, 4) > 2) {
        refuse(path, fmt::format("gives image {} the label {} and the part {}", i, entry(i, 0),
                                 entry(i, 4)));
      }
    }
  }

  /// The samples of a part: 0 training, 1 validation, 2 test.
  std::vector<std::uint32_t> part(std::uint32_t number) const {
    std::vector<std::uint32_t> samples;
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (entry(i, 4) == number) samples.push_back(i);
    }
    return samples;
  }

  std::size_t size() const override { return header_.images; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int label(std::size_t index) const override { return to_int(entry(index, 0)); }
  std::string name(std::size_t index) const override { return names_[index]; }

  data::ReadResult read(std::size_t index, [[maybe_unused]] Shape image, const data::Resizing&,
                        std::span<std::uint8_t> dst) const override {
    assert(image == ready_form()->image);
    file_.read(header_.pixels_at + index * dst.size(), dst);
    if (crc32_z(0, dst.data(), dst.size()) == entry(index, 8)) return {};
    return {data::ReadStatus::unreadable, fmt::format("wrong checksum in {}", file_.path())};
  }

  data::SampleFacts inspect(std::size_t index) const override {
    std::vector<std::uint8_t> pixels(ready_form()->image.size());
    const data::ReadResult result = read(index, ready_form()->image, {}, pixels);
    return {result, ContentHash().add(Bytes(pixels)).value(), false,
            data::flaw_of(result, pixels, data::Exif::apply)};
  }

  std::uint64_t fingerprint() const override {
    return ContentHash().add("packed").add(header_.check).add(header_.source).value();
  }

  std::uint64_t origin() const override { return header_.source; }

  std::optional<data::ReadyForm> ready_form() const override {
    const PackedForm form = PackedForm::of(header_.form, header_.version).value();
    return data::ReadyForm{
        {to_int(header_.height), to_int(header_.width), 3}, form.resize, form.exif};
  }

 private:
  std::uint32_t entry(std::size_t index, std::size_t field) const {
    return little_endian<std::uint32_t>(entries_, index * kPackedEntryBytes + field);
  }

  ContainerFile file_;
  PackedHeader header_;
  std::vector<std::uint8_t> entries_;  ///< as they lie in the file
  std::vector<std::string> classes_, names_;
};

}  // namespace

bool is_packed(const std::string& path) { return path.ends_with(".ctpack"); }

PackedData open_packed(const std::string& path) {
  auto dataset = std::make_unique<PackedDataset>(path);
  PackedData data{nullptr, dataset->part(0), dataset->part(1), dataset->part(2)};
  if (data.train.empty()) refuse(path, "holds no training image");
  data.dataset = std::move(dataset);
  return data;
}

}  // namespace cputrain::datasets
