// With libFuzzer: a fuzzer begins with its seeds.

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzzer.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);

/// Puts the seeds into the first folder of the command line, which libFuzzer reads inputs from and
/// keeps new ones in.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const auto seeds = cputrain::testing::fuzzer_seeds();
  for (int i = 1; i < *argc; ++i) {
    const std::filesystem::path folder = (*argv)[i];
    if (!std::filesystem::is_directory(folder)) continue;
    for (std::size_t k = 0; k < seeds.size(); ++k) {
      std::ofstream(folder / ("seed-" + std::to_string(k)), std::ios::binary) << seeds[k];
    }
    break;
  }
  return 0;
}
