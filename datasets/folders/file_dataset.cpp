#include "datasets/folders/file_dataset.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "core/casts.h"
#include "data/classes/alike_names.h"
#include "datasets/archives/archive_spec.h"
#include "datasets/decode/decode.h"
#include "datasets/decode/limits.h"
#include "datasets/folders/content_hash.h"
#include "datasets/folders/folder_names.h"
#include "datasets/loader/read_file.h"
#include "datasets/pixels/resize.h"

namespace cputrain::datasets {
namespace {

std::string path_below(const std::string& root, std::string_view path) {
  const bool whole = path.starts_with('/') || root.empty();
  return whole ? std::string(path) : root + "/" + std::string(path);
}

data::ReadResult decode_file(const FileContent& file, DecodingBudget::Claim& claim, Shape image,
                             const data::Resizing& resize, data::Exif exif,
                             std::span<std::uint8_t> dst) {
  if (file.result.status != data::ReadStatus::ok) return file.result;
  const Decoded decoded = decode(file.bytes, claim);
  if (decoded.result.status == data::ReadStatus::ok)
    resize_image(shown(decoded, exif), image, resize, dst);
  return decoded.result;
}

class FileDataset final : public data::Dataset {
 public:
  FileDataset(std::string root, ImageFiles files, std::vector<std::string> classes, data::Exif exif,
              std::shared_ptr<const ArchiveFiles> archive)
      : root_(std::move(root)),
        files_(std::move(files)),
        exif_(exif),
        archive_(std::move(archive)) {
    files_.number_by(std::move(classes));
    ContentHash hash;
    for (const std::string& name : files_.names()) hash.add(data::composed(name));
    // One for each file, up to 1.5 MiB in all.
    std::vector<Seen> seen(std::clamp<std::size_t>(files_.size(), 1, 1 << 16));
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
      const std::string_view path = files_.path(i);
      const std::size_t key = std::hash<std::string_view>()(path);
      // The root is left out: nodes may have mounted the same data at different places. A copy by
      // way of macOS has names in another form of Unicode.
      hash.add(data::composed(path))
          .add(look_at(i, key, seen[key % seen.size()]))
          .add(static_cast<std::uint64_t>(files_.label_number(i)));
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
        return files_.label_number(one.index) != files_.label_number(begin->index);
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
        conflicts, conflicts == 1 ? " has" : "s have", files_.path(first.first),
        files_.label(first.first), files_.path(first.second), files_.label(first.second));
  }

  std::size_t size() const override { return files_.size(); }
  const std::vector<std::string>& classes() const override { return files_.names(); }
  int label(std::size_t index) const override { return to_int(files_.label_number(index)); }
  std::string name(std::size_t index) const override {
    return archive_ ? archive_->name(path(index)) : path(index);
  }
  std::uint64_t fingerprint() const override { return fingerprint_; }

  std::optional<std::uint64_t> content(std::size_t index) const override {
    const std::vector<std::uint8_t> bytes = file(index);
    return bytes.empty() ? std::nullopt : std::optional(ContentHash().add(bytes).value());
  }

  data::ReadResult read(std::size_t index, Shape image, const data::Resizing& resize,
                        std::span<std::uint8_t> dst) const override {
    DecodingBudget::Claim claim(budget_);
    return decode_file(content_of(index, claim), claim, image, resize, exif_, dst);
  }

  std::vector<std::uint8_t> file(std::size_t index) const override {
    DecodingBudget::Claim claim(budget_);
    return content_of(index, claim).bytes;
  }

  data::SampleFacts inspect(std::size_t index) const override {
    DecodingBudget::Claim claim(budget_);
    const FileContent file = content_of(index, claim);
    if (file.result.status != data::ReadStatus::ok) return {file.result};
    data::SampleFacts facts;
    const Decoded decoded = decode(file.bytes, claim);
    facts.result = decoded.result;
    facts.flaw = data::flaw_of(decoded.result, decoded.image.rgb, exif_, decoded.stored);
    facts.content = ContentHash().add(file.bytes).value();
    facts.wrong_extension = facts.result.status == data::ReadStatus::ok &&
                            kind_of_name(files_.path(index)).format != format_of(file.bytes);
    return facts;
  }

 private:
  /// Where the file is looked for: on disk, or in the archive.
  std::string path(std::size_t index) const { return path_below(root_, files_.path(index)); }

  FileContent content_of(std::size_t index, DecodingBudget::Claim& claim) const {
    return archive_ ? archive_->read(path(index), &claim)
                    : read_file(path(index), kMaxFileBytes, &claim);
  }

  /// The same for all paths that lead to one file.
  struct Identity {
    std::uint64_t device, inode;
    std::uint32_t index;
    auto operator<=>(const Identity&) const = default;
  };

  /// A file that was looked at: lists may name one often.
  struct Seen {
    std::uint64_t bytes = 0;
    std::size_t key = 0;  ///< a hash of its path: tells most others apart without a look at them
    std::uint32_t index = UINT32_MAX;
  };

  /// Bytes of a file; 0 where there is none.
  std::uint64_t look_at(std::uint32_t index, std::size_t key, Seen& seen) {
    const bool again = seen.index != UINT32_MAX && seen.key == key &&
                       files_.path(seen.index) == files_.path(index) &&
                       files_.label_number(seen.index) == files_.label_number(index);
    if (again) return seen.bytes;
    if (archive_) return archive_->bytes(path(index));  // there no file has two paths
    seen = {0, key, index};
    struct stat facts {};
    if (::stat(path(index).c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return 0;
    identities_.push_back({facts.st_dev, facts.st_ino, index});
    seen.bytes = static_cast<std::uint64_t>(facts.st_size);
    return seen.bytes;
  }

  std::string root_;
  ImageFiles files_;
  data::Exif exif_;
  std::shared_ptr<const ArchiveFiles> archive_;  ///< null: files of the disk
  std::vector<Identity> identities_;             ///< until find_conflict()
  std::uint64_t fingerprint_ = 0;
  mutable DecodingBudget budget_;  // for all threads that read this data set
};

}  // namespace

data::ReadResult read_image(const std::string& path, Shape image, const data::Resizing& resize,
                            data::Exif exif, std::span<std::uint8_t> dst) {
  if (parse_archive_spec(path)) {
    return {data::ReadStatus::unsupported,
            "archives are read as --data of train, eval and data; unpack it"};
  }
  DecodingBudget budget;
  DecodingBudget::Claim claim(budget);
  return decode_file(read_file(path, kMaxFileBytes, &claim), claim, image, resize, exif, dst);
}

FileData make_file_dataset(std::string root, ImageFiles files, std::vector<std::string> classes,
                           data::Exif exif, std::shared_ptr<const ArchiveFiles> archive) {
  auto dataset = std::make_unique<FileDataset>(std::move(root), std::move(files),
                                               std::move(classes), exif, std::move(archive));
  std::string conflict = dataset->find_conflict();
  return {std::move(dataset), std::move(conflict)};
}

}  // namespace cputrain::datasets
