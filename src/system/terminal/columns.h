#pragma once

#include <cstddef>
#include <optional>

/// How wide a line may be. All of it is asked anew at every call, since a window may be resized.
namespace cputrain::system {

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
