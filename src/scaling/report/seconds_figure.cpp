#include "scaling/report/scaling_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/text.h"
#include "scaling/report/forms/escapes.h"
#include "system/print.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

/// Okabe and Ito's colours, as the page has them, by batch.
constexpr std::array kColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                              "#56b4e9", "#d55e00", "#8c6bb1", "#808080"};
constexpr const char *kInk = "#1d2129", *kIdeal = "#b0b7c3";
/// Shapes of points of several series, around their middle.
constexpr std::array kShapes{"M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
                             "M-3.5 -3.5h7v7h-7z",
                             "M0 -5l4.5 8.5h-9z",
                             "M0 -5l4.5 5l-4.5 5l-4.5 -5z",
                             "M0 5l4.5 -8.5h-9z",
                             "M-1.5 -5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
                             "M-5 -2.5h10v5h-10z",
                             "M-2.5 -5h5v10h-5z"};
constexpr const char* kCross = "M-3 -3l6 6M-3 3l6 -6";
constexpr std::size_t kMostName = 180;  ///< bytes of a name in the key: two lines

/// Seconds by CPUs.
using Points = std::vector<std::pair<int, Spread>>;

/// How a line and its points look.
struct LineStyle {
  const char* colour = kInk;
  double width = 2;
  const char* dashes = "none";
  const char* shape = nullptr;
  bool filled = true;
};

/// From figures to pixels; both axes are logarithmic.
struct Axes {
  static constexpr double kLeft = 64, kRight = 780, kTop = 44, kBottom = 424;
  double first = std::numeric_limits<double>::max(), last = 0;  ///< CPUs
  double least = first, most = 0;                               ///< seconds

  void hold(int cpus, const Spread& seconds) {
    first = std::min(first, cpus / 1.08), last = std::max(last, cpus * 1.08);
    least = std::min(least, seconds.min / 1.15), most = std::max(most, seconds.max * 1.15);
  }
  double x(double cpus) const {
    return kLeft + (kRight - kLeft) * std::log(cpus / first) / std::log(last / first);
  }
  double y(double seconds) const {
    return kBottom - (kBottom - kTop) * std::log(seconds / least) / std::log(most / least);
  }
};

std::string text_at(double x, double y, const std::string& text, const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more,
                     html_escape(text));
}

std::string path(const std::string& way, const LineStyle& style) {
  return fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-dasharray=\"{}\"/>\n",
      way, style.colour, style.width, style.dashes);
}

std::string point_at(double x, double y, const LineStyle& style) {
  return fmt::format(
      "<path d=\"{}\" transform=\"translate({:.1f} {:.1f})\" fill=\"{}\" stroke=\"{}\"/>\n",
      style.shape, x, y, style.filled ? style.colour : "#ffffff", style.colour);
}

std::string drawn(const LineStyle& style, const Points& line, const Axes& axes) {
  if (line.empty()) return "";
  std::string way, bars, points;
  for (const auto& [cpus, seconds] : line) {
    const double x = axes.x(cpus), y = axes.y(seconds.median);
    way += fmt::format("{}{:.1f} {:.1f}", way.empty() ? "M" : "L", x, y);
    if (seconds.max > seconds.min)
      bars += fmt::format("M{0:.1f} {1:.1f}V{2:.1f}", x, axes.y(seconds.min), axes.y(seconds.max));
    points += point_at(x, y, style);
  }
  if (!bars.empty()) bars = path(bars, {style.colour, 1.4});
  return path(way, style) + bars + points;
}

/// Numbers at an axis, without those that would stand in each other's way.
std::vector<double> ticks(const std::set<int>& cpus) {
  constexpr double kApart = 1.3;
  std::vector<double> shown;
  for (const int n : cpus) {
    if (shown.empty() || n >= kApart * shown.back()) shown.push_back(n);
  }
  return shown;
}

std::vector<double> ticks_between(double least, double most) {
  const bool wide = most / least > 2000;
  std::vector<double> shown;
  for (double decade = std::pow(10, std::floor(std::log10(least))); decade <= most; decade *= 10) {
    for (const double m : {1.0, 2.0, 5.0}) {
      if (m * decade >= least && m * decade <= most && !(wide && m == 2)) {
        shown.push_back(m * decade);
      }
    }
  }
  return shown;
}

std::string frame(const Axes& axes, const std::set<int>& cpus, bool devices) {
  const LineStyle grid{"#d8dde5", 0.7};
  std::string text;
  for (const double n : ticks(cpus)) {
    text += path(fmt::format("M{:.1f} {}V{}", axes.x(n), axes.kTop, axes.kBottom), grid) +
            text_at(axes.x(n), axes.kBottom + 18, fmt::format("{}", n), "text-anchor=\"middle\"");
  }
  for (const double s : ticks_between(axes.least, axes.most)) {
    text += path(fmt::format("M{} {:.1f}H{}", axes.kLeft, axes.y(s), axes.kRight), grid) +
            text_at(axes.kLeft - 7, axes.y(s) + 4, fmt::format("{:.6g}", s), "text-anchor=\"end\"");
  }
  text += path(fmt::format("M{} {}V{}H{}", axes.kLeft, axes.kTop, axes.kBottom, axes.kRight),
               {"#5b6472", 1});
  text += text_at((axes.kLeft + axes.kRight) / 2, axes.kBottom + 42,
                  devices ? "CPUs or GPUs" : "CPUs", "text-anchor=\"middle\"");
  return text + text_at(0, 0, "seconds per epoch",
                        "text-anchor=\"middle\" transform=\"translate(16 234) rotate(-90)\"");
}

bool is_simulated(const Series& series) {
  return std::ranges::any_of(series.strong.cells, [](const auto& place) {
    return cells::is_forecast(place.second.cell.status);
  });
}

/// At most so many bytes of a text, cut between characters.
std::string shortened(const std::string& text) {
  const std::string safe = printable(text);
  std::size_t end = 0;
  while (end < safe.size() && end < kMostName) {
    end += std::max<std::size_t>(1, utf8_bytes(std::string_view(safe).substr(end)));
  }
  return safe.substr(0, end) + (end < safe.size() ? "..." : "");
}

/// "measured"; with the name of the series where others are of its kind, and with a number where
/// the name was cut and is another's, too.
std::string kind_text(const std::vector<const Series*>& all, const Series& series) {
  std::set<std::string> kinds;
  for (const auto& [where, c] : series.strong.cells) {
    if (c.cell.seconds_per_epoch) kinds.insert(cells::status_name(c.cell.status));
  }
  const std::string kind = join(std::vector<std::string>(kinds.begin(), kinds.end()), ", ");
  const auto kin = std::ranges::count_if(
      all, [&](const Series* other) { return is_simulated(*other) == is_simulated(series); });
  if (kin < 2) return kind;
  std::string name = shortened(series.name);
  int before = 0;
  for (const Series* other : all) {
    if (other == &series) break;
    before += shortened(other->name) == name ? 1 : 0;
  }
  return kind + ": " + name + (before > 0 ? fmt::format(" ({})", before + 1) : "");
}

LineStyle style_of(const Series& series, std::size_t number) {
  const char* shape = kShapes.at(number % kShapes.size());
  const bool again = number >= kShapes.size();  // shapes are used a second time, with other lines
  if (is_simulated(series)) return {kInk, 1.3, again ? "3 3" : "10 4", shape, false};
  return {kInk, 2, again ? "14 3" : "none", shape};
}

LineStyle in_colour(LineStyle style, const char* colour) {
  style.colour = colour;
  return style;
}

Points points_of(const Series& series, std::size_t batch) {
  Points points;
  for (const cells::Cell* cell : series.strong.timed(batch)) {
    const double seconds = *cell->seconds_per_epoch;
    const Interval range = cell->spread.value_or(Interval{seconds, seconds});
    points.push_back({cell->cpus, {seconds, range.low, range.high}});
  }
  return points;
}

Points points_of(const ReferenceTable& reference, std::size_t batch) {
  Points points;
  for (const int cpus : reference.cpus) {
    if (const auto seconds = reference.at(batch, cpus))
      points.push_back({cpus, {*seconds, *seconds, *seconds}});
  }
  return points;
}

/// Perfect scaling from the fewest CPUs of the smallest batch on, to the end of the axis or of the
/// figure.
std::string ideal_line(const Series& series, const Axes& axes) {
  const auto base =
      std::ranges::min_element(series.strong.bases, {}, [](const auto& row) { return row.second; });
  if (series.strong.cpus.size() < 2) return "";
  const int cpus = base->second;
  const double seconds = *series.strong.at(base->first, cpus)->cell.seconds_per_epoch;
  const double end = std::min(axes.last, seconds * cpus / axes.least);
  return path(fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", axes.x(cpus), axes.y(seconds),
                          axes.x(end), axes.y(seconds * cpus / end)),
              {kIdeal, 1.5});
}

/// From the fewest devices on, to where CPUs are as quick: a level line over the whole axis.
std::string level_line(const Points& devices, const LineStyle& style, const Axes& axes) {
  const auto& [count, seconds] = devices.front();
  return path(fmt::format("M{:.1f} {:.1f}H{}", axes.x(count), axes.y(seconds.median), axes.kRight),
              {style.colour, 1.2, "9 3 2 3"});
}

/// What lines mean, below the frame.
using Key = std::vector<std::pair<LineStyle, std::string>>;

/// Side by side as far as there is room; and where it ends.
std::pair<std::string, double> drawn(const Key& key) {
  constexpr double kColumn = 7.6, kLine = 21, kLeft = 20, kSample = 44, kApart = 22;
  std::string text;
  double bottom = Axes::kBottom + 70, x = kLeft;
  for (const auto& [style, name] : key) {
    const double wide = kSample + kColumn * static_cast<double>(columns_of(name)) + kApart;
    if (x > kLeft && x + wide > Axes::kRight + kApart) x = kLeft, bottom += kLine;
    text += path(fmt::format("M{:.1f} {}h32", x, bottom), style);
    if (style.shape) text += point_at(x + 16, bottom, style);
    const auto most = static_cast<std::size_t>((Axes::kRight - kLeft - kSample) / kColumn);
    const std::vector<std::string> name_lines = split(system::wrapped(name, 0, most), '\n');
    for (const std::string& line : name_lines) {
      if (&line != &name_lines.front()) bottom += kLine;
      text += text_at(x + kSample, bottom + 4, line);
    }
    x += wide;
  }
  return {text, bottom};
}

std::string title_of(const ScalingTable& table) {
  const cells::CellTable& about = table.series.front().about;
  std::string title = "Seconds per epoch";
  if (!about.model.empty()) title += ", " + shortened(about.model);
  if (about.image_size > 0) title += fmt::format(" at {0}x{0}", about.image_size);
  return title;
}

/// Series with times, those of devices first: they are few, and what CPUs are compared with.
std::vector<const Series*> series_with_times(const ScalingTable& table) {
  std::vector<const Series*> found;
  for (const bool devices : {true, false}) {
    for (const Series& series : table.series) {
      if (series.strong.bases.empty() || training::is_device(series.backend) != devices) continue;
      found.push_back(&series);
    }
  }
  return found;
}

/// "Not drawn, to be read in the tables: cpu, --precision bf16; ...".
std::string left_out_text(const std::vector<const Series*>& all, std::size_t drawn) {
  constexpr std::size_t kNamed = 4;
  std::string text = "Not drawn, see the tables: ";
  for (std::size_t i = drawn; i < all.size() && i < drawn + kNamed; ++i) {
    text += (i > drawn ? "; " : "") + shortened(all[i]->name);
  }
  const std::size_t more = all.size() - std::min(all.size(), drawn + kNamed);
  return more > 0 ? text + fmt::format("; and {} more", more) : text;
}

}  // namespace

std::string seconds_svg(const ScalingTable& table, const std::optional<ReferenceTable>& reference) {
  const LineStyle published{kInk, 1, "2 3", kCross};
  const std::vector<const Series*> all = series_with_times(table);
  const std::vector<const Series*> series(
      all.begin(), all.begin() + std::min(std::ssize(all), std::ssize(kShapes) * 2));
  if (series.empty()) return "";
  std::set<std::size_t> batches;
  for (const Series* s : series) {
    for (const auto& [row, base] : s->strong.bases) batches.insert(row.batch);
  }
  const bool cpus_too = !training::is_device(series.back()->backend);
  Key key;
  std::vector<std::pair<LineStyle, Points>> lines, levels;
  for (std::size_t number = 0; const std::size_t batch : batches) {
    const char* colour = kColours.at(number++ % kColours.size());
    if (reference) lines.push_back({in_colour(published, colour), points_of(*reference, batch)});
    for (std::size_t i = 0; i < series.size(); ++i) {
      lines.push_back({in_colour(style_of(*series[i], i), colour), points_of(*series[i], batch)});
      if (cpus_too && training::is_device(series[i]->backend)) levels.push_back(lines.back());
    }
    key.push_back({{colour, 4}, fmt::format("batch {}", batch)});
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    key.emplace_back(style_of(*series[i], i), kind_text(all, *series[i]));
  }
  if (reference) key.emplace_back(published, "published");
  if (!levels.empty()) key.push_back({{kInk, 1.2, "9 3 2 3"}, "level of the fewest GPUs"});
  Axes axes;
  std::set<int> cpus;
  for (const auto& [style, points] : lines) {
    for (const auto& [count, seconds] : points) axes.hold(count, seconds), cpus.insert(count);
  }
  std::string ideal, figures;
  for (const Series* one : series) ideal += ideal_line(*one, axes);
  if (!ideal.empty()) key.push_back({{kIdeal, 1.5}, "ideal"});
  for (const auto& [style, points] : levels) {
    if (!points.empty()) figures += level_line(points, style, axes);
  }
  for (const auto& [style, points] : lines) figures += drawn(style, points, axes);
  if (series.size() < all.size()) {
    key.push_back({{"none"}, left_out_text(all, series.size())});
  }
  const auto [below, bottom] = drawn(key);
  const bool devices = training::is_device(series.front()->backend);
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"{0:.0f}\" "
             "viewBox=\"0 0 800 {0:.0f}\" font-family=\"DejaVu Sans,Verdana,sans-serif\" "
             "font-size=\"13\" fill=\"{1}\">\n<rect width=\"800\" height=\"{0:.0f}\" "
             "fill=\"#ffffff\"/>\n",
             bottom + 16, kInk) +
         text_at((axes.kLeft + axes.kRight) / 2, 24, title_of(table),
                 "text-anchor=\"middle\" font-size=\"15\"") +
         frame(axes, cpus, devices) + ideal + figures + below + "</svg>\n";
}

}  // namespace cputrain::report
