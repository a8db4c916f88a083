#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "scaling/cells/cells.h"
#include "scaling/report/reference_table.h"
#include "scaling/report/scaling_document.h"
#include "scaling/report/scaling_table.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing::tables_fuzzer {
namespace {

std::string text_of(const cells::CellTable& table) { return json_text(to_json(table)); }

/// What `report` makes of a table.
void report_on(const cells::CellTable& table, const std::optional<report::ReferenceTable>& others) {
  const std::vector<report::CellSource> sources{{own_folder(), table, "here"}};
  is_taken([&] {
    const cells::Prices prices;
    const report::ScalingTable scaling = report::make_scaling_table(sources, prices);
    const report::Document document =
        report::scaling_document({scaling, sources, others, prices, report::curves_of(scaling)});
    report::markdown(document);
    report::latex(document);
    report::table_csv(scaling, others);
    json_text(report::table_json(scaling, others));
  });
}

cells::CellTable good_table() {
  cells::CellTable table{.model = "dogcat", .image_size = 64, .images_per_epoch = 1000};
  table.options = {{"optimizer", "adam"}};
  for (const int ranks : {1, 2, 96}) {
    cells::Cell cell{.cpus = ranks * 2, .batch = 64, .ranks = ranks, .threads = 2};
    cell.status = cells::CellStatus::measured;
    cell.seconds_per_epoch = 8.0 / ranks;
    cell.spread = Interval{7.0 / ranks, 9.0 / ranks};
    cell.repeats = {7.0 / ranks, 8.0 / ranks, 9.0 / ranks};
    cell.axes = {{"allreduce", "ring"}};
    cell.budget = Budget{.input_wait = 0.125, .forward = 0.5, .other = -0.25};
    cell.runs = {"cells/a/repeat-1"};
    table.cells.push_back(cell);
  }
  table.cells.push_back({.cpus = 4, .batch = 128, .ranks = 4, .reason = "no such machine"});
  table.cells.push_back({.cpus = 2, .batch = 64, .batch_per_rank = 32, .ranks = 2, .reason = "-"});
  return table;
}

/// Tables of cells, and one that somebody published.
std::vector<std::string> seeds() {
  return {text_of(good_table()),
          R"({"version": 1, "cells": [{"cpus": 2, "batch": 16, "backend": "cpu",
              "seconds_per_epoch": 3.5, "spread": [3.0, 4.0], "status": "scaled"}]})",
          "# model=dogcat, image_size=64, images=1000\ncpus,batch,seconds_per_epoch\n"
          "2,64,10.5\n4,64,\n\"192\",64,0.25\n"};
}

bool takes(const std::string& text) {
  const bool is_table = is_taken([&] {
    const cells::CellTable table = cells::read_cells(own_file("cells.json", text));
    const std::string written = text_of(table);
    promise(text_of(cells::read_cells(own_file("again.json", written))) == written,
            "a table that is written is read again");
    report_on(table, std::nullopt);
  });
  const bool is_reference = is_taken([&] {
    const auto table = report::parse_reference(text, "reference.csv");
    report::identical_rows(table);
    report_on(good_table(), table);
  });
  return is_table || is_reference;
}

const Fuzzer kFuzzer{"tables", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::tables_fuzzer
