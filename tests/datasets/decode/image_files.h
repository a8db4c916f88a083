#pragma once

#include <string>
#include <vector>

#include "tests/datasets/made_files.h"

namespace cputrain::datasets {

/// One of image_files.json, which make_image_files.py writes with Pillow, or of heif_files.json,
/// which make_heif_files.py writes with libheif.
struct GoldenFile {
  std::string name;
  Bytes bytes;
  std::string status;  ///< of ReadStatus, in words
  std::string strict;  ///< the same where the library's own check comes first; mostly `status`
  Image image;         ///< where the status is "ok"
  int tolerance = 0;   ///< of a value
};

const std::vector<GoldenFile>& image_files();
const GoldenFile& image_file(const std::string& name);

/// Between two values at one place; 256 where the images have other sizes.
int largest_difference(const Image&, const Image&);

/// Whether this build reads the file's format.
bool is_built(const GoldenFile&);

}  // namespace cputrain::datasets
