#include "datasets/decode/encode.h"

#include <cassert>

#include "core/error.h"

#define STBIW_ASSERT(condition) assert(condition)
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>

namespace cputrain::datasets {
namespace {

void append(void* context, void* data, int size) {
  auto& file = *static_cast<std::vector<std::byte>*>(context);
  const auto* bytes = static_cast<const std::byte*>(data);
  file.insert(file.end(), bytes, bytes + size);
}

}  // namespace

std::vector<std::byte> encode(const Image& image, std::string_view format) {
  constexpr int kChannels = 3, kQuality = 95;
  const int width = image.width, height = image.height;
  const void* pixels = image.rgb.data();
  std::vector<std::byte> file;
  int done = 0;
  if (format == "png") {
    done =
        stbi_write_png_to_func(append, &file, width, height, kChannels, pixels, width * kChannels);
  } else if (format == "bmp") {
    done = stbi_write_bmp_to_func(append, &file, width, height, kChannels, pixels);
  } else if (format == "jpeg") {
    done = stbi_write_jpg_to_func(append, &file, width, height, kChannels, pixels, kQuality);
  }
  if (done == 0) fail(ExitCode::internal, "stb_image_write could not encode an image");
  return file;
}

}  // namespace cputrain::datasets
