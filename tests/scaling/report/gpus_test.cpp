// GPUs beside CPUs: how many CPUs are as quick, and which parts of their rates GPUs reach.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scaling/report/forms/escapes.h"
#include "scaling/report/scaling_document.h"
#include "scaling/report/sweep_difference.h"
#include "tests/support/scaling_cells.h"

namespace cputrain::report {
namespace {

/// Repeats a tenth below and above `seconds`.
cells::Cell repeated(cells::Cell c) {
  const double seconds = *c.seconds_per_epoch;
  c.repeats = {0.9 * seconds, seconds, 1.1 * seconds};
  c.spread = Interval{0.9 * seconds, 1.1 * seconds};
  return c;
}

cells::Cell gpus(int count, std::size_t batch, double seconds,
                 const std::string& device = "NVIDIA H100 80GB HBM3") {
  cells::Cell c = testing::cell(count, 1, batch, seconds, cells::CellStatus::scaled);
  c.backend = "cuda";
  c.gpus = count;
  c.device = device;
  return c;
}

/// CPUs that take 1000 / n at batch 128, and one or two GPUs that take 50 and 30.
std::vector<cells::Cell> beside_each_other() {
  std::vector<cells::Cell> all;
  for (const int n : {1, 2, 4, 8, 16, 32}) {
    all.push_back(repeated(testing::cell(n, 1, 128, 1000. / n, cells::CellStatus::scaled)));
  }
  all.push_back(repeated(gpus(1, 128, 50)));
  all.push_back(repeated(gpus(2, 128, 30)));
  return all;
}

const Section* section_of(const Document& document, const std::string& id) {
  const auto found = std::ranges::find(document.sections, id, &Section::id);
  return found == document.sections.end() ? nullptr : &*found;
}

/// "128: 20.0 (15.0 to 24.0) | more than 32 |" of the table whose caption begins so.
std::vector<std::string> rows_of(const Section& section, const std::string& caption) {
  std::vector<std::string> lines;
  for (const DocumentTable& table : section.tables) {
    if (!table.caption.starts_with(caption)) continue;
    for (const Row& row : table.rows) {
      std::string line = row.label + ":";
      for (const Entry& e : row.entries) {
        line += " " + e.text + (e.mark.empty() ? "" : " " + e.mark) + " |";
      }
      lines.push_back(line);
    }
  }
  return lines;
}

using testing::document_of;

TEST(Gpus, AreAsQuickAsSoManyCpus) {
  const Document document = document_of({testing::source(beside_each_other())});
  const Section* section = section_of(document, "gpus");
  ASSERT_TRUE(section);
  EXPECT_EQ(rows_of(*section, "Times as quick as one CPU"),
            std::vector<std::string>{"128: 20.0 | 33.3 |"});
  // 900 / n = 55 and 1100 / n = 45; 1000 / 30 is beyond 32 CPUs, and 900 / 33 is not.
  EXPECT_EQ(rows_of(*section, "CPUs that are as quick"),
            std::vector<std::string>{
                "128: 20.0 (16.4 to 24.4) | more than 32 (33.3 or more by extrapolation) |"});
  EXPECT_EQ(section->remarks.front(), "cuda: NVIDIA H100 80GB HBM3, beside CPUs of cpu.");
  EXPECT_EQ(
      document.headline.back(),
      "One NVIDIA H100 80GB HBM3 (cuda) is as quick as 20.0 CPUs of cpu at batch 128 (16.4 to "
      "24.4); ranges are those of the repeats; scaled.");
  // Times stand in one table, GPUs beside CPUs.
  const Section* seconds = section_of(document, "seconds");
  ASSERT_EQ(seconds->tables.size(), 1u);
  EXPECT_EQ(seconds->tables[0].groups.back(), (std::pair<std::string, int>("cuda (GPUs)", 2)));
  EXPECT_EQ(rows_of(*section_of(document, "efficiency"), "Efficiency"),
            std::vector<std::string>{
                "128: 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 100.0 | 83.3 |"});
}

// CPUs of a simulation are none beside a GPU that was measured, nor are those of other work.
TEST(Gpus, StandBesideTheSameWorkAlone) {
  const cells::Cell gpu = repeated(gpus(1, 128, 50));
  CellSource other = testing::source({testing::cell(1, 1, 128, 100)}, "b");
  const auto compared = [&](const CellSource& cpus) {
    const Document document = document_of({testing::source({gpu}), cpus});
    return section_of(document, "gpus") != nullptr;
  };
  EXPECT_TRUE(compared(other));
  other.table.images_per_epoch = 10;
  EXPECT_FALSE(compared(other));
  other = testing::source({testing::cell(1, 1, 128, 100, cells::CellStatus::simulated)}, "b");
  EXPECT_FALSE(compared(other));
  other.table.data = "another";
  EXPECT_FALSE(compared(other));
  CellSource forecast = testing::source({gpu}, "c");
  forecast.table.cells[0].status = cells::CellStatus::predicted;
  const Document both = document_of({forecast, other});  // which needs no data
  ASSERT_TRUE(section_of(both, "gpus"));
  EXPECT_NE(both.headline.back().find("is as quick as more than 1 CPU of cpu"), std::string::npos);
  other = testing::source({testing::cell(1, 1, 256, 100)}, "b");  // no batch in common
  EXPECT_FALSE(compared(other));
}

TEST(Gpus, TheMachineOfTheGpusComesFirst) {
  CellSource own = testing::source({testing::cell(1, 1, 128, 100), gpus(1, 128, 50)}, "a");
  CellSource other = testing::source({testing::cell(1, 1, 128, 10)}, "b");
  own.table.machine.cpu = "mine";
  other.table.machine.cpu = "another";
  for (const auto& sources : {std::vector{own, other}, std::vector{other, own}}) {
    const ScalingTable table = make_scaling_table(sources, {});
    EXPECT_EQ(table.series.back().beside, "cpu, mine");
    EXPECT_EQ(table.series.back().strong.at(128, 1)->against_cpus->speed_up, 2);
  }
}

// Columns of GPUs beside another machine's CPUs would look like one machine.
TEST(Gpus, StandInTheTableOfTheirOwnMachinesCpus) {
  CellSource own = testing::source({testing::cell(1, 1, 128, 100), gpus(1, 128, 50)}, "a");
  CellSource other = testing::source({testing::cell(1, 1, 128, 10)}, "b");
  own.table.machine.cpu = "mine";
  other.table.machine.cpu = "another";
  const Document document = document_of({other, own});
  const auto& tables = section_of(document, "seconds")->tables;
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[1].groups[0].first, "cpu, mine");
  EXPECT_EQ(tables[1].groups[1].first, "cuda (GPUs)");
  EXPECT_TRUE(tables[0].caption.ends_with(": cpu, another")) << tables[0].caption;
  // Series below each other are named by what they have alike.
  for (const char* precision : {"float", "bf16"}) {
    other.table.cells.push_back(testing::cell(1, 1, 128, 10));
    other.table.cells.back().origin.kernels_version = 1;
    other.table.cells.back().axes = {{"precision", precision}};
  }
  other.table.cells.erase(other.table.cells.begin());
  const Document stacked = document_of({other, own});
  const std::string caption = section_of(stacked, "seconds")->tables[0].caption;
  EXPECT_TRUE(caption.ends_with(": cpu, another")) << caption;
}

TEST(Gpus, ARowWithoutOneCpuSaysSo) {
  const Document document = document_of({testing::source(
      {testing::absent(1, 128, "memory"), testing::cell(4, 1, 128, 100), gpus(1, 128, 50)})});
  const Section* section = section_of(document, "gpus");
  EXPECT_EQ(rows_of(*section, "Times as quick"), std::vector<std::string>{"128: 2.00 |"});
  EXPECT_NE(
      std::ranges::find(section->remarks,
                        "cuda, batch 128: no time of one CPU is there, so times as quick as 4 "
                        "CPUs."),
      section->remarks.end());
  EXPECT_EQ(document.headline.back(),
            "One NVIDIA H100 80GB HBM3 (cuda) is as quick as more than 4 CPUs of cpu (8.00 or more "
            "by extrapolation) at batch 128; too few repeats for ranges; scaled.");
}

TEST(Gpus, SharesAreOfTheirOwnRates) {
  std::vector<cells::Cell> all = beside_each_other();
  for (cells::Cell& c : all) {
    c.gflops = 90'000;
    c.fma_gflops = 300'000;
    c.triad_gbs = 3000;
    c.images_per_second = 22500 / *c.seconds_per_epoch;
  }
  CellSource source = testing::source(all);
  source.table.maps_per_image = 1e8;
  const Document document = document_of({source});
  const Section* section = section_of(document, "gpus");
  EXPECT_EQ(rows_of(*section, "Share (%) of what mma.sync"),
            std::vector<std::string>{"128: 30.0 | 30.0 |"});
  // 494.7 TFLOP/s of TF32 each.
  EXPECT_EQ(rows_of(*section, "Share (%) of what the chip"),
            std::vector<std::string>{"128: 18.2 | 9.1 |"});
  // 450 and 750 images a second, whose 100 million numbers move five times in four bytes.
  EXPECT_EQ(rows_of(*section, "Share (%) of the GPUs' memory"),
            std::vector<std::string>{"128: 30.0 | 50.0 |"});
  EXPECT_EQ(rows_of(*section_of(document, "arithmetic"), "Share (%) of the multiply-adds"),
            std::vector<std::string>{"128: 30.0 | 30.0 | 30.0 | 30.0 | 30.0 | 30.0 |"});
}

TEST(Gpus, FilesHaveWhatTheSectionHas) {
  const ScalingTable table = make_scaling_table({testing::source(beside_each_other())}, {});
  const auto json = table_json(table, std::nullopt);
  const auto& one = json["cells"][6];
  EXPECT_EQ(one["gpus"], 1);
  EXPECT_EQ(one["device"], "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(one["against_cpus"]["series"], "cpu");
  EXPECT_EQ(one["against_cpus"]["speed_up"], 20);
  EXPECT_NEAR(one["against_cpus"]["equal"]["cpus"].get<double>(), 20, 1e-9);
  EXPECT_NEAR(one["against_cpus"]["equal_least"]["cpus"].get<double>(), 900 / 55., 1e-9);
  EXPECT_EQ(json["cells"][7]["against_cpus"]["equal"]["place"], "more");
  EXPECT_TRUE(json["cells"][0]["against_cpus"].is_null());
  const std::string csv = table_csv(table, std::nullopt);
  EXPECT_NE(csv.find(",beside,beside_cpus,speed_up_beside,equal_cpus,"), std::string::npos);
  EXPECT_NE(csv.find(",1,NVIDIA H100 80GB HBM3,"), std::string::npos);
  const auto fields = [](const std::string& line) { return std::ranges::count(line, ','); };
  const std::string head = csv.substr(0, csv.find("\r\n"));
  for (std::size_t at = 0; at < csv.size();) {
    const std::size_t end = csv.find("\r\n", at);
    EXPECT_EQ(fields(csv.substr(at, end - at)), fields(head));
    at = end + 2;
  }
}

TEST(Gpus, HaveAPriceOfTheirOwn) {
  cells::Prices prices;
  prices.per_cpu_hour[""] = 0.036;
  prices.per_gpu_hour[""] = 3.6;
  EXPECT_DOUBLE_EQ(*prices.of("cpu", 10, 1000), 0.1);
  EXPECT_DOUBLE_EQ(*prices.of("cuda", 2, 1000), 2);
  prices.per_cpu_hour["cuda"] = 7.2;  // named, so it comes first
  EXPECT_DOUBLE_EQ(*prices.of("cuda", 2, 1000), 4);
  cells::Cell shared = gpus(4, 128, 1000);
  shared.gpus = 1;
  prices.per_cpu_hour.erase("cuda");
  EXPECT_DOUBLE_EQ(*prices.of(shared), 1);
  prices.per_cpu_hour.clear();
  EXPECT_FALSE(prices.of("cpu", 1, 10));
  cells::Prices of_gpus;
  of_gpus.per_gpu_hour["cuda"] = 3.6;
  const Document document = document_of({testing::source(beside_each_other())}, of_gpus);
  const Section* section = section_of(document, "cost");
  ASSERT_TRUE(section);
  EXPECT_EQ(rows_of(*section, "Cost of an epoch").front(),
            "128: – | – | – | – | – | – | 0.0500 | 0.0600 |");
  EXPECT_EQ(section->remarks.back(),
            "3.60 an hour of each GPU that works, with the CPUs beside it with backend cuda.");
}

// Two kinds of GPUs are two series, whatever the machine around them is called.
TEST(Gpus, KindsAreToldApart) {
  const ScalingTable table =
      make_scaling_table({testing::source({gpus(1, 128, 50)}, "a"),
                          testing::source({gpus(1, 128, 40, "NVIDIA H200")}, "b")},
                         {});
  ASSERT_EQ(table.series.size(), 2u);
  EXPECT_EQ(table.series[0].name, "cuda, NVIDIA H100 80GB HBM3");
  EXPECT_EQ(table.series[1].name, "cuda, NVIDIA H200");
}

TEST(Gpus, TwoSweepsSayTheirKinds) {
  const CellSource a = testing::source({gpus(1, 128, 50), gpus(4, 128, 20)});
  const CellSource b = testing::source({gpus(4, 128, 40, "NVIDIA H200")});
  EXPECT_EQ(conditions_that_differ(a.table, b.table),
            std::vector<std::string>{"They differ in GPUs: cuda: 4 x NVIDIA H100 80GB HBM3 and "
                                     "cuda: 4 x NVIDIA H200."});
  EXPECT_TRUE(conditions_that_differ(a.table, a.table).empty());
}

TEST(Gpus, ACardNamesThem) {
  const Document document = document_of({testing::source(beside_each_other())});
  ASSERT_TRUE(document.card);
  const auto& facts = document.card->facts;
  const auto value = [&](const std::string& name) {
    const auto found = std::ranges::find(facts, name, &std::pair<std::string, std::string>::first);
    return found == facts.end() ? "" : found->second;
  };
  EXPECT_EQ(value("GPUs"), "2 x NVIDIA H100 80GB HBM3");
  EXPECT_EQ(value("as quick as"),
            "more than 32 CPUs of cpu (33.3 or more by extrapolation) (27.3 to more than 32)");
  const Section* conditions = section_of(document, "conditions");
  EXPECT_EQ(rows_of(*conditions, "a")[1], "GPUs: cuda: 2 x NVIDIA H100 80GB HBM3 |");
}

}  // namespace
}  // namespace cputrain::report
