#include "scaling/report/sweep_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "core/text.h"
#include "scaling/cells/axes.h"
#include "scaling/cells/run_figures.h"
#include "scaling/report/forms/escapes.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/scaling_document.h"

namespace cputrain::report {
namespace {

/// Where a cell is in both tables. A listed flag counts where it has several values in one of them;
/// what holds for all of a table is what the comparison may be about.
cells::Place compared_place(const std::vector<cells::ListedFlag>& varied,
                            const cells::CellTable& table, cells::Cell cell) {
  cells::FlagTexts axes;
  for (const cells::ListedFlag& flag : varied) {
    axes[std::string(flag.name)] = cells::value_of(flag, table, cell);
  }
  cell.axes = std::move(axes);
  return cells::place_of(cell);
}

/// Why an epoch of one is not the work of an epoch of the other; empty where it is, as far as both
/// say.
std::string other_work(const cells::CellTable& before, const cells::CellTable& after) {
  std::vector<std::string> parts;
  const auto compare = [&](const char* what, bool both, const auto& a, const auto& b) {
    if (both && a != b) parts.push_back(fmt::format("{} ({} and {})", what, a, b));
  };
  compare("model", !before.model.empty() && !after.model.empty(), printable(before.model),
          printable(after.model));
  compare("image size", before.image_size > 0 && after.image_size > 0, before.image_size,
          after.image_size);
  compare("images per epoch", before.images_per_epoch > 0 && after.images_per_epoch > 0,
          before.images_per_epoch, after.images_per_epoch);
  return parts.empty() ? "" : "an epoch is other work: they differ in " + join(parts, ", ");
}

CellDifference compared(const cells::Cell& before, const cells::Cell& after,
                        const std::string& other) {
  CellDifference result{before, after, std::nullopt, Verdict::absent, other};
  if (!other.empty()) return result;
  if (!before.seconds_per_epoch || !after.seconds_per_epoch) {
    result.why = reason_text(before.seconds_per_epoch ? after : before);
    return result;
  }
  result.ratio = gain_of(after, before);
  if (!result.ratio->interval) {
    result.why = "too few repeats: an interval needs two of each";
    return result;
  }
  result.verdict = Verdict::no_difference_shown;
  if (result.ratio->interval->high < 1) {
    result.verdict = Verdict::faster;
  } else if (result.ratio->interval->low > 1) {
    result.verdict = Verdict::slower;
  }
  return result;
}

using Json = nlohmann::ordered_json;

std::string name_of(const cells::Cell& c) {
  std::string name =
      fmt::format("{} {}, {} × {}, batch {}, {}", c.cpus, cpus_text(c.backend, c.cpus), c.ranks,
                  c.threads, c.batch, c.backend);
  for (const auto& [flag, value] : c.axes) name += ", " + cells::option_text(flag, value);
  return name;
}

Entry interval_entry(const CellDifference& d, DocumentTable& table) {
  const Interval* interval = d.interval();
  if (!interval) return {"n/a", "", table.note(d.why)};
  return {fmt::format("{:.4f} to {:.4f}", interval->low, interval->high)};
}

DocumentTable differences_table(const std::vector<CellDifference>& differences) {
  using D = const CellDifference&;
  using T = DocumentTable&;
  const auto ratio = [](D d, T) {
    return Entry{d.ratio ? fmt::format("{:.4f}", d.ratio->of_means) : kNotKnown};
  };
  return table_of<CellDifference>(
      "Seconds per epoch (medians), the ratio of geometric means and its 95 % interval", "cell",
      differences, [](D d) { return name_of(d.before); },
      {{"before", [](D d, T t) { return seconds_entry(d.before, t); }},
       {"after", [](D d, T t) { return seconds_entry(d.after, t); }},
       {"after by before", ratio},
       {"95 % interval", interval_entry},
       {"verdict", [](D d, T) { return Entry{verdict_text(d.verdict)}; }}});
}

std::size_t count(const std::vector<CellDifference>& all, Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(all, verdict, &CellDifference::verdict));
}

/// "1 is", "2 are".
std::string verb_text(std::size_t n, const char* one, const char* several) {
  return fmt::format("{} {}", n, n == 1 ? one : several);
}

Json rows_of(const std::vector<CellDifference>& differences) {
  Json rows = Json::array();
  for (const CellDifference& d : differences) {
    const cells::Cell& c = d.before;
    const Interval* interval = d.interval();
    rows.push_back({{"cpus", c.cpus},
                    {"batch", c.batch},
                    {"backend", c.backend},
                    {"ranks", c.ranks},
                    {"threads", c.threads},
                    {"batch_per_rank", known(c.batch_per_rank)},
                    {"axes", c.axes},
                    {"before",
                     {{"status", cells::status_name(c.status)},
                      {"seconds_per_epoch", known(c.seconds_per_epoch)}}},
                    {"after",
                     {{"status", cells::status_name(d.after.status)},
                      {"seconds_per_epoch", known(d.after.seconds_per_epoch)}}},
                    {"ratio", d.ratio ? Json(d.ratio->of_means) : Json()},
                    {"interval", interval ? Json{interval->low, interval->high} : Json()},
                    {"verdict", verdict_text(d.verdict)},
                    {"why", d.why}});
  }
  return rows;
}

}  // namespace

std::string verdict_text(Verdict verdict) {
  constexpr const char* kWords[] = {"faster", "slower", "no difference shown", "n/a"};
  return kWords[static_cast<std::size_t>(verdict)];
}

std::vector<CellDifference> compare_sweeps(const cells::CellTable& before,
                                           const cells::CellTable& after) {
  std::vector<CellDifference> result;
  const std::string why_not = other_work(before, after);
  std::vector<cells::ListedFlag> varied = cells::varied_flags(before);
  add_all(varied, cells::varied_flags(after));
  std::map<cells::Place, const cells::Cell*> others;
  for (const cells::Cell& cell : after.cells) {
    others.emplace(compared_place(varied, after, cell), &cell);
  }
  for (const cells::Cell& cell : before.cells) {
    const auto other = others.find(compared_place(varied, before, cell));
    if (other != others.end()) result.push_back(compared(cell, *other->second, why_not));
  }
  return result;
}

std::vector<std::string> conditions_that_differ(const cells::CellTable& before,
                                                const cells::CellTable& after) {
  std::vector<std::string> result;
  const auto named = [](const std::string& text) { return text.empty() ? "not said" : text; };
  const auto differ = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b)
      result.push_back(fmt::format("They differ in {}: {} and {}.", what, named(a), named(b)));
  };
  differ("model", before.model, after.model);
  differ("image size", std::to_string(before.image_size), std::to_string(after.image_size));
  differ("images per epoch", std::to_string(before.images_per_epoch),
         std::to_string(after.images_per_epoch));
  differ("data", before.data, after.data);
  differ("platform", before.machine.platform, after.machine.platform);
  differ("processor", before.machine.cpu, after.machine.cpu);
  differ("kind of processor", processors_text(before), processors_text(after));
  differ("kernels", kernels_text(before), kernels_text(after));
  differ("commit", before.commit, after.commit);
  differ("GPUs", cells::devices_text(before), cells::devices_text(after));
  differ("host", before.machine.host, after.machine.host);
  differ("MPI", before.machine.mpi, after.machine.mpi);
  differ("build", before.machine.build, after.machine.build);
  std::map<std::string, std::string> both = before.options;
  both.insert(after.options.begin(), after.options.end());
  for (const auto& option : both) {
    const auto text = [&](const cells::CellTable& table) {
      const auto found = table.options.find(option.first);
      return found == table.options.end() ? "" : found->second;
    };
    differ(("--" + option.first).c_str(), text(before), text(after));
  }
  return result;
}

Document difference_document(const std::vector<CellDifference>& differences,
                             const CellSource& before, const CellSource& after) {
  Document document{before.name + " and " + after.name + " beside each other"};
  const std::size_t faster = count(differences, Verdict::faster),
                    slower = count(differences, Verdict::slower),
                    alike = count(differences, Verdict::no_difference_shown),
                    absent = count(differences, Verdict::absent);
  document.summary.push_back(
      fmt::format("Of {} in both, {} faster in {}, {} slower, {} no difference, and {} n/a, with "
                  "the reason below the table.",
                  counted(differences.size(), "cell"), verb_text(faster, "is", "are"), after.name,
                  verb_text(slower, "is", "are"), verb_text(alike, "shows", "show"),
                  verb_text(absent, "is", "are")));
  Section section{.id = "difference",
                  .title = "Cell by cell",
                  .tables = {differences_table(differences)},
                  .remarks = conditions_that_differ(before.table, after.table)};
  // Axes that other programs wrote may give several cells one partner.
  const auto alone_in = [&](const CellSource& source) {
    const std::size_t cells = source.table.cells.size();
    return cells - std::min(cells, differences.size());
  };
  const std::size_t first = alone_in(before), second = alone_in(after);
  if (first + second > 0) {
    section.remarks.push_back(fmt::format("In one of them only: {} of {} and {} of {}.",
                                          counted(first, "cell"), before.name, second, after.name));
  }
  section.remarks.push_back(
      "The interval is Welch's t for the difference of the mean logarithms of the repeats, taken "
      "back to a ratio (B. L. Welch, Biometrika 34, 1947); the ratio in its middle is that of the "
      "geometric means.");
  const auto tested = std::ranges::count_if(
      differences, [](const CellDifference& d) { return d.interval() != nullptr; });
  section.remarks.push_back(
      fmt::format("Faster and slower mean that the interval leaves out 1. Of {} with an interval, "
                  "and without any difference, about {:.1f} would do so by chance, and repeats in "
                  "one sitting do not show what changes from day to day.",
                  counted(tested, "cell"), 0.05 * static_cast<double>(tested)));
  document.sections.push_back(std::move(section));
  return document;
}

std::string difference_csv(const std::vector<CellDifference>& differences) {
  std::vector<CsvColumn> columns{{"backend"}, {"cpus"},  {"ranks"},
                                 {"threads"}, {"batch"}, {"batch_per_rank"}};
  for (const cells::ListedFlag& flag : cells::kListedFlags) {
    columns.push_back({std::string(flag.name), "/axes/" + std::string(flag.name)});
  }
  columns.insert(columns.end(), {{"before_status", "/before/status"},
                                 {"before_seconds", "/before/seconds_per_epoch"},
                                 {"after_status", "/after/status"},
                                 {"after_seconds", "/after/seconds_per_epoch"},
                                 {"ratio"},
                                 {"ratio_low", "/interval/0"},
                                 {"ratio_high", "/interval/1"},
                                 {"verdict"},
                                 {"why"}});
  Csv csv(columns);
  for (const Json& row : rows_of(differences)) csv.add(row);
  return csv.text();
}

Json difference_json(const std::vector<CellDifference>& differences, const CellSource& before,
                     const CellSource& after) {
  return {{"version", 1},
          {"before", before.name},
          {"after", after.name},
          {"confidence", 0.95},
          {"method", "Welch's t on logarithms of seconds"},
          {"warnings", conditions_that_differ(before.table, after.table)},
          {"cells", rows_of(differences)}};
}

}  // namespace cputrain::report
