#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"

namespace cputrain {

std::string join(std::span<const std::string> parts, std::string_view separator);

/// The parts between separators; an empty text has one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// "; did you mean X?" where one of the words is near, else nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> words);

/// Words from a file that may be hostile, for a message: what is not printable ASCII becomes '?',
/// and the end of a long text "...".
std::string printable(std::string_view text);

/// 13217985 -> "13,217,985".
std::string with_commas(std::size_t number);

/// "52.9 MB", "4.42 GB": powers of ten.
std::string bytes_text(double bytes);

/// "126x126x32"; "512" for a vector.
std::string shape_text(const Shape&);

/// "3:04", "1:02:03" or "42s": what is left, as Keras prints it.
std::string eta_text(double seconds);

}  // namespace cputrain
