#include "datasets/folders/file_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "data/classes/alike_names.h"
#include "datasets/decode/decode.h"
#include "datasets/decode/limits.h"
#include "datasets/folders/content_hash.h"
#include "datasets/loader/read_file.h"
#include "datasets/pixels/resize.h"

namespace cputrain::datasets {
namespace {

constexpr std::array<std::string_view, 10> kEndings{".bmp", ".gif", ".jfif", ".jpe",  ".jpeg",
                                                    ".jpg", ".png", ".tif",  ".tiff", ".webp"};

std::string path_below(const std::string& root, const std::string& path) {
  return path.starts_with('/') ? path : root + "/" + path;
}

data::ReadResult read_within(DecodingBudget& budget, const std::string& path, Shape image,
                             const data::Resizing& resize, data::Exif exif,
                             std::span<std::uint8_t> dst) {
  DecodingBudget::Claim claim(budget);
  const FileContent file = read_file(path, kMaxFileBytes, &claim);
  if (file.result.status != data::ReadStatus::ok) return file.result;
  const Decoded decoded = decode(file.bytes, claim);
  if (decoded.result.status == data::ReadStatus::ok)
    resize_image(shown(decoded, exif), image, resize, dst);
  return decoded.result;
}

class FileDataset final : public data::Dataset {
 public:
  FileDataset(std::string root, std::vector<ImageFile> files, std::vector<std::string> classes,
              data::Exif exif)
      : root_(std::move(root)), classes_(std::move(classes)), exif_(exif) {
    std::unordered_map<std::string_view, int> numbers;
    for (const std::string& name : classes_) numbers[name] = static_cast<int>(numbers.size());
    ContentHash hash;
    for (const std::string& name : classes_) hash.add(data::composed(name));
    paths_.reserve(files.size());
    labels_.reserve(files.size());
    for (ImageFile& file : files) {
      labels_.push_back(numbers.at(file.label));
      // The root is left out: nodes may have mounted the same data at different places. A copy by
      // way of macOS has names in another form of Unicode.
      hash.add(data::composed(file.path))
          .add(look_at(file.path))
          .add(static_cast<std::uint64_t>(labels_.back()));
      paths_.push_back(std::move(file.path));
    }
    fingerprint_ = hash.value();
  }

  /// Files with two labels, however many paths lead to them.
  std::string find_conflict() {
    std::ranges::sort(identities_);
    std::size_t conflicts = 0;
    std::pair<std::uint32_t, std::uint32_t> first{UINT32_MAX, 0};
    for (auto begin = identities_.begin(); begin != identities_.end();) {
      const auto end = std::find_if(begin, identities_.end(), [&](const Identity& other) {
        return std::tie(other.device, other.inode) != std::tie(begin->device, begin->inode);
      });
      const auto other = std::find_if(begin, end, [&](const Identity& one) {
        return labels_[one.index] != labels_[begin->index];
      });
      if (other != end) {
        ++conflicts;
        first = std::min(first, {begin->index, other->index});
      }
      begin = end;
    }
    identities_ = {};
    if (conflicts == 0) return {};
    return fmt::format(
        "{} file{} two labels (first: '{}' of '{}' is '{}' of '{}'); 'cputrain data "
        "check' lists them",
        conflicts, conflicts == 1 ? " has" : "s have", paths_[first.first], class_of(first.first),
        paths_[first.second], class_of(first.second));
  }

  std::size_t size() const override { return paths_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int label(std::size_t index) const override { return labels_[index]; }
  std::string name(std::size_t index) const override { return path_below(root_, paths_[index]); }
  std::uint64_t fingerprint() const override { return fingerprint_; }

  std::optional<std::uint64_t> content(std::size_t index) const override {
    DecodingBudget::Claim claim(budget_);
    const FileContent file = read_file(name(index), kMaxFileBytes, &claim);
    if (file.result.status != data::ReadStatus::ok) return std::nullopt;
    return ContentHash().add(file.bytes).value();
  }

  data::ReadResult read(std::size_t index, Shape image, const data::Resizing& resize,
                        std::span<std::uint8_t> dst) const override {
    return read_within(budget_, name(index), image, resize, exif_, dst);
  }

  data::SampleFacts inspect(std::size_t index) const override {
    DecodingBudget::Claim claim(budget_);
    const FileContent file = read_file(name(index), kMaxFileBytes, &claim);
    if (file.result.status != data::ReadStatus::ok) return {file.result};
    data::SampleFacts facts;
    const Decoded decoded = decode(file.bytes, claim);
    facts.result = decoded.result;
    facts.flaw = data::flaw_of(decoded.result, decoded.image.rgb, exif_, decoded.stored);
    facts.content = ContentHash().add(file.bytes).value();
    facts.wrong_extension = facts.result.status == data::ReadStatus::ok &&
                            !has_extension_of(paths_[index], format_of(file.bytes));
    return facts;
  }

 private:
  /// The same for all paths that lead to one file.
  struct Identity {
    std::uint64_t device, inode;
    std::uint32_t index;
    auto operator<=>(const Identity&) const = default;
  };

  /// Bytes of the next file; 0 where there is none.
  std::uint64_t look_at(const std::string& path) {
    struct stat facts {};
    if (::stat(path_below(root_, path).c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return 0;
    identities_.push_back({facts.st_dev, facts.st_ino, static_cast<std::uint32_t>(paths_.size())});
    return static_cast<std::uint64_t>(facts.st_size);
  }

  const std::string& class_of(std::uint32_t index) const {
    return classes_[static_cast<std::size_t>(labels_[index])];
  }

  std::string root_;
  std::vector<std::string> classes_;
  data::Exif exif_;
  std::vector<std::string> paths_;
  std::vector<std::int32_t> labels_;
  std::vector<Identity> identities_;  ///< until find_conflict()
  std::uint64_t fingerprint_ = 0;
  mutable DecodingBudget budget_;  // for all threads that read this data set
};

}  // namespace

data::ReadResult read_image(const std::string& path, Shape image, const data::Resizing& resize,
                            data::Exif exif, std::span<std::uint8_t> dst) {
  DecodingBudget budget;
  return read_within(budget, path, image, resize, exif, dst);
}

bool is_image_file_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string ending(name.substr(dot));
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::find(kEndings, ending) != kEndings.end();
}

std::string image_endings() { return fmt::format("{}", fmt::join(kEndings, " ")); }

FileData make_file_dataset(std::string root, std::vector<ImageFile> files,
                           std::vector<std::string> classes, data::Exif exif) {
  auto dataset =
      std::make_unique<FileDataset>(std::move(root), std::move(files), std::move(classes), exif);
  std::string conflict = dataset->find_conflict();
  return {std::move(dataset), std::move(conflict)};
}

}  // namespace cputrain::datasets
