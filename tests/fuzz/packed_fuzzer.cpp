#include "datasets/formats/packed.h"
#include "tests/datasets/made_files.h"
#include "tests/fuzz/datasets_seen.h"

namespace cputrain::testing::packed_fuzzer {
namespace {

std::vector<std::string> seeds() {
  std::vector<std::string> seeds;
  for (const int side : {1, 4}) {
    const auto path = own_folder() / "seed.ctpack";
    datasets::write_packed(datasets::open_data({.spec = "synthetic:6"}), path,
                           {{side, side, 3}, 1, {}, data::Resize::bilinear});
    seeds.push_back(text_of(path));
  }
  return seeds;
}

/// As it is, and with the checksum that its head should have: no mutation would hit that.
bool takes(const std::string& text) {
  const bool taken = is_data(own_file("p.ctpack", text));
  if (taken) return true;
  const datasets::Bytes mended = datasets::with_packed_checksum(datasets::bytes_of(text));
  is_data(own_file("p.ctpack", {mended.begin(), mended.end()}));
  return false;
}

const Fuzzer kFuzzer{"packed", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::packed_fuzzer
