#pragma once

#include <string>
#include <vector>

namespace cputrain::data {

/// --data as it is written: a word and what it is applied to ("cifar10:DIR"), or a path alone.
struct DataSpec {
  std::string word;  ///< "cifar10", "coco", ..., "synthetic"; empty before a path alone
  std::vector<std::string> parts;  ///< paths, several of coco; of synthetic the number, if any
};

inline constexpr const char* kSynthetic = "synthetic";

DataSpec parse_data_spec(const std::string& text);

/// Whether images of the data may be photographs with an EXIF orientation.
bool may_have_exif(const std::string& text);

/// The same data from any working folder: paths begin at the root (absolute_path()).
std::string absolute_data_spec(const std::string& text);

}  // namespace cputrain::data
