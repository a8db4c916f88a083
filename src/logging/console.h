#pragma once

#include <cstddef>
#include <optional>
#include <string>

/// The line with Keras' bar, as long as the terminal is wide.
namespace cputrain::logging {

/// What of an epoch's steps a redrawn line tells. Texts begin with a blank; one may be empty.
struct BarLine {
  std::size_t step = 0, steps = 0;
  std::string time{};      ///< " - ETA: 12s"
  std::string loss{};      ///< " - loss: 0.1234"
  std::string accuracy{};  ///< " - accuracy: 0.5678"
};

/// 0.1234, or 1.2340e-04 where that would say little: as Keras prints figures.
std::string figure_text(double);

/// While steps are made. What gives way where the room is too small stands in one table in the
/// source: the bar shrinks, then accuracy goes, the bar, the loss; counter and time stay.
std::string running_line(const BarLine&, std::optional<std::size_t> space);

/// Behind the epoch: `values` are results, so all of them stay, and the bar alone gives way.
std::string finished_line(std::size_t step, std::size_t steps, const std::string& values,
                          std::optional<std::size_t> space);

}  // namespace cputrain::logging
