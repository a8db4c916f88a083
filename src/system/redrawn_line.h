#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace cputrain::system {

/// A line on a stream that later ones take the place of, as a bar of progress is. What is drawn is
/// escaped already. A copy goes on with the same line.
class RedrawnLine {
 public:
  using Columns = std::function<std::optional<std::size_t>()>;

  /// As wide as the terminal behind the stream is at each redraw (line_columns()).
  explicit RedrawnLine(std::FILE*);
  RedrawnLine(std::FILE*, Columns);

  /// Columns that a redraw may take; nothing: as many as it likes. One column stays free, since
  /// some terminals begin a new line as soon as the last one is written to.
  std::optional<std::size_t> space() const;
  /// Draws over what is there, and cuts what is longer than the line.
  void draw(std::string_view line);
  /// The last words in this place: whole, however long they are, with a line's end.
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

/// What a line that is redrawn may take: the terminal's width, else COLUMNS, else 80 on a terminal
/// without a width. Nothing where there is no terminal: a file has lines of any length.
std::optional<std::size_t> line_columns(int descriptor);

}  // namespace cputrain::system
