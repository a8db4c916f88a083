#include "datasets/formats/idx_file.h"
#include "tests/datasets/made_files.h"
#include "tests/fuzz/datasets_seen.h"

namespace cputrain::testing::idx_fuzzer {
namespace {

constexpr std::uint32_t kImages = 4;

std::string text_of(const datasets::Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

/// The text as file of images or of labels, beside a good one of the other kind.
bool is_idx(const std::string& images, const std::string& labels) {
  own_file("idx/train-images-idx3-ubyte", images);
  own_file("idx/train-labels-idx1-ubyte", labels);
  return is_data("idx:" + (own_folder() / "idx").string());
}

std::string good_images() {
  return text_of(datasets::idx_of(
      {kImages, 3, 2},
      {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}));
}
std::string good_labels() { return text_of(datasets::idx_of({kImages}, {2, 0, 1, 255})); }

std::vector<std::string> seeds() {
  const auto zipped = [](const std::string& text) {
    return text_of(datasets::gzip_of(datasets::bytes_of(text)));
  };
  return {good_images(), good_labels(), zipped(good_images()), zipped(good_labels())};
}

bool takes(const std::string& text) {
  const bool images = is_idx(text, good_labels());
  return is_idx(good_images(), text) || images;
}

const Fuzzer kFuzzer{"idx", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::idx_fuzzer
