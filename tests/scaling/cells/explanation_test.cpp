#include "scaling/cells/explanation.h"

#include <gtest/gtest.h>

namespace cputrain::cells {
namespace {

/// 100 s an epoch of 10,000 images, most of it computing.
Cell usual_cell() {
  Cell cell;
  cell.ranks = cell.cpus = 4;
  cell.batch = 100;
  cell.status = CellStatus::scaled;
  cell.seconds_per_epoch = 100;
  cell.images_per_second = 100;
  cell.budget = Budget{.input_wait = 2,
                       .forward = 40,
                       .backward = 50,
                       .allreduce_exposed = 3,
                       .straggler_wait = 4,
                       .optimizer = 1};
  cell.gflops = 600;
  cell.fma_gflops = 480;
  cell.triad_gbs = 20;
  return cell;
}

TEST(ExplainTest, Compute) {
  const CellLimits limits = explain(usual_cell(), 1e6);
  EXPECT_EQ(limits.what, "compute");
  EXPECT_EQ(limits.why,
            "90 % of the epoch is forward and backward, 600 GFLOP/s counting direct convolution: "
            "1.25 of the 480 that these CPUs can multiply and add");
}

TEST(ExplainTest, TheLargestWaitOfATenthOrMore) {
  Cell cell = usual_cell();
  cell.budget->input_wait = 12;
  EXPECT_EQ(explain(cell, 1e6).what, "input");
  cell.budget->allreduce_exposed = 21;
  EXPECT_EQ(explain(cell, 1e6).what, "communication");
  EXPECT_EQ(
      explain(cell, 1e6).why,
      "21 % of the epoch is communication that backward does not hide, with 25 images per rank "
      "and step to compute beside it");
  cell.budget->straggler_wait = 30;
  EXPECT_EQ(explain(cell, 1e6).what, "imbalance");
  EXPECT_NE(explain(cell, 1e6).why.find("30 %"), std::string::npos);
}

TEST(ExplainTest, MemoryWhereWeightsAloneNeedAQuarterOfTheStep) {
  Cell cell = usual_cell();  // steps of 1 s
  // 24 bytes a parameter at 20 GB/s: 0.24 s and 0.26 s
  EXPECT_EQ(explain(cell, 0.24 * 20e9 / 24).what, "compute");
  const CellLimits limits = explain(cell, 0.26 * 20e9 / 24);
  EXPECT_EQ(limits.what, "memory bandwidth");
  EXPECT_NE(limits.why.find("0.26 of the 1 s"), std::string::npos) << limits.why;
  cell.budget->input_wait = 25;  // less than memory's part
  EXPECT_EQ(explain(cell, 0.26 * 20e9 / 24).what, "memory bandwidth");
  cell.budget->input_wait = 27;
  EXPECT_EQ(explain(cell, 0.26 * 20e9 / 24).what, "input");
  // Memory that is too little to be named does not hide a wait that is enough.
  cell.budget->input_wait = 20;
  EXPECT_EQ(explain(cell, 0.22 * 20e9 / 24).what, "input");
}

// 10,000 images per epoch of 100 s are one step, not a fifth of one.
TEST(ExplainTest, ABatchOfMoreImagesThanThereAre) {
  Cell cell = usual_cell();
  cell.batch = 50'000;
  const double parameters = 30 * 20e9 / 24;  // 30 s at 20 GB/s
  EXPECT_EQ(explain(cell, parameters).what, "memory bandwidth");
  cell.budget->allreduce_exposed = 40;
  EXPECT_NE(explain(cell, parameters).why.find("with 2500 images per rank"), std::string::npos);
}

TEST(ExplainTest, TimeThatTheHostTookIsAdded) {
  Cell cell = usual_cell();
  const std::string alone = explain(cell, 1e6).why;
  cell.stolen = 0.04;
  EXPECT_EQ(explain(cell, 1e6).why, alone);
  cell.stolen = 0.12;
  EXPECT_EQ(explain(cell, 1e6).what, "compute");
  EXPECT_EQ(explain(cell, 1e6).why,
            alone + "; 12 % of a rank's CPU time went to others on its host");
  cell.cpu_wait = 0.099;
  EXPECT_EQ(explain(cell, 1e6).why,
            alone + "; 12 % of a rank's CPU time went to others on its host");
  cell.cpu_wait = 0.4;
  EXPECT_EQ(explain(cell, 1e6).why,
            alone +
                "; 12 % of a rank's CPU time went to others on its host; threads of a rank waited "
                "40 % of their time for a CPU");
  cell.stolen.reset();
  EXPECT_EQ(explain(cell, 1e6).why,
            alone + "; threads of a rank waited 40 % of their time for a CPU");
  cell.stolen = 0.12;
  cell.budget->straggler_wait = 30;
  EXPECT_EQ(explain(cell, 1e6).what, "imbalance");
  EXPECT_NE(explain(cell, 1e6).why.find("12 % of a rank's CPU time"), std::string::npos);
}

TEST(ExplainTest, SaysNothingWithoutFigures) {
  Cell cell = usual_cell();
  cell.budget.reset();
  EXPECT_EQ(explain(cell, 1e6).what, "");
  EXPECT_EQ(explain(Cell{}, 1e6).what, "");
  cell = usual_cell();
  cell.gflops = cell.fma_gflops = cell.triad_gbs = std::nullopt;  // a simulation
  EXPECT_EQ(explain(cell, 1e6).why, "90 % of the epoch is forward and backward");
}

Cell place(int ranks, int threads, std::size_t batch, double seconds) {
  Cell cell;
  cell.ranks = ranks;
  cell.threads = threads;
  cell.cpus = ranks * threads;
  cell.batch = batch;
  cell.status = CellStatus::measured;
  cell.seconds_per_epoch = seconds;
  return cell;
}

/// Repeats with a part more and less than the seconds, which stay the geometric mean.
Cell repeated(Cell cell, double part = 0.001) {
  const double s = *cell.seconds_per_epoch;
  cell.repeats = {s / (1 + part), s, s * (1 + part)};
  return cell;
}

Cell repeated(int ranks, std::size_t batch, double seconds, double part = 0.001) {
  return repeated(place(ranks, 1, batch, seconds), part);
}

TEST(RemarksTest, WhereAddedRanksBringTooLittle) {
  CellTable table;
  table.cells = {repeated(1, 128, 100), repeated(2, 128, 55), repeated(4, 128, 39)};
  // 55 / 39 = 1.41: less than half of the way from 1 to 2
  ASSERT_EQ(remarks(table).size(), 1u);
  EXPECT_EQ(remarks(table)[0],
            "cpu, 1 thread per rank: at 32 images per rank and step, added ranks brought less than "
            "half of the ideal gain (batch 128 from 2 to 4 ranks: 1.41 times as quick, 2 would be "
            "ideal)");
  table.cells[2] = repeated(4, 128, 36);  // 1.53
  EXPECT_EQ(remarks(table)[0].find("cpu, 1 thread per rank: more ranks paid down to 32 images"),
            0u);
  table.cells = {repeated(4, 512, 20), repeated(1, 512, 100), repeated(4, 64, 30),
                 repeated(1, 64, 90)};
  // From 1 to 4 ranks 2.5 is half of the way: batch 512 with 5 times pays, 64 with 3 does as well.
  EXPECT_EQ(remarks(table)[0].find(
                "cpu, 1 thread per rank: more ranks paid in every row, down to 16 images"),
            0u);
  table.cells[2] = repeated(4, 64, 40);  // 2.25
  EXPECT_EQ(remarks(table)[0].find("cpu, 1 thread per rank: at 16 images per rank"), 0u);
  EXPECT_EQ(remarks(table)[0].find("other rows"), std::string::npos);
}

TEST(RemarksTest, RepeatsThatLeaveItOpenSayNothing) {
  CellTable table;
  table.cells = {place(1, 1, 128, 100), place(2, 1, 128, 90)};
  EXPECT_TRUE(remarks(table).empty());                                    // one repeat
  table.cells = {repeated(1, 128, 100, 0.2), repeated(2, 128, 75, 0.2)};  // 1.33, up to far above
  EXPECT_TRUE(remarks(table).empty());
  table.cells = {repeated(1, 128, 100, 0.4), repeated(2, 128, 60, 0.4)};  // 1.67, down to below 1
  EXPECT_TRUE(remarks(table).empty());
}

// 2.2 on twice the ranks is 1.1 times that; more is suspect.
TEST(RemarksTest, MoreThanTheRanksExplainIsSuspect) {
  const auto sentence = [](double seconds) {
    CellTable table;
    table.cells = {repeated(1, 100, 110), repeated(2, 100, seconds)};
    return remarks(table).at(0);
  };
  EXPECT_EQ(sentence(50.1).find("suspect"), std::string::npos) << sentence(50.1);
  EXPECT_NE(sentence(49.9).find("2 would be ideal, so one of the two is suspect"),
            std::string::npos)
      << sentence(49.9);
}

// One core, one core, two, four: the second thread of a core is no rank that should pay.
TEST(RemarksTest, OnAMachineThatGrowsCoresShouldPay) {
  CellTable table;
  table.machine.cpus_per_core = 2;
  for (const auto& [ranks, s] : {std::pair{1, 100.0}, {2, 99.0}, {4, 50.0}, {8, 40.0}}) {
    table.cells.push_back(repeated(ranks, 100, s));
  }
  const auto sentences = remarks(table);
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_NE(sentences[0].find("from 4 to 8 ranks: 1.25 times as quick, 2 would be ideal"),
            std::string::npos)
      << sentences[0];
  EXPECT_EQ(sentences[0].find("from 1 to 2"), std::string::npos);
  table.cells.resize(2);  // no more cores anywhere
  EXPECT_TRUE(remarks(table).empty());
}

TEST(RemarksTest, WhatRepeatsLeaveOpen) {
  CellTable table;
  table.cells = {repeated(1, 128, 100, 0.02), repeated(2, 128, 48, 0.02)};
  EXPECT_NE(remarks(table)[0].find("2.08 times as quick (95 % interval 1.99 to 2.18), 2 would"),
            std::string::npos)
      << remarks(table)[0];
  table.cells = {place(2, 1, 128, 55), place(1, 2, 128, 55.5)};
  for (Cell& cell : table.cells) cell.spread = Interval{50, 60};
  EXPECT_EQ(remarks(table)[0],
            "cpu: best split of 2 CPUs at batch 128: 2 ranks x 1 thread, 1.01 times as quick (0.83 "
            "to 1.20) as 1 x 2");
}

TEST(RemarksTest, TheBestSplitOfCpus) {
  CellTable table;
  table.cells = {place(4, 1, 128, 50), place(2, 2, 128, 40), place(1, 4, 128, 60)};
  ASSERT_EQ(remarks(table).size(), 1u);
  EXPECT_EQ(
      remarks(table)[0],
      "cpu: best split of 4 CPUs at batch 128: 2 ranks x 2 threads, 1.50 times as quick as 1 x 4");
}

TEST(RemarksTest, SaysNothingWhereNothingCanBeCompared) {
  CellTable table;
  EXPECT_TRUE(remarks(table).empty());
  table.cells = {place(1, 1, 128, 50), place(2, 1, 256, 40), Cell{}};
  EXPECT_TRUE(remarks(table).empty());
}

TEST(RemarksTest, OtherRowsAreNamedWhereThereAreSome) {
  CellTable table;
  table.cells = {repeated(1, 128, 100), repeated(2, 128, 95), repeated(4, 128, 50)};
  EXPECT_NE(remarks(table)[0].find("at 64 images per rank"), std::string::npos);
  EXPECT_EQ(remarks(table)[0].find("other rows"), std::string::npos) << remarks(table)[0];
  table.cells.push_back(repeated(1, 64, 100));
  table.cells.push_back(repeated(2, 64, 55));
  EXPECT_TRUE(remarks(table)[0].ends_with("; in other rows added ranks paid at fewer images"))
      << remarks(table)[0];
}

}  // namespace
}  // namespace cputrain::cells
