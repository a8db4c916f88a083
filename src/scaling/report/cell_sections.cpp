// Sections with a row for every cell: where its time goes, what limits it, splits, spread.

#include <fmt/format.h>

#include <map>

#include "core/statistics/statistics.h"
#include "scaling/cells/explanation.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/scaling_document.h"

namespace cputrain::report {
namespace {

/// A row's name says what kind of figures the row has.
std::string row_name(const ScalingTable& table, const Series& series, const ScalingCell& c) {
  const std::string mark = mark_of(c.cell.status);
  const bool said = mark.empty() || shared_status(table) == c.cell.status ||
                    (table.series.size() > 1 && series.name.ends_with(mark));
  return place_text(table, series, c.cell) + (said ? "" : ", " + mark);
}

/// In a caption: the status that all cells share and that no row repeats.
std::string all_text(const ScalingTable& table) {
  const auto status = shared_status(table);
  return status ? shared_text(mark_of(*status)) : "";
}

/// A cell for each row: there may be many of them.
DocumentTable cell_table(std::string caption, const ScalingTable& table) {
  return {.caption = std::move(caption) + all_text(table),
          .corner = "cell",
          .sortable = true,
          .filterable = true};
}

std::string split_text(const cells::Cell& cell) {
  return fmt::format("{} × {}", cell.ranks, cell.threads);
}

/// For each kind of time that cells lost: the cell that lost most of it, and what to try.
std::vector<std::string> starved_remarks(const ScalingTable& table) {
  std::map<std::string, std::pair<double, std::string>> worst;
  table.for_each([&](const Series& series, const ScalingCell& c) {
    for (const cells::LostTime& lost : cells::lost_time_of(c.cell)) {
      auto& [share, text] = worst[lost.what];
      if (lost.share <= share) continue;
      share = lost.share;
      text = place_text(table, series, c.cell) + ": " + lost.sentence;
    }
  });
  std::vector<std::string> remarks;
  for (auto& [what, most] : worst) remarks.push_back(std::move(most.second));
  return remarks;
}

}  // namespace

Section budget_section(const ScalingFacts& facts) {
  const ScalingTable& table = facts.table;
  DocumentTable parts =
      cell_table("Where the time of an epoch goes (% of it, mean over ranks)", table);
  parts.head = {"input", "forward", "backward", "allreduce", "stragglers", "optimizer", "other"};
  table.for_each([&](const Series& series, const ScalingCell& c) {
    if (!c.cell.budget || !c.cell.seconds_per_epoch) return;
    Row& row = parts.rows.emplace_back(Row{row_name(table, series, c)});
    for (const BudgetPart& part : kBudgetParts) {
      const double seconds = *c.cell.budget.*part.seconds;
      row.entries.push_back(figure_entry(100 * seconds / *c.cell.seconds_per_epoch, decimals<1>));
    }
  });
  return with_tables(
      {.id = "budget",
       .title = "Where the time goes",
       .plots = {"budget"},
       .tables = {std::move(parts)},
       .remarks = {
           "input: waiting for images; allreduce: communication that computing did not hide; "
           "stragglers: waiting for the last rank."}});
}

Section limits_section(const ScalingFacts& facts) {
  const ScalingTable& table = facts.table;
  DocumentTable limits =
      cell_table("By its budget and the limits of the machine, measured beside it", table);
  limits.head = {"limit", "why"};
  limits.words = true;
  table.for_each([&](const Series& series, const ScalingCell& c) {
    const bool absent = c.cell.status == cells::CellStatus::absent;
    const cells::CellLimits known = c.cell.limits.what.empty()
                                        ? cells::explain(c.cell, series.about.parameters)
                                        : c.cell.limits;
    if (known.what.empty() && !absent) return;
    const bool said = absent || shared_status(table) == c.cell.status;
    const std::string mark = said ? "" : mark_of(c.cell.status);
    limits.rows.push_back(
        {place_text(table, series, c.cell),
         {{absent ? "n/a" : known.what, mark}, {absent ? reason_text(c.cell) : known.why}}});
  });
  return with_tables({.id = "limits",
                      .title = "What limits each cell",
                      .tables = {std::move(limits)},
                      .remarks = starved_remarks(table)});
}

Section splits_section(const ScalingFacts& facts) {
  const ScalingTable& table = facts.table;
  DocumentTable splits =
      cell_table("Seconds per epoch by ranks × threads, the quickest first", table);
  if (const auto status = shared_status(table)) splits.shared_mark = mark_of(*status);
  table.for_each([&](const Series& series, const ScalingCell& c) {
    if (c.splits.size() < 2) return;
    Row& row = splits.rows.emplace_back(Row{place_text(table, series, c.cell)});
    for (const cells::Cell& split : c.splits) {
      Entry entry = seconds_entry(split, splits);
      entry.text = split_text(split) + ": " + entry.text;
      row.entries.push_back(std::move(entry));
    }
    while (splits.head.size() < row.entries.size()) {
      splits.head.push_back(splits.head.empty() ? "quickest" : "then");
    }
  });
  for (Row& row : splits.rows) row.entries.resize(splits.head.size());
  return with_tables({.id = "splits",
                      .title = "Ranks and threads",
                      .tables = {std::move(splits)},
                      .remarks = {"All other tables have the quickest split of each cell."}});
}

Section spread_section(const ScalingFacts& facts) {
  const ScalingTable& table = facts.table;
  DocumentTable spread = cell_table("Spread of the repeats (seconds per epoch)", table);
  spread.head = {
      "ranks × threads",        "repeats",       "median", "least", "most", "range (% of median)",
      "interval of the median", "confidence (%)"};
  bool of_steps = false;
  table.for_each([&](const Series& series, const ScalingCell& c) {
    if (!c.cell.seconds_per_epoch || !c.cell.spread) return;
    of_steps |= c.cell.repeats.size() == 1 && c.cell.spread->low < c.cell.spread->high;
    const double median_time = *c.cell.seconds_per_epoch;
    const Interval& range = *c.cell.spread;
    Row row{row_name(table, series, c), {}, false};
    row.entries = {{split_text(c.cell)},
                   {std::to_string(c.cell.repeats.size())},
                   figure_entry(median_time),
                   figure_entry(range.low),
                   figure_entry(range.high),
                   figure_entry(100 * (range.high - range.low) / median_time, decimals<1>)};
    if (c.cell.repeats.size() > 1) {
      const auto [interval, confidence] = median_interval(c.cell.repeats);
      row.entries.push_back({figure_text(interval.low) + " to " + figure_text(interval.high)});
      row.entries.push_back({fmt::format("{:.1f}", 100 * confidence)});
    } else {
      row.entries.resize(spread.head.size());
    }
    spread.rows.push_back(std::move(row));
  });
  Section section{
      .id = "spread",
      .title = "Spread of the repeats",
      .tables = {std::move(spread)},
      .remarks = {"The interval is made of two of the repeats and holds the true median with the "
                  "confidence beside it, whatever the distribution (order statistics): 95 % needs "
                  "six repeats."}};
  if (of_steps) {
    section.remarks.push_back("A benchmark is one repeat: least and most are those of its steps.");
  }
  return with_tables(std::move(section));
}

}  // namespace cputrain::report
