#include "scaling/report/seconds_figure.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "scaling/report/forms/escapes.h"
#include "scaling/report/grid_tables.h"
#include "system/bounded_file.h"
#include "system/child_process.h"
#include "system/clock.h"
#include "system/files.h"

extern "C" {
extern char** environ;  // NOLINT: the name is the system's
}

namespace cputrain::report {
namespace {

namespace fs = std::filesystem;

/// Okabe and Ito's colours, as the page has them, by batch.
constexpr std::array kColours{"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                              "#56b4e9", "#d55e00", "#8c6bb1", "#808080"};
/// gnuplot's point types of series in turn: filled ones and the same shapes hollow.
constexpr std::array kFilled{7, 5, 9, 13}, kHollow{6, 4, 8, 12};

/// Series that a reader tells apart in one figure.
constexpr std::size_t kMostSeries = 4;
constexpr std::size_t kMostName = 34;

struct FigurePoint {
  int cpus;
  double seconds, least, most;
};

/// One line of the figure.
struct FigureLine {
  std::size_t batch;
  std::string style;  ///< after "with"
  std::vector<FigurePoint> points;
  bool bars = false;
};

bool is_simulated(const Series& series) {
  return std::ranges::any_of(series.strong.cells, [](const auto& place) {
    return cells::is_forecast(place.second.cell.status);
  });
}

std::string point_style(const Series& series, std::size_t number) {
  const auto& types = is_simulated(series) ? kHollow : kFilled;
  return fmt::format("pt {} ps 0.8 lw {} dt {}", types.at(number % types.size()),
                     is_simulated(series) ? "1.3" : "2", is_simulated(series) ? "(10,4)" : "1");
}

/// At most so many bytes of a text, cut between characters.
std::string shortened(const std::string& text, std::size_t most) {
  const std::string safe = printable(text);
  std::size_t end = 0;
  while (end < safe.size() && end < most) {
    end += std::max<std::size_t>(1, utf8_bytes(std::string_view(safe).substr(end)));
  }
  return safe.substr(0, end) + (end < safe.size() ? "..." : "");
}

/// What the kind of a series is called in the key.
std::string kind_text(const ScalingTable& table, const Series& series) {
  std::set<std::string> kinds;
  for (const auto& [where, c] : series.strong.cells) {
    if (c.cell.seconds_per_epoch) kinds.insert(cells::status_name(c.cell.status));
  }
  const std::string kind = join(std::vector<std::string>(kinds.begin(), kinds.end()), ", ");
  const auto alike = std::ranges::count_if(table.series, [&](const Series& other) {
    return !other.strong.empty() && is_simulated(other) == is_simulated(series);
  });
  if (alike < 2) return kind;
  return kind + ": " + shortened(series.name, kMostName);
}

std::vector<const Series*> drawn_series(const ScalingTable& table) {
  std::vector<const Series*> series;
  for (const Series& s : table.series) {
    if (!s.strong.bases.empty() && series.size() < kMostSeries) series.push_back(&s);
  }
  return series;
}

FigureLine line_of(const Series& series, std::size_t batch, std::size_t number) {
  FigureLine line{batch, "linespoints " + point_style(series, number), {}, false};
  for (const int cpus : series.strong.cpus) {
    const ScalingCell* here = series.strong.at(batch, cpus);
    if (!here || !here->cell.seconds_per_epoch) continue;
    const double seconds = *here->cell.seconds_per_epoch;
    const cells::CellSpread range = here->cell.spread.value_or(cells::CellSpread{seconds, seconds});
    line.points.push_back({cpus, seconds, range.min, range.max});
    line.bars = line.bars || range.max > range.min;
  }
  return line;
}

FigureLine published_line(const ReferenceTable& reference, std::size_t batch) {
  FigureLine line{batch, "linespoints pt 2 ps 0.6 lw 1 dt 3", {}, false};
  for (const int cpus : reference.cpus) {
    const auto seconds = reference.at(batch, cpus);
    if (seconds) line.points.push_back({cpus, *seconds, *seconds, *seconds});
  }
  return line;
}

/// From the fewest CPUs of the smallest batch that was computed on them, for each series.
std::vector<FigurePoint> ideal_starts(const std::vector<const Series*>& series) {
  std::vector<FigurePoint> starts;
  for (const Series* s : series) {
    const auto base =
        std::ranges::min_element(s->strong.bases, {}, [](const auto& row) { return row.second; });
    const double seconds = *s->strong.at(base->first, base->second)->cell.seconds_per_epoch;
    if (s->strong.cpus.size() > 1) starts.push_back({base->second, seconds, seconds, seconds});
  }
  return starts;
}

std::string data_block(std::size_t number, const FigureLine& line) {
  std::string text = fmt::format("$line{} << EOD\n", number);
  for (const FigurePoint& p : line.points) {
    text += fmt::format("{} {} {} {}\n", p.cpus, p.seconds, p.least, p.most);
  }
  return text + "EOD\n";
}

std::string figure_title(const ScalingTable& table) {
  const cells::CellTable& about = table.series.front().about;
  std::string title = "Seconds per epoch";
  if (!about.model.empty()) title += ", " + shortened(about.model, kMostName);
  if (about.image_size > 0) title += fmt::format(" at {0}x{0}", about.image_size);
  return title;
}

/// CPU counts at the axis, without those that would stand in each other's way.
std::string ticks_of(const std::set<int>& cpus) {
  constexpr double kApart = 1.3;
  std::string text;
  double last = 0;
  for (const int n : cpus) {
    if (last > 0 && n < kApart * last) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", n);
    last = n;
  }
  return text;
}

std::string seconds_ticks(double least, double most) {
  const bool wide = most / least > 200;
  std::string text;
  for (double decade = std::pow(10, std::floor(std::log10(least))); decade <= most; decade *= 10) {
    for (const double m : {1.0, 2.0, 5.0}) {
      const double tick = m * decade;
      if (tick < least || tick > most || (wide && m == 2.0 && most / least > 2000)) continue;
      text += fmt::format("{}{:.6g}", text.empty() ? "" : ", ", tick);
    }
  }
  return text;
}

constexpr const char* kSettings =
    "set encoding utf8\n"
    "set border 3 lc rgb '#5b6472'\n"
    "set grid lc rgb '#d8dde5' lt 1 lw 0.7\n"
    "set tics nomirror out scale 0.6 textcolor rgb '#1d2129'\n"
    "set logscale xy\n"
    "set mxtics 1\nset mytics 1\n"
    "set key outside right top Left reverse samplen 3 spacing 1.25 textcolor rgb '#1d2129'\n"
    "";

}  // namespace

std::string gnuplot_script(const ScalingTable& table,
                           const std::optional<ReferenceTable>& reference, const fs::path& output) {
  const std::vector<const Series*> series = drawn_series(table);
  if (series.empty()) return "";
  std::set<std::size_t> batches;
  for (const Series* s : series) {
    for (const auto& [row, base] : s->strong.bases) batches.insert(row.batch);
  }
  std::vector<FigureLine> lines;
  for (const std::size_t batch : batches) {
    if (reference) lines.push_back(published_line(*reference, batch));
    for (std::size_t i = 0; i < series.size(); ++i) {
      lines.push_back(line_of(*series[i], batch, i));
    }
  }
  std::erase_if(lines, [](const FigureLine& line) { return line.points.empty(); });

  std::set<int> cpus;
  double least = std::numeric_limits<double>::max(), most = 0;
  std::string data, plots;
  const auto colour = [&](std::size_t batch) {
    const auto at = std::distance(batches.begin(), batches.find(batch));
    return kColours.at(static_cast<std::size_t>(at) % kColours.size());
  };
  const auto plot = [&](const std::string& text) {
    plots += (plots.empty() ? "plot " : ", \\\n  ") + text;
  };
  for (const FigurePoint& start : ideal_starts(series)) {
    // A line from the first number of CPUs to the last one, wherever the axis begins.
    plot(fmt::format("[{}:*] {} / x with lines lc rgb '#b0b7c3' lw 1.5 dt 1 notitle", start.cpus,
                     start.seconds * start.cpus));
  }
  const bool has_ideal = !plots.empty();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const FigureLine& line = lines[i];
    for (const FigurePoint& p : line.points) {
      cpus.insert(p.cpus);
      least = std::min(least, p.least);
      most = std::max(most, p.most);
    }
    data += data_block(i, line);
    if (line.bars) {
      plot(fmt::format(
          "$line{} using 1:3:(0):($4-$3) with vectors nohead lw 1.4 lc rgb '{}' notitle", i,
          colour(line.batch)));
    }
    plot(fmt::format("$line{} using 1:2 with {} lc rgb '{}' notitle", i, line.style,
                     colour(line.batch)));
  }
  for (const std::size_t batch : batches) {
    plot(
        fmt::format("keyentry with lines lw 4 lc rgb '{}' title 'batch {}'", colour(batch), batch));
  }
  for (std::size_t i = 0; i < series.size(); ++i) {
    plot(fmt::format("keyentry with linespoints {} lc rgb '#1d2129' title {}",
                     point_style(*series[i], i), gnuplot_text(kind_text(table, *series[i]))));
  }
  if (reference) {
    plot("keyentry with linespoints pt 2 ps 0.6 lw 1 dt 3 lc rgb '#1d2129' title 'published'");
  }
  if (has_ideal) plot("keyentry with lines lc rgb '#b0b7c3' lw 1.5 dt 1 title 'ideal'");

  const bool devices =
      std::ranges::any_of(series, [](const Series* s) { return cells::is_device(s->backend); });
  const double first = *cpus.begin(), last = *cpus.rbegin();
  std::string text =
      "set terminal svg size 800,480 noenhanced font 'DejaVu Sans,Verdana,sans-serif,13' "
      "background '#ffffff'\nset output " +
      gnuplot_text(output.string()) + "\n" + kSettings;
  text +=
      "set title " + gnuplot_text(figure_title(table)) + " font ',15' textcolor rgb '#1d2129'\n";
  text +=
      fmt::format("set xlabel '{}' textcolor rgb '#1d2129'\n", devices ? "CPUs or GPUs" : "CPUs");
  text += "set ylabel 'seconds per epoch' textcolor rgb '#1d2129'\n";
  text += fmt::format("set xrange [{}:{}]\nset xtics ({})\n", first / 1.08, last * 1.08,
                      ticks_of(cpus));
  text += fmt::format("set yrange [{}:{}]\nset ytics ({})\n", least / 1.15, most * 1.15,
                      seconds_ticks(least / 1.15, most * 1.15));
  return text + data + plots + "\n";
}

namespace {

/// A folder of its own that goes with everything in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "cputrain-figure-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      fail(ExitCode::output, fmt::format("{}: no folder can be made (the figure is drawn in it); "
                                         "set TMPDIR to one with room",
                                         name));
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable; ++variable) variables.emplace_back(*variable);
  return variables;
}

/// Its exit code; nothing where it took too long and was killed.
std::optional<int> run_gnuplot(const fs::path& script, const fs::path& log) {
  constexpr double kPatience = 30;
  // -d: without the settings of whoever calls.
  system::ChildProcess child({{"gnuplot", "-d", script.string()}, environment(), log});
  const system::Stopwatch waited;
  std::optional<int> code;
  while (!(code = child.exit_code()) && waited.seconds() < kPatience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return code;
}

std::string text_of(const fs::path& file) {
  constexpr std::uintmax_t kMostBytes = 16 << 20;
  try {
    return system::read_bounded(file, kMostBytes);
  } catch (const std::runtime_error&) {
    return "";
  }
}

/// Draws the figure; the answer is empty, or says why it could not. Throws where folders and files
/// fail.
std::string draw(const fs::path& file, const ScalingTable& table,
                 const std::optional<ReferenceTable>& reference) {
  const ScratchFolder scratch;
  const fs::path script = scratch / "figure.gp", log = scratch / "log",
                 svg = scratch / "figure.svg";
  system::write_own_file(script, gnuplot_script(table, reference, svg));
  const auto code = run_gnuplot(script, log);
  if (!code) return "gnuplot did not end";
  const std::string drawn = text_of(svg);
  if (*code != 0 || drawn.find("</svg>") == std::string::npos) {
    return fmt::format("gnuplot ended with {}: {}", *code, printable(text_of(log)));
  }
  system::write_own_file(file, drawn);
  return "";
}

/// The figure of an earlier report would show other figures than the tables beside it.
DrawnFigure not_drawn(const fs::path& file, const std::string& why) {
  std::error_code ignored;
  fs::remove(file, ignored);
  if (why.empty()) return {};
  return {std::nullopt, file.filename().string() + " was not drawn: " + why};
}

}  // namespace

DrawnFigure draw_seconds(const fs::path& file, const ScalingTable& table,
                         const std::optional<ReferenceTable>& reference) {
  if (drawn_series(table).empty()) return not_drawn(file, "");
  if (!system::program_exists("gnuplot")) {
    return not_drawn(file, "there is no gnuplot in PATH (install gnuplot-nox)");
  }
  try {
    const std::string why = draw(file, table, reference);
    if (why.empty()) return {file, ""};
    return not_drawn(file, why);
  } catch (const std::exception& error) {
    // The figure is an addition: the report is whole without it.
    return not_drawn(file, printable(error.what()));
  }
}

}  // namespace cputrain::report
