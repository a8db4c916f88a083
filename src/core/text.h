#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "core/shape.h"

namespace cputrain {

std::string join(std::span<const std::string> parts, std::string_view separator);

/// The parts between separators; an empty text has one empty part.
std::vector<std::string> split(std::string_view text, char separator);

/// The text with every `from` replaced.
std::string replaced(std::string text, std::string_view from, std::string_view to);

/// With letters from A to Z as small ones.
std::string small_letters(std::string text);

/// The first of them, and "..." where there are more: a list in a message.
std::string first_few(std::span<const std::string> parts, std::size_t most = 10);

/// "; did you mean X?" where one of the words is near, else nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> words);

/// Error(usage): "--exif aply: must be one of apply, ignore; did you mean apply?"; the hint at its
/// end may be another one.
[[noreturn]] void refuse_word(std::string_view flag, std::string_view word,
                              std::span<const std::string> words,
                              std::optional<std::string> hint = {});

/// Text that came from outside (a name, a file's words, a library's message) on one line: control
/// characters, signs that end lines or turn the direction of text, and bytes that are not UTF-8
/// become \n, \t, \x1b, \u202e. Letters of all scripts stay.
std::string escaped(std::string_view text);

/// The same for a text of several lines of ours: what was put into them went through escaped().
std::string escaped_lines(std::string_view text);

/// The same on one line of at most 300 bytes, for words of unknown length; "..." stands for the
/// rest.
std::string printable(std::string_view text);

/// Bytes of the character that the text begins with, if that is valid UTF-8 (RFC 3629), else 0.
std::size_t utf8_bytes(std::string_view text);
bool is_utf8(std::string_view text);

/// The number of the character that these bytes of UTF-8 are.
std::uint32_t code_point(std::string_view character);

/// Bytes of the character that the text begins with, if no reader should meet it as it is (see
/// escaped()), else 0; 1 where it is no UTF-8.
std::size_t unsafe_bytes(std::string_view text);

/// A text that is escaped already in so many columns of a terminal: cut, or with blanks behind it.
/// East Asian characters take two columns (Unicode's wide ones, roughly), combining marks none.
std::string in_columns(std::string_view text, std::size_t width);
/// The columns that a text takes.
std::size_t columns_of(std::string_view text);

/// The number that a text is from its first sign to its last, as std::from_chars() reads it;
/// nothing for any other text.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

/// "rank" for one, else "ranks"; "classes".
std::string plural(std::string_view what, double count);

/// "1 rank", "2 ranks".
template <class Number>
std::string counted(Number n, std::string_view what) {
  return std::to_string(n) + ' ' + plural(what, static_cast<double>(n));
}

/// 13217985 -> "13,217,985".
std::string with_commas(std::size_t number);
/// "13,217,985 images", "1 image".
std::string with_commas(std::size_t number, std::string_view what);

/// "52.9 MB", "4.42 GB": powers of ten.
std::string bytes_text(double bytes);
inline std::string bytes_text(std::size_t bytes) { return bytes_text(static_cast<double>(bytes)); }

/// "126x126x32"; "512" for a vector.
std::string shape_text(const Shape&);

/// "3:04", "1:02:03" or "42s": what is left, as Keras prints it.
std::string eta_text(double seconds);
/// "Decoding 12,000/22,500 - ETA: 21s" after so many seconds. Without ETA until a hundredth is
/// done: the first ones have waited for threads to start, so their rate is not that of the others.
std::string progress_text(std::string_view what, std::size_t done, std::size_t all, double seconds);

// Commands to be typed or kept in files.

/// A word as a shell reads it back.
std::string quoted(const std::string& word);
std::string command_line(const std::vector<std::string>& words);

}  // namespace cputrain
