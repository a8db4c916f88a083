#include "tests/datasets/archives/made_archives.h"
#include "tests/fuzz/datasets_seen.h"

namespace cputrain::testing::archive_fuzzer {
namespace {

using datasets::ArchivedFile;
using datasets::Bytes;

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

/// A tree, and two images with their labels.
std::vector<std::vector<ArchivedFile>> trees() {
  const Bytes image = datasets::png_of(datasets::smooth_image(3, 2));
  std::vector<std::vector<ArchivedFile>> trees{
      {{"x/cat/1.png", image}, {"x/dog/", {}}, {"x/dog/2.png", image}, {"x/a.txt", {}}},
      {{"1.png", image}, {"1.cls", {'1'}}, {"2.png", image}, {"2.cls", {'0'}}}};
  for (auto& files : trees) files.back().deflated = files[2].deflated = true;
  return trees;
}

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  for (const auto& files : trees()) {
    seeds.push_back(text_of(datasets::zip_of(files)));
    seeds.push_back(text_of(datasets::zip64_of(files)));
    seeds.push_back(text_of(datasets::tar_of(files)));
    seeds.push_back(text_of(datasets::gzip_of(datasets::tar_of(files))));
  }
  return seeds;
}

/// As it is, and, as a tar archive, with the checksums that its headers should have, compressed,
/// too.
bool takes(const std::string& text) {
  const bool taken = is_data(own_file("a.zip", text));
  if (taken || text.starts_with("PK")) return taken;
  const Bytes mended = datasets::with_tar_checksums(datasets::bytes_of(text));
  is_data(own_file("a.tar", text_of(mended)));
  is_data(own_file("a.tgz", text_of(datasets::gzip_of(mended))));
  return false;
}

const Fuzzer kFuzzer{"archive", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::archive_fuzzer
