// Sections that set one thing beside another: backends, a published table; and where all of it is
// from.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.h"
#include "scaling/cells/axes.h"
#include "scaling/cells/run_figures.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/scaling_document.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

/// The quickest cell of a batch, nullptr where none has a time.
const cells::Cell* quickest(const Grid& grid, std::size_t batch) {
  const auto row = grid.timed(batch);
  const auto best = std::ranges::min_element(
      row, {}, [](const cells::Cell* cell) { return *cell->seconds_per_epoch; });
  return best == row.end() ? nullptr : *best;
}

std::string model_line(const cells::CellTable& t) {
  std::vector<std::string> parts;
  if (!t.model.empty()) parts.push_back(t.model);
  if (t.image_size > 0) parts.push_back(fmt::format("{0}x{0}", t.image_size));
  if (t.parameters > 0) {
    parts.push_back(with_commas(static_cast<std::size_t>(t.parameters)) + " parameters");
  }
  if (t.macs_per_image > 0) {
    parts.push_back(fmt::format("{} million multiply-adds per image forward",
                                figure_text(t.macs_per_image / 1e6)));
  }
  return join(parts, ", ");
}

/// A published time, "n/a", or nothing where this cell was not published.
Entry published_entry(const ReferenceTable& reference, std::size_t batch, int cpus,
                      DocumentTable& table) {
  if (!reference.seconds.contains({batch, cpus})) return {};
  const auto seconds = reference.at(batch, cpus);
  return seconds ? Entry{fmt::format("{}", *seconds)}
                 : Entry{"n/a", "", table.note("n/a in the published table")};
}

/// Up to three rows for a batch: ours, published (as it was printed), ratio.
void add_batch(DocumentTable& table, std::size_t batch, const std::set<int>& cpus,
               const Series& series, const ReferenceTable& reference) {
  Row ours{fmt::format("{} ours", batch), {}, !table.rows.empty()};
  Row theirs{fmt::format("{} published", batch)};
  Row ratio{fmt::format("{} ratio", batch)};
  for (const int c : cpus) {
    const ScalingCell* here = series.strong.at(batch, c);
    ours.entries.push_back(here ? seconds_entry(here->cell, table) : Entry{});
    theirs.entries.push_back(published_entry(reference, batch, c, table));
    const auto by_theirs = here ? reference.ratio(series.about, here->cell) : std::nullopt;
    ratio.entries.push_back(
        by_theirs ? Entry{fmt::format("{:.3f}", *by_theirs),
                          table.shared_mark.empty() ? mark_of(here->cell.status) : "", 0, by_theirs}
                  : Entry{});
  }
  for (Row* row : {&ours, &theirs, &ratio}) {
    if (!row->empty()) table.rows.push_back(std::move(*row));
  }
}

/// The mark that all cells of a series with a time have; empty where they differ.
std::string shared_mark_of(const Series& series) {
  std::set<std::string> marks;
  for (const auto& [where, c] : series.strong.cells) {
    if (c.cell.seconds_per_epoch) marks.insert(mark_of(c.cell.status));
  }
  return marks.size() == 1 ? *marks.begin() : "";
}

DocumentTable beside_reference(const Series& series, const ReferenceTable& reference) {
  DocumentTable table;
  table.shared_mark = shared_mark_of(series);
  table.caption = fmt::format("Seconds per epoch of {}{}, published, and ours by theirs",
                              series.name, shared_text(table.shared_mark));
  table.corner = "batch / CPUs";
  std::set<int> cpus(reference.cpus.begin(), reference.cpus.end());
  cpus.insert(series.strong.cpus.begin(), series.strong.cpus.end());
  std::set<std::size_t> batches(reference.batches.begin(), reference.batches.end());
  for (const GridRow& row : series.strong.rows) batches.insert(row.batch);
  for (const int c : cpus) table.head.push_back(std::to_string(c));
  for (const std::size_t batch : batches) add_batch(table, batch, cpus, series, reference);
  return table;
}

/// "6.86 (7.1 %)".
std::string speed_up_text(double speed_up, double efficiency) {
  return fmt::format("{} ({} %)", figure_text(speed_up), percent_text(efficiency));
}

/// Against the fewest CPUs of its row that were published.
Entry published_speed_up(const ReferenceTable& reference, std::size_t batch, int cpus) {
  const auto seconds = reference.at(batch, cpus);
  for (const int base : reference.cpus) {
    const auto first = reference.at(batch, base);
    if (!seconds || !first) continue;
    const double up = *first / *seconds;
    return {speed_up_text(up, up * base / cpus), "", 0, up};
  }
  return {};
}

/// Percent of its time, where both batches have one.
Entry published_increase(const ReferenceTable& reference, const BatchIncrease& of, int cpus) {
  const auto from = reference.at(of.from, cpus), to = reference.at(of.to, cpus);
  if (!from || !to) return {};
  const double percent = 100 * (*from - *to) / *from;
  return {fmt::format("{:+.1f}", percent), "", 0, percent};
}

DocumentTable speed_ups_beside_reference(const Series& series, const ReferenceTable& reference) {
  DocumentTable table;
  table.caption = fmt::format(
      "Speed-up (efficiency) of {}, and published; each against the fewest CPUs of its row",
      series.name);
  table.corner = "batch / CPUs";
  std::set<int> cpus(reference.cpus.begin(), reference.cpus.end());
  cpus.insert(series.strong.cpus.begin(), series.strong.cpus.end());
  for (const int c : cpus) table.head.push_back(std::to_string(c));
  const auto add = [&](const std::string& label, const std::function<Entry(int)>& entry) {
    Row row{label, {}, label.ends_with(" ours") && !table.rows.empty()};
    for (const int c : cpus) row.entries.push_back(entry(c));
    if (!row.empty()) table.rows.push_back(std::move(row));
  };
  for (const std::size_t batch : reference.batches) {
    add(fmt::format("{} ours", batch), [&](int c) {
      const ScalingCell* here = series.strong.at(batch, c);
      if (!here || !here->speed_up) return Entry{};
      return Entry{speed_up_text(*here->speed_up, *here->efficiency), mark_of(here->against), 0,
                   here->speed_up};
    });
    add(fmt::format("{} published", batch),
        [&](int c) { return published_speed_up(reference, batch, c); });
  }
  const auto increase = batch_increase(series.strong);
  if (!increase) return table;
  const std::string text = increase_text(increase->from, increase->to);
  add(text + ", ours", [&](int c) {
    const auto found = increase->by_cpus.find(c);
    if (found == increase->by_cpus.end()) return Entry{};
    const double percent = 100 * found->second;
    return Entry{fmt::format("{:+.1f}", percent), mark_of(increase->status), 0, percent};
  });
  add(text + ", published", [&](int c) { return published_increase(reference, *increase, c); });
  return table;
}

/// Which experiment is ours and which is published.
std::string experiment_line(const Series& series, const ReferenceTable& reference) {
  const std::string other = reference.other_than(series.about);
  if (!other.empty()) {
    return fmt::format(
        "{}: no ratios, the published table is of another experiment: it differs in {}.",
        series.name, other);
  }
  const std::string ours =
      fmt::format("{}: ours is {}, {} images per epoch", series.name, model_line(series.about),
                  with_commas(series.about.images_per_epoch));
  const bool said = !reference.model.empty() && reference.image_size > 0 && reference.images > 0;
  return ours + (said ? ", as published." : "; the published table does not say all of its own.");
}

std::string machine_line(const cells::CellMachine& m) {
  std::vector<std::string> parts;
  const auto add = [&](bool known, const std::string& text) {
    if (known) parts.push_back(text);
  };
  add(!m.name.empty(), m.name);
  add(!m.platform.empty(), "simulated platform " + m.platform);
  add(!m.cpu.empty(), m.cpu);
  const char* most = m.cpus_per_core > 0 ? " at most" : "";
  add(m.cpus_per_core > 0, fmt::format("{} CPUs per core", m.cpus_per_core));
  add(m.cores > 0, fmt::format("{} cores{}", m.cores, most));
  add(m.hardware_threads > 0, fmt::format("{} hardware threads{}", m.hardware_threads, most));
  add(m.memory_bytes > 0, bytes_text(m.memory_bytes) + " of memory" + most);
  add(!m.host.empty(), "host " + m.host);
  add(!m.os.empty(), m.os);
  add(!m.mpi.empty(), m.mpi);
  add(!m.build.empty(), m.build);
  return join(parts, "; ");
}

}  // namespace

std::string processors_text(const cells::CellTable& t) {
  if (!t.machine.platform.empty()) return "";
  std::vector<placement::CpuId> ids;
  const auto add = [&](const placement::CpuId& id) {
    if (id.known() && std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  };
  add(t.machine.cpu_id);
  for (const cells::Cell& cell : t.cells) add(cell.origin.cpu_id);
  if (ids.empty()) return text_of(placement::CpuId{});
  std::vector<std::string> texts;
  for (const placement::CpuId& id : ids) texts.push_back(text_of(id, true));
  return join(texts, " and ");
}

std::string kernels_text(const cells::CellTable& t) {
  if (!t.machine.platform.empty()) return "";
  std::set<std::string> versions;
  for (const cells::Cell& cell : t.cells) {
    if (!cell.seconds_per_epoch) continue;
    const auto& version = cell.origin.kernels_version;
    versions.insert(cell.backend + " " + (version ? std::to_string(*version) : "not recorded"));
  }
  return join(std::vector<std::string>(versions.begin(), versions.end()), ", ");
}

Section backends_section(const ScalingFacts& facts) {
  std::vector<const Series*> series;
  std::set<std::size_t> batches;
  for (const Series& s : facts.table.series) {
    if (s.strong.empty()) continue;
    series.push_back(&s);
    for (const GridRow& row : s.strong.rows) batches.insert(row.batch);
  }
  if (series.size() < 2) return {};
  DocumentTable best{.caption =
                         "Seconds per epoch of each at its best number of CPUs, and times "
                         "as quick as " +
                         series[0]->name,
                     .corner = "batch"};
  for (const Series* s : series) best.head.push_back(s->name);
  for (const std::size_t batch : batches) {
    Row& row = best.rows.emplace_back(Row{std::to_string(batch)});
    const cells::Cell* first = quickest(series[0]->strong, batch);
    for (const Series* s : series) {
      const cells::Cell* here = quickest(s->strong, batch);
      if (!here) {
        row.entries.push_back({});
        continue;
      }
      const double seconds = *here->seconds_per_epoch;
      std::string text = fmt::format("{} on {} {}", figure_text(seconds), here->cpus,
                                     cpus_text(s->backend, here->cpus));
      if (first && here != first) {
        text += fmt::format(" ({}×)", figure_text(*first->seconds_per_epoch / seconds));
      }
      row.entries.push_back({text, mark_of(here->status)});
    }
  }
  Section section{.id = "backends", .title = "Beside each other", .tables = {std::move(best)}};
  const std::size_t images = series[0]->about.images_per_epoch;
  if (std::ranges::any_of(series,
                          [&](const Series* s) { return s->about.images_per_epoch != images; })) {
    section.remarks.push_back("Their epochs have different numbers of images.");
  }
  return section;
}

Section reference_section(const ScalingFacts& facts) {
  const std::optional<ReferenceTable>& reference = facts.reference;
  if (!reference) return {};
  Section section{"reference", "Beside the published table"};
  section.paragraphs.push_back(
      fmt::format("Published: {}. A ratio below 1 means that ours takes less time; it compares "
                  "machines as well as programs.",
                  reference->name));
  for (const Series& series : facts.table.series) {
    if (training::is_device(series.backend) || series.strong.empty()) continue;
    section.tables.push_back(beside_reference(series, *reference));
    if (reference->other_than(series.about).empty()) {
      section.tables.push_back(speed_ups_beside_reference(series, *reference));
    }
    section.remarks.push_back(experiment_line(series, *reference));
  }
  for (const auto& [a, b] : identical_rows(*reference)) {
    section.remarks.push_back(
        fmt::format("Rows {} and {} of the published table are identical in print: one of them is "
                    "probably a copying error, so do not judge by it alone.",
                    a, b));
  }
  return section;
}

Section conditions_section(const ScalingFacts& facts) {
  Section section{.id = "conditions", .title = "What was run, on what"};
  if (!facts.table.has_strong()) section.remarks = facts.table.remarks;
  for (const CellSource& source : facts.sources) {
    const cells::CellTable& t = source.table;
    DocumentTable known{.caption = source.name, .corner = "what", .head = {""}, .words = true};
    const auto add = [&](const char* label, const std::string& text) {
      if (!text.empty()) known.rows.push_back({label, {{text}}});
    };
    add("machine", machine_line(t.machine));
    add("processor", processors_text(t));
    add("GPUs", cells::devices_text(t));
    add("kernels", kernels_text(t));
    add("weights", t.weights);
    add("model", model_line(t));
    add("data", t.data);
    add("images per epoch", t.images_per_epoch ? with_commas(t.images_per_epoch) : "");
    add("seed", std::to_string(t.seed));
    std::vector<std::string> options;
    for (const auto& [name, value] : t.options) options.push_back(cells::option_text(name, value));
    add("options", join(options, " "));
    add("date", t.date);
    add("commit", t.commit);
    add("costs", t.costs);
    add("command", t.command);
    section.tables.push_back(std::move(known));
  }
  return section;
}

}  // namespace cputrain::report
