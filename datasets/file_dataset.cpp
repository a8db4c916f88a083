#include "datasets/file_dataset.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "datasets/content_hash.h"
#include "datasets/decode.h"
#include "datasets/limits.h"
#include "datasets/read_file.h"
#include "datasets/resize.h"

namespace cputrain {
namespace {

std::string path_below(const std::string& root, const std::string& path) {
  return path.starts_with('/') ? path : root + "/" + path;
}

ReadResult read_within(DecodingBudget& budget, const std::string& path, Shape image, Resize resize,
                       std::span<std::uint8_t> dst) {
  DecodingBudget::Claim claim(budget);
  const FileContent file = read_file(path, kMaxFileBytes, &claim);
  if (file.result.status != ReadStatus::ok) return file.result;
  const Decoded decoded = decode(file.bytes, claim);
  if (decoded.result.status == ReadStatus::ok) resize_picture(decoded.picture, image, resize, dst);
  return decoded.result;
}

class FileDataset final : public Dataset {
 public:
  FileDataset(std::string root, std::vector<PictureFile> files, std::vector<std::string> classes)
      : root_(std::move(root)), classes_(std::move(classes)) {
    std::unordered_map<std::string_view, int> numbers;
    for (const std::string& name : classes_) numbers[name] = static_cast<int>(numbers.size());
    ContentHash hash;
    for (const std::string& name : classes_) hash.add(name);
    paths_.reserve(files.size());
    labels_.reserve(files.size());
    for (PictureFile& file : files) {
      labels_.push_back(numbers.at(file.label));
      std::error_code missing;
      const auto bytes = std::filesystem::file_size(path_below(root_, file.path), missing);
      // The root is left out: nodes may have mounted the same data at different places.
      hash.add(file.path).add(missing ? 0 : bytes).add(static_cast<std::uint64_t>(labels_.back()));
      paths_.push_back(std::move(file.path));
    }
    fingerprint_ = hash.value();
  }

  std::size_t size() const override { return paths_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int label(std::size_t index) const override { return labels_[index]; }
  std::string name(std::size_t index) const override { return path_below(root_, paths_[index]); }
  std::uint64_t fingerprint() const override { return fingerprint_; }

  ReadResult read(std::size_t index, Shape image, Resize resize,
                  std::span<std::uint8_t> dst) const override {
    return read_within(budget_, name(index), image, resize, dst);
  }

  SampleFacts inspect(std::size_t index) const override {
    DecodingBudget::Claim claim(budget_);
    const FileContent file = read_file(name(index), kMaxFileBytes, &claim);
    if (file.result.status != ReadStatus::ok) return {file.result, 0, false};
    SampleFacts facts;
    facts.result = decode(file.bytes, claim).result;
    facts.content = ContentHash().add(file.bytes).value();
    facts.wrong_extension = facts.result.status == ReadStatus::ok &&
                            !has_extension_of(paths_[index], format_of(file.bytes));
    return facts;
  }

 private:
  std::string root_;
  std::vector<std::string> classes_;
  std::vector<std::string> paths_;
  std::vector<std::int32_t> labels_;
  std::uint64_t fingerprint_ = 0;
  mutable DecodingBudget budget_;  // of all threads that read this data set
};

}  // namespace

ReadResult read_picture(const std::string& path, Shape image, Resize resize,
                        std::span<std::uint8_t> dst) {
  DecodingBudget budget;
  return read_within(budget, path, image, resize, dst);
}

bool is_picture_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string ending(name.substr(dot));
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".bmp" || ending == ".gif" || ending == ".jpeg" || ending == ".jpg" ||
         ending == ".png";
}

std::unique_ptr<Dataset> make_file_dataset(std::string root, std::vector<PictureFile> files,
                                           std::vector<std::string> classes) {
  return std::make_unique<FileDataset>(std::move(root), std::move(files), std::move(classes));
}

}  // namespace cputrain
