#include "scaling/cells/axes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "scaling/cells/explanation.h"
#include "scaling/cells/plan.h"

namespace cputrain::cells {
namespace {

SweepGrid grid_of_all() {
  SweepGrid grid;
  grid.cpus = {2, 3};
  grid.threads = {1, 2};
  grid.batches = {16};
  grid.batches_per_rank = {16};
  grid.backends = {"cpu", "cuda"};
  grid.listed = {{"allreduce", {"auto", "ring:0-8192;mpi:8193-max"}}, {"lr", {"default", "0.1"}}};
  return grid;
}

TEST(AxesTest, EveryCombinationIsACellOfItsOwn) {
  const SweepGrid grid = grid_of_all();
  const std::vector<Cell> cells = cells_of(grid);
  // 2 and 3 CPUs of one thread, 2 of two; 2 and 3 GPUs; two kinds of batch, two values of two
  // flags.
  EXPECT_EQ(cells.size(), (3u + 2) * 2 * 4);
  EXPECT_EQ(count_cells(grid), cells.size());
  std::set<Place> places;
  std::set<std::string> names, texts;
  for (const Cell& cell : cells) {
    places.insert(place_of(cell));
    names.insert(cell_name(cell));
    texts.insert(cell_text(cell));
  }
  EXPECT_EQ(places.size(), cells.size());
  EXPECT_EQ(names.size(), cells.size());
  EXPECT_EQ(texts.size(), cells.size());
}

TEST(AxesTest, TheUsualValueIsNoNameAndNoDifference) {
  Cell cell;
  cell.axes = {{"allreduce", "ring"}, {"compress", "none"}, {"lr", "0.1"}};
  EXPECT_EQ(cell_name(cell), "np1-t1-b1-cpu-allreduce=ring-lr=0.1");
  EXPECT_EQ(cell_text(cell),
            "1 rank x 1 thread, batch 1, cpu, --allreduce ring, --compress none, --lr 0.1");
  Cell silent = cell;
  silent.axes.erase("compress");
  EXPECT_EQ(place_of(cell), place_of(silent));
  silent.axes["compress"] = "fp16";
  EXPECT_NE(place_of(cell), place_of(silent));
  // As a folder's name: nothing that a shell or a path reads otherwise.
  cell.axes = {{"allreduce", "ring:0-8192;mpi:8193-max"}};
  EXPECT_EQ(cell_name(cell), "np1-t1-b1-cpu-allreduce=ring_0-8192_mpi_8193-max");
}

TEST(AxesTest, AValueIsTheCellsElseTheTablesElseTheUsualOne) {
  CellTable table;
  Cell cell;
  const ListedFlag& allreduce = *listed_flag("allreduce");
  EXPECT_EQ(value_of(allreduce, table, cell), "auto");
  table.options = {{"allreduce", "tree"}};
  EXPECT_EQ(value_of(allreduce, table, cell), "tree");
  cell.axes = {{"allreduce", "ring"}};
  EXPECT_EQ(value_of(allreduce, table, cell), "ring");
  table.cells = {cell, Cell{}};
  ASSERT_EQ(varied_flags(table).size(), 1u);
  EXPECT_EQ(axes_text(varied_flags(table), table, table.cells[1]), "--allreduce tree");
  table.cells[1].axes = cell.axes;
  EXPECT_TRUE(varied_flags(table).empty());
  EXPECT_EQ(listed_flag("batch"), nullptr);
}

// A flag of all cells and the same value of one cell are one experiment.
TEST(AxesTest, SeriesAreToldApartByValuesWhereverTheyStand) {
  CellTable whole, listed;
  whole.options = {{"allreduce", "ring"}, {"compress", "none"}, {"seed", "3"}};
  listed.options = {{"seed", "3"}};
  Cell cell, ring;
  ring.axes = {{"allreduce", "ring"}, {"precision", "default"}};
  EXPECT_EQ(identity_of(whole, cell), identity_of(listed, ring));
  const SeriesIdentity a = identity_of(listed, cell), b = identity_of(listed, ring);
  EXPECT_NE(a, b);
  EXPECT_TRUE(differ_in_axes_alone(a, b));
  EXPECT_EQ(options_apart(a, {a, b}), "--allreduce auto");
  EXPECT_EQ(name_of(b, {a, b}), "cpu, --allreduce ring");
  listed.options = {};
  EXPECT_FALSE(differ_in_axes_alone(identity_of(listed, cell), b));
}

TEST(AxesTest, AFileHasThem) {
  Cell cell;
  cell.axes = {{"allreduce", "ring"}, {"lr", "0.1"}};
  cell.reason = "not measured yet";
  cell.peak_rank_bytes = 3e8;
  cell.peak_node_bytes = 5e8;
  const nlohmann::json json = to_json(cell);
  EXPECT_EQ(json.at("axes").dump(), R"({"allreduce":"ring","lr":"0.1"})");
  const Cell read = cell_from_json(json, "here");
  EXPECT_EQ(read.axes, cell.axes);
  EXPECT_EQ(read.peak_node_bytes, 5e8);
  EXPECT_EQ(read.peak_device_bytes, std::nullopt);
  nlohmann::json old = json;
  old.erase("axes");
  EXPECT_TRUE(cell_from_json(old, "here").axes.empty());
  old["axes"] = {{"all reduce", "ring"}};
  EXPECT_THROW(cell_from_json(old, "here"), Error);
}

// Ranks that pay with one algorithm say nothing about those with another.
TEST(AxesTest, RemarksKeepThemApart) {
  CellTable table;
  const auto add = [&](int ranks, const char* allreduce, double seconds) {
    Cell cell;
    cell.cpus = cell.ranks = ranks;
    cell.batch = 64;
    cell.axes = {{"allreduce", allreduce}};
    cell.status = CellStatus::measured;
    cell.seconds_per_epoch = seconds;
    cell.repeats = {seconds, seconds * 1.001, seconds * 0.999};
    table.cells.push_back(cell);
  };
  add(1, "ring", 100);
  add(2, "ring", 99);
  add(1, "shm", 100);
  add(2, "shm", 50);
  const auto lines = remarks(table);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].starts_with("cpu, --allreduce ring, 1 thread per rank: at 32 images"));
  EXPECT_TRUE(lines[1].starts_with("cpu, --allreduce shm, 1 thread per rank: more ranks paid"));
}

}  // namespace
}  // namespace cputrain::cells
