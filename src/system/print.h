#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/text.h"
#include "system/clock.h"

/// The ways to standard output and to standard error. Words that come from outside (names, paths, a
/// file's words) reach no terminal as they are: what a terminal would obey is escaped.
namespace cputrain::system {

/// A text of several lines; what was put into it went through escaped(). It waits for its reader as
/// long as it takes. A failure shows in flush_output(), which main asks in the end: half a result
/// is still better than an exception in the middle of printing it.
void print_lines(std::string_view text);

template <class T>
inline constexpr bool kIsText = std::is_convertible_v<const T&, std::string_view>;

/// What formatted() makes of an argument: a text is escaped, anything else stays.
template <class T>
using Formatted = std::conditional_t<kIsText<T>, std::string, std::remove_cvref_t<T>>;

template <class T>
Formatted<T> formatted_argument(const T& value) {
  if constexpr (kIsText<T>) {
    return escaped(value);
  } else {
    return value;
  }
}

/// As fmt::format, with every text among the arguments escaped: line ends are those of the format.
template <class... Args>
std::string formatted(fmt::format_string<Formatted<Args>...> format, const Args&... args) {
  return fmt::format(format, formatted_argument(args)...);
}

template <class... Args>
void print(fmt::format_string<Formatted<Args>...> format, const Args&... args) {
  print_lines(fmt::format(format, formatted_argument(args)...));
}

/// One line for people on standard error. It is escaped as a whole (core/text.h), since names,
/// paths and libraries' messages in it come from outside: line ends, too, so several lines are
/// several calls. A full or closed stream is no reason to stop, nor is one that is not read:
/// errors are ignored. On a terminal it takes the place of a bar of progress, is wrapped at words,
/// and warnings and errors are coloured.
void tell(std::string_view line);
/// The same with a line that is put together, as fmt::format does it.
template <class First, class... Others>
void tell(fmt::format_string<First, Others...> line, First&& first, Others&&... others) {
  tell(fmt::format(line, std::forward<First>(first), std::forward<Others>(others)...));
}

/// A text that begins at column `indent` and may be as wide as `columns`: further lines are
/// indented as much. A word that is longer than a line stays whole.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns);

/// A line that is escaped already as the terminal behind the file descriptor is to have it: wrapped
/// at words, further lines indented. Without a terminal it stays as it is.
std::string in_lines_of(int descriptor, std::string_view line);

/// The file descriptor is a terminal that may show colours: NO_COLOR (no-color.org) is not there or
/// empty, and TERM is not "dumb".
bool shows_colours(int descriptor);

/// A line that begins with "warning:" has that word in yellow; one that begins with "cputrain:", an
/// error, is red. Blanks may come before these. Any other line stays as it is.
std::string coloured(std::string_view line);

/// A line on a stream that later ones take the place of, as a bar of progress is. What is drawn is
/// escaped already. A copy goes on with the same line.
class RedrawnLine {
 public:
  using Columns = std::function<std::optional<std::size_t>()>;

  /// At each redraw as wide as the terminal behind the stream, else as COLUMNS says, else 80 on a
  /// terminal without a width. A file has lines of any length.
  explicit RedrawnLine(std::FILE*);
  RedrawnLine(std::FILE*, Columns);

  /// Columns that a redraw may take; nothing: as many as it likes. One column stays free, since
  /// some terminals begin a new line as soon as the last one is written to.
  std::optional<std::size_t> space() const;
  /// Draws over what is there, and cuts what is longer than the line.
  void draw(std::string_view line);
  /// The last words in this place: whole, however long they are, with a line's end. They may go on
  /// in further lines.
  void finish(std::string_view line);
  /// Ends the line as it is, if anything is drawn, so that other lines may follow.
  void leave();

 private:
  /// Columns of what is there: 0 where it was taken.
  std::size_t standing() const;
  void write(std::string_view line, std::string_view end);

  std::FILE* stream_;
  bool on_terminal_;
  Columns columns_;
  std::size_t drawn_ = 0;  ///< columns of what was drawn last
};

/// Columns of the line that this process drew on a terminal and did not end; 0: there is none. Who
/// asks ends that line: a second call gives 0 until something is drawn. Any thread may ask, but
/// what it writes then may mix with what is being drawn.
std::size_t take_unended_line();

// How wide a line may be. All of it is asked anew at every call, since a window may be resized.

/// The width of the terminal that a person looks at. Nothing where the descriptor is none, or one
/// without a width: mpirun gives such a one to ranks, and copies what they write there into its own
/// output, which may be a file.
std::optional<std::size_t> screen_columns(int descriptor);

/// COLUMNS of the environment, where it is a number above 0.
std::optional<std::size_t> columns_of_environment();

/// How often a long task prints its progress where no terminal shows a line that is redrawn (a log
/// file, a batch job): every 30 s, the first time after 30 s.
class LogPace {
 public:
  static constexpr double kSeconds = 30;

  /// `now` is a clock in seconds.
  explicit LogPace(std::function<double()> now = steady_seconds)
      : now_(std::move(now)), last_(now_()) {}

  /// True when a line is due, and then not for the next 30 s.
  bool due() {
    const double now = now_();
    if (now - last_ < kSeconds) return false;
    last_ = now;
    return true;
  }

 private:
  std::function<double()> now_;
  double last_;
};

}  // namespace cputrain::system
