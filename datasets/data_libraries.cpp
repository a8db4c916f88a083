#include <cstddef>
#include <cstdio>
//
#include <jpeglib.h>
#include <tbb/version.h>
#include <zlib.h>

#include "datasets/datasets.h"

namespace cputrain {
namespace {

/// libjpeg-turbo writes its version as three digits each: 2001005.
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
  return {jpeg_version(), "stb_image 2.27", "oneTBB interface " + std::to_string(tbb),
          std::string("zlib ") + zlibVersion()};
}

}  // namespace cputrain
