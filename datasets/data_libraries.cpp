#include <cstddef>
#include <cstdio>
//
#include <jpeglib.h>
#include <tbb/version.h>
#include <zlib.h>

#include "datasets/archives/archive_entry.h"
#include "datasets/datasets.h"
#include "datasets/decode/decoders.h"

namespace cputrain::datasets {
namespace {

/// The headers' version, three digits each: 2001005. The library cannot be asked; headers and
/// library share its binary interface.
std::string jpeg_version() {
#ifdef LIBJPEG_TURBO_VERSION_NUMBER
  constexpr int kNumber = LIBJPEG_TURBO_VERSION_NUMBER;
  return "libjpeg-turbo " + std::to_string(kNumber / 1'000'000) + "." +
         std::to_string(kNumber / 1000 % 1000) + "." + std::to_string(kNumber % 1000);
#else
  return "libjpeg " + std::to_string(JPEG_LIB_VERSION / 10);
#endif
}

}  // namespace

std::vector<std::string> data_libraries() {
  const int tbb = TBB_runtime_interface_version();
  std::vector<std::string> libraries{jpeg_version(),
                                     png_library(),
                                     webp_library(),
                                     tiff_library(),
                                     heif_library(),
                                     archive_library(),
                                     "oneTBB interface " + std::to_string(tbb),
                                     std::string("zlib ") + zlibVersion()};
  std::erase(libraries, "");  // left out of this build
  return libraries;
}

}  // namespace cputrain::datasets
