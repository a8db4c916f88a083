#pragma once

#include <optional>
#include <string_view>

namespace cputrain::data {

/// How an image comes to the size of the network's input. `bilinear`: as tf.image.resize does
/// (half-pixel centres, no smoothing); `nearest`: as Pillow's NEAREST, the default of Keras'
/// flow_from_directory.
enum class Resize { bilinear, nearest };

/// "bilinear", "nearest": for flags and for the description in weight files.
std::string_view resize_name(Resize);
/// The inverse; nothing for another word.
std::optional<Resize> resize_of(std::string_view name);

}  // namespace cputrain::data
