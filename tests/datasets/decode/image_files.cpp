#include "tests/datasets/decode/image_files.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "datasets/decode/decoders.h"
#include "tests/support/test_data.h"

namespace cputrain::datasets {
namespace {

Bytes bytes_of_hex(const std::string& text) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

void read_files(const char* name, std::vector<GoldenFile>& files) {
  for (const auto& entry : nlohmann::json::parse(testing::test_data(name))) {
    const std::string status = entry.at("status");
    GoldenFile file{.name = entry.at("name"),
                    .bytes = bytes_of_hex(entry.at("file")),
                    .status = status,
                    .strict = entry.value("strict", status),
                    .image = {}};
    if (file.status == "ok") {
      file.image = {entry.at("width"), entry.at("height"), entry.at("pixels")};
      file.tolerance = entry.at("tolerance");
    }
    files.push_back(std::move(file));
  }
}

}  // namespace

const std::vector<GoldenFile>& image_files() {
  static const std::vector<GoldenFile> files = [] {
    std::vector<GoldenFile> all;
    read_files("datasets/decode/image_files.json", all);
    read_files("datasets/decode/heif_files.json", all);
    return all;
  }();
  return files;
}

const GoldenFile& image_file(const std::string& name) {
  const auto found = std::ranges::find(image_files(), name, &GoldenFile::name);
  if (found == image_files().end()) throw std::logic_error("no file is called " + name);
  return *found;
}

int largest_difference(const Image& a, const Image& b) {
  if (a.width != b.width || a.height != b.height || a.rgb.size() != b.rgb.size()) return 256;
  int largest = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) {
    largest = std::max(largest, std::abs(a.rgb[i] - b.rgb[i]));
  }
  return largest;
}

bool is_built(const GoldenFile& file) {
  const bool heif = file.name.starts_with("he") || file.name.starts_with("avif");
  return !(heif && heif_library().empty()) &&
         !(file.name.starts_with("webp") && webp_library().empty()) &&
         !(file.name.starts_with("tiff") && tiff_library().empty());
}

}  // namespace cputrain::datasets
