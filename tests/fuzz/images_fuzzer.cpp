#include <stdexcept>

#include "datasets/decode/decode.h"
#include "datasets/decode/limits.h"
#include "tests/datasets/decode/image_files.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing {
namespace {

using data::ReadStatus;

void promise(bool kept, const char* what) {
  if (!kept) throw std::logic_error(what);
}

}  // namespace

/// The good files of all formats that this build reads, as Pillow and libtiff wrote them.
std::vector<std::string> fuzzer_seeds() {
  std::vector<std::string> seeds;
  for (const auto& file : datasets::image_files()) {
    if (file.status == "ok" && datasets::is_built(file)) {
      seeds.emplace_back(file.bytes.begin(), file.bytes.end());
    }
  }
  return seeds;
}

bool fuzzer_takes(const std::string& text) {
  const auto decoded =
      datasets::decode({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  const data::ReadResult& result = decoded.result;
  const datasets::Image& image = decoded.image;
  if (result.status != ReadStatus::ok) {
    promise(!result.detail.empty(), "a refusal says why");
    promise(image.rgb.empty(), "a refusal has no pixels");
    return false;
  }
  promise(image.width >= 1 && image.height >= 1, "an image has pixels");
  promise(!datasets::exceeds_limits(image.width, image.height), "an image is within the limits");
  promise(image.rgb.size() == std::size_t{3} * static_cast<std::size_t>(image.width) *
                                  static_cast<std::size_t>(image.height),
          "every pixel is there");
  return true;
}

}  // namespace cputrain::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cputrain::testing::fuzzer_takes({reinterpret_cast<const char*>(data), size});
  return 0;
}
