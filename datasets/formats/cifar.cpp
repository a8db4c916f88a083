#include "datasets/formats/cifar.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "core/casts.h"
#include "core/error.h"
#include "datasets/formats/container_file.h"
#include "datasets/formats/pickles.h"
#include "datasets/formats/stored_images.h"
#include "datasets/loader/read_file.h"

namespace cputrain::datasets {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 32;
constexpr std::size_t kPlane = std::size_t{kSide} * kSide;
constexpr std::size_t kTrainingFiles = 5;  ///< CIFAR-10's

/// How the two sets differ.
struct Kind {
  const char* spec;
  const char* folder;
  const char* test;
  const char* names;
  std::size_t labels;  ///< label bytes of a record; the last one counts
  int classes;
  int coarse = 0;
};

Kind kind_of(Cifar cifar) {
  if (cifar == Cifar::ten) {
    return {"cifar10", "cifar-10-batches-bin", "test_batch.bin", "batches.meta.txt", 1, 10};
  }
  return {"cifar100", "cifar-100-binary", "test.bin", "fine_label_names.txt", 2, 100, 20};
}

bool exists(const std::string& path) {
  std::error_code ignored;  // what cannot be looked into is not there for us
  return fs::exists(path, ignored);
}

/// The training files that are there, in order.
std::vector<std::string> training_files(Cifar cifar, const std::string& folder) {
  std::vector<std::string> files;
  if (cifar == Cifar::hundred) {
    if (exists(folder + "/train.bin")) files.push_back(folder + "/train.bin");
    return files;
  }
  for (std::size_t number = 1; number <= kTrainingFiles; ++number) {
    std::string path = fmt::format("{}/data_batch_{}.bin", folder, number);
    if (exists(path)) files.push_back(std::move(path));
  }
  return files;
}

/// One file: records of label bytes and planes. It may change once it was opened, so labels are
/// kept and each record is compared with its checksum when it is read.
class CifarFile {
 public:
  CifarFile(const std::string& path, const Kind& kind)
      : file_(std::make_unique<ContainerFile>(path, "it holds images of --data")),
        name_(fs::path(path).filename().string()),
        labels_at_(kind.labels),
        record_(kind.labels + 3 * kPlane) {
    check_size(kind);
    look_through(kind);
  }

  const std::string& name() const { return name_; }
  std::size_t count() const { return labels_.size(); }
  int label(std::size_t at) const { return labels_[at]; }
  void add_to(ContentHash& hash) const { hash.add(count()).add(std::uint64_t{checksum_}); }
  /// The planes of a record. Error(data) where it has changed.
  std::vector<std::uint8_t> stored(std::size_t at) const {
    std::vector<std::uint8_t> record(record_);
    file_->read(at * record_, record);
    if (crc32_z(0, record.data(), record.size()) != checksums_[at]) {
      fail_changed(file_->path(), fmt::format("record {} is another one", at));
    }
    record.erase(record.begin(), record.begin() + static_cast<std::ptrdiff_t>(labels_at_));
    return record;
  }
  Image image(std::size_t at) const {
    const auto planes = stored(at);
    Image image{kSide, kSide, std::vector<std::uint8_t>(3 * kPlane)};
    for (std::size_t i = 0; i < kPlane; ++i) {
      for (std::size_t c = 0; c < 3; ++c) image.rgb[i * 3 + c] = planes[c * kPlane + i];
    }
    return image;
  }

 private:
  void check_size(const Kind& kind) const {
    const std::size_t size = file_->size();
    if (size > 0 && size % record_ == 0) return;
    fail(ExitCode::data,
         fmt::format("'{}' has {} bytes, {} more than {} records of {} ({} needs whole records); "
                     "fetch it again",
                     file_->path(), size, size % record_, size / record_, record_, kind.spec));
  }

  void look_through(const Kind& kind) {
    std::vector<std::uint8_t> record(record_);
    uLong all = 0;
    for (std::size_t at = 0; at < file_->size() / record_; ++at) {
      file_->read(at * record_, record);
      check_labels(record, at, kind);
      labels_.push_back(record[labels_at_ - 1]);
      checksums_.push_back(static_cast<std::uint32_t>(crc32_z(0, record.data(), record_)));
      all = crc32_combine(all, checksums_.back(), static_cast<z_off_t>(record_));
    }
    checksum_ = static_cast<std::uint32_t>(all);
  }

  void check_labels(const std::vector<std::uint8_t>& record, std::size_t at,
                    const Kind& kind) const {
    const int label = record[labels_at_ - 1], coarse = kind.labels == 2 ? record[0] : 0;
    if (label < kind.classes && (kind.coarse == 0 || coarse < kind.coarse)) return;
    fail(ExitCode::data,
         fmt::format("'{}': record {} has the label {} where {} classes are known (it is no "
                     "file of {}, or damaged); fetch it again",
                     file_->path(), at, label < kind.classes ? coarse : label,
                     label < kind.classes ? kind.coarse : kind.classes, kind.spec));
  }

  std::unique_ptr<ContainerFile> file_;
  std::string name_;
  std::size_t labels_at_, record_;
  std::vector<std::uint8_t> labels_;
  std::vector<std::uint32_t> checksums_;  ///< CRC-32 of each record
  std::uint32_t checksum_ = 0;            ///< that of the file
};

std::vector<std::string> known_names(const Kind& kind) {
  if (kind.classes == 10) {
    return {"airplane", "automobile", "bird",  "cat",  "deer",
            "dog",      "frog",       "horse", "ship", "truck"};
  }
  std::vector<std::string> names;
  for (int label = 0; label < kind.classes; ++label) names.push_back(fmt::format("{:02}", label));
  return names;
}

/// One name a line; empty lines at the end are normal.
std::vector<std::string> class_names(const std::string& folder, const Kind& kind) {
  const std::string path = folder + "/" + kind.names;
  if (!exists(path)) return known_names(kind);
  constexpr std::size_t kMaxBytes = 65536;
  const FileContent content = read_file(path, kMaxBytes);
  std::vector<std::string> names;
  std::string name;
  for (const std::uint8_t byte : content.bytes) {
    if (byte != '\n') {
      if (byte != '\r') name += static_cast<char>(byte);
      continue;
    }
    if (!name.empty()) names.push_back(std::exchange(name, {}));
  }
  if (!name.empty()) names.push_back(name);
  const std::set<std::string> different(names.begin(), names.end());
  if (names.size() == to_size(kind.classes) && different.size() == names.size()) {
    return names;
  }
  fail(
      ExitCode::data,
      fmt::format("'{}' holds {} different class names{} ({} has {}); fetch it again, or remove it",
                  path, different.size(),
                  content.result.status == data::ReadStatus::ok ? "" : ", " + content.result.detail,
                  kind.spec, kind.classes));
}

/// The folder that holds the files: the one named, or the archive's own below it.
std::string folder_of_files(Cifar cifar, const Kind& kind, const std::string& named) {
  for (const std::string& folder : {named, named + "/" + kind.folder}) {
    if (!training_files(cifar, folder).empty()) return folder;
  }
  if (const std::string pickle = find_pickle(named); !pickle.empty()) refuse_pickle(pickle);
  fail(ExitCode::data,
       fmt::format("'{}' holds no {} ({}: reads the official binary version); name the folder "
                   "that holds the files, or {}; 'scripts/datasets/{} DIR' fetches them",
                   named, cifar == Cifar::ten ? "data_batch_1.bin" : "train.bin", kind.spec,
                   kind.folder, kind.spec));
}

}  // namespace

CifarData open_cifar(Cifar cifar, const std::string& named) {
  const Kind kind = kind_of(cifar);
  const std::string folder = folder_of_files(cifar, kind, named);
  std::vector<CifarFile> files;
  CifarData data;
  data.paths = training_files(cifar, folder);
  for (const std::string& path : data.paths) files.emplace_back(path, kind);
  for (const CifarFile& file : files) data.train += file.count();
  if (cifar == Cifar::ten) {
    data.remark = fmt::format("It has {} of the {} training files.", files.size(), kTrainingFiles);
  }
  const std::string test = folder + "/" + kind.test;
  data.has_test = exists(test);
  if (data.has_test) {
    files.emplace_back(test, kind);
    data.paths.push_back(test);
  } else {
    data.remark += fmt::format("{}There is no {}.", data.remark.empty() ? "" : " ", kind.test);
  }
  std::vector<std::string> classes = class_names(folder, kind);
  ContentHash hash;
  for (const std::string& name : classes) hash.add(name);
  data.dataset =
      std::make_unique<StoredImages<CifarFile>>(std::move(files), std::move(classes), hash);
  return data;
}

}  // namespace cputrain::datasets
