#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// libFuzzer's entry: feeds a parser with bytes, and ends the process where it breaks a promise.
/// Each fuzzer is a file that defines this and the functions below.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace cputrain::testing {

/// Inputs to begin with, which the parser takes.
std::vector<std::string> fuzzer_seeds();

/// Whether the parser takes this: Error(data) is a refusal. Throws anything else where a promise is
/// broken.
bool fuzzer_takes(const std::string& text);

}  // namespace cputrain::testing
