#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scaling/report/scaling_document.h"
#include "scaling/report/scaling_table.h"

/// Made cells, for tests of tables.
namespace cputrain::testing {

inline cells::Cell cell(int ranks, int threads, std::size_t batch, double seconds,
                        cells::CellStatus status = cells::CellStatus::measured) {
  cells::Cell c;
  c.cpus = ranks * threads;
  c.ranks = ranks;
  c.threads = threads;
  c.batch = batch;
  c.status = status;
  c.seconds_per_epoch = seconds;
  return c;
}

inline cells::Cell absent(int ranks, std::size_t batch, const std::string& reason) {
  cells::Cell c = cell(ranks, 1, batch, 1, cells::CellStatus::absent);
  c.seconds_per_epoch.reset();
  c.reason = reason;
  return c;
}

inline report::CellSource source(std::vector<cells::Cell> cells, const std::string& folder = "a") {
  cells::CellTable table;
  table.model = "dogcat";
  table.images_per_epoch = 22500;
  table.machine.cpu_id.vendor = "one";
  for (cells::Cell& c : cells) {
    if (!c.origin.kernels_version) c.origin.kernels_version = 1;
  }
  table.cells = std::move(cells);
  return {folder, std::move(table), folder};
}

inline report::Document document_of(
    const std::vector<report::CellSource>& sources, const cells::Prices& prices = {},
    const std::optional<report::ReferenceTable>& paper = std::nullopt) {
  const report::ScalingTable table = report::make_scaling_table(sources, prices);
  return report::scaling_document({table, sources, paper, prices, {}});
}

}  // namespace cputrain::testing
