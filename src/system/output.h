#pragma once

#include <cstddef>
#include <cstdio>
#include <limits>
#include <string_view>

/// Standard output and error without a wait for who reads them: a pager, a terminal that is held by
/// Ctrl-S, an ssh client that sleeps. A thread writes what waits in memory, one for both streams
/// where they lead to one place, so that their order stays.
namespace cputrain::system {

/// What becomes of a text that is not read.
enum class Worth {
  redrawn,  ///< a bar: left out while a little waits, without a word
  line,     ///< left out while much waits; how many were is told once they are read again
  told,     ///< the same with more room: warnings and errors find a place behind lines
  result,   ///< waits for the reader as long as it takes
};

/// Bytes that may wait of a stream, for a text to be added to them.
inline constexpr std::size_t kMostRedrawn = 4096, kMostLines = std::size_t{1} << 20,
                             kMostTold = 2 * kMostLines;

/// Once this process is asked to end, whoever waits for a reader who takes nothing gives up after
/// so many seconds.
inline constexpr double kGivesUp = 2;

/// From now on texts go through the thread. Before it, where no more threads can be had, and in
/// processes that fork and do not exec, their writers wait for the reader.
void begin_output();

/// Puts a text behind what waits for stdout or stderr; any other stream gets it at once. False
/// where it was left out, or where an earlier one could not be written.
bool put(std::FILE* stream, std::string_view text, Worth worth = Worth::line);

/// Waits until all is written, for so many seconds at most in which a reader takes nothing, and so
/// many in all. False where standard output did not take all that it was given (`head`, a full
/// disk).
bool flush_output(double unread = std::numeric_limits<double>::infinity(),
                  double all = std::numeric_limits<double>::infinity());

/// This process was asked to end: no text may keep it for long. From any thread.
void hurry_output();

/// Whether a thread of this process waits until what it prints is read.
bool waits_for_reader();

/// What waits is written, where it is read at once, and the process ends without destructors.
[[noreturn]] void end_at_once(int code);

}  // namespace cputrain::system
