#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "datasets/decode/decoding_budget.h"

namespace cputrain::datasets {

struct FileContent {
  data::ReadResult result;  ///< ok, unreadable, empty or too_large
  std::vector<std::uint8_t> bytes;
};

/// A whole regular file of at most `limit` bytes, whose memory is claimed first where it is an
/// image's.
FileContent read_file(const std::string& path, std::size_t limit,
                      DecodingBudget::Claim* claim = nullptr);

}  // namespace cputrain::datasets
