#include "scaling/cells/cells.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::cells {
namespace {

using nlohmann::json;

/// A table as another program may write it: only what must be there, and keys of its own.
json least() {
  return {{"version", 1},
          {"extra", {1, 2}},
          {"cells",
           {{{"cpus", 2},
             {"batch", 16},
             {"backend", "cpu"},
             {"seconds_per_epoch", 3.5},
             {"spread", {3.0, 4.0}},
             {"status", "scaled"}}}}};
}

class CellsTest : public ::testing::Test {
 protected:
  CellTable read(const std::string& text) const {
    std::ofstream(file_, std::ios::binary) << text;
    return read_cells(file_);
  }
  CellTable read(const json& table) const { return read(table.dump()); }

  /// The message of the refusal.
  std::string refused(const std::string& text) const {
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return error.what();
    }
    return "was read";
  }
  /// The least table with one field of its cell changed.
  std::string refused_with(const std::string& key, const json& value) const {
    json table = least();
    table["cells"][0][key] = value;
    return refused(table.dump());
  }

  const testing::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / kCellsName;
};

TEST_F(CellsTest, ReadsWhatAnotherProgramWrote) {
  const CellTable table = read(least());
  ASSERT_EQ(table.cells.size(), 1u);
  const Cell& cell = table.cells[0];
  EXPECT_EQ(cell.cpus, 2);
  EXPECT_EQ(cell.ranks, 2);
  EXPECT_EQ(cell.threads, 1);
  EXPECT_EQ(cell.batch, 16u);
  EXPECT_EQ(cell.status, CellStatus::scaled);
  EXPECT_EQ(cell.seconds_per_epoch, 3.5);
  EXPECT_EQ(cell.spread->low, 3.0);
  EXPECT_EQ(cell.spread->high, 4.0);
  EXPECT_FALSE(cell.budget);
  EXPECT_FALSE(cell.gflops);
}

TEST_F(CellsTest, ReadsBackWhatItWrote) {
  CellTable table;
  table.model = "dogcat";
  table.image_size = 256;
  table.images_per_epoch = 22500;
  table.parameters = 13246529;
  table.macs_per_image = 1.25e9;
  table.seed = 7;
  table.machine.cpu = "a \"quoted\" CPU";
  table.machine.platform = "here";
  table.machine.cores = 2;
  table.machine.cpus_per_core = 2;
  table.validation_images = 2500;
  table.options = {{"nesterov", "true"}, {"precision", "bf16"}};
  Cell cell{.cpus = 4, .batch = 64, .backend = "cpu", .ranks = 2, .threads = 2};
  cell.batch_per_rank = 32;
  cell.status = CellStatus::measured;
  cell.seconds_per_epoch = 1.0 / 3;
  cell.spread = Interval{0.25, 0.5};
  cell.repeats = {0.25, 1.0 / 3, 0.5};
  cell.steps = 4;
  cell.stolen = 0.125;
  cell.cpu_wait = 0.25;
  cell.limits = {"compute", "it computes"};
  cell.budget = Budget{.input_wait = 0.125, .forward = 0.5, .other = -0.25};
  cell.runs = {"cells/a/repeat-1"};
  cell.includes_warm_up = true;
  cell.reached_target = 1;
  Cell predicted{.cpus = 8, .batch = 64, .backend = "cuda", .ranks = 8};
  predicted.status = CellStatus::predicted;
  predicted.seconds_per_epoch = 2;
  table.cells = {
      cell, {.cpus = 96, .batch = 64, .ranks = 96, .reason = "no such machine"}, predicted};
  write_cells(file_, table);
  const CellTable back = read_cells(file_);
  EXPECT_EQ(to_json(back), to_json(table));
  EXPECT_EQ(back.cells[0].seconds_per_epoch, 1.0 / 3);  // to the last bit
  EXPECT_EQ(back.cells[0].budget->other, -0.25);
  EXPECT_EQ(back.cells[0].stolen, 0.125);
  EXPECT_FALSE(back.cells[1].stolen);
  EXPECT_EQ(back.cells[0].cpu_wait, 0.25);
  EXPECT_FALSE(back.cells[1].cpu_wait);
  EXPECT_EQ(back.validation_images, 2500u);
  EXPECT_EQ(back.options, table.options);
  EXPECT_TRUE(back.cells[0].includes_warm_up);
  EXPECT_EQ(back.cells[0].reached_target, 1);
  EXPECT_FALSE(back.cells[1].reached_target);
  EXPECT_EQ(back.cells[1].status, CellStatus::absent);
  EXPECT_EQ(back.cells[1].reason, "no such machine");
  const json plain = json::parse(std::ifstream(file_));
  EXPECT_TRUE(plain["cells"][1]["seconds_per_epoch"].is_null());
  EXPECT_EQ(plain["cells"][1]["status"], "n/a");
  EXPECT_EQ(plain["cells"][2]["status"], "predicted");
  EXPECT_EQ(back.cells[2].status, CellStatus::predicted);
  EXPECT_TRUE(is_forecast(back.cells[2].status));
  EXPECT_FALSE(is_forecast(back.cells[0].status));
}

TEST_F(CellsTest, NamesTheProcessorOfTheTableAndOfEachCell) {
  CellTable table;
  table.machine.cpu_id = {.vendor = "AuthenticAMD", .family = 25, .model = 17, .stepping = 1};
  table.cells = {
      {.cpus = 1, .batch = 8, .origin = {table.machine.cpu_id, 13, "commit abc"}, .reason = "-"},
      {.cpus = 2, .batch = 8, .ranks = 2, .reason = "-"}};
  table.cells[0].origin.cpu_id.instructions = {"avx2"};
  table.cells[0].origin.cpu_id.caches = {"L2 512 KiB x 2"};
  table.cells[0].origin.cpu_id.taken_from = "a page";
  table.machine.name = "rack 3";
  write_cells(file_, table);
  const CellTable back = read_cells(file_);
  EXPECT_EQ(back.machine.cpu_id, table.machine.cpu_id);
  EXPECT_EQ(back.cells[0].origin, table.cells[0].origin);
  EXPECT_EQ(back.machine.name, "rack 3");
  EXPECT_FALSE(back.cells[1].origin.cpu_id.known());  // of two of which none was measured
  json odd = json::parse(std::ifstream(file_));
  EXPECT_FALSE(odd["cells"][1].contains("cpu_id"));
  odd["cells"][0]["cpu_id"]["family"] = "25";
  EXPECT_NE(refused(odd.dump()).find("cpu_id: family"), std::string::npos);
}

/// Earlier versions said how many trainings did not count, and nothing of waiting for CPUs.
TEST_F(CellsTest, ReadsTablesOfEarlierVersions) {
  CellTable table;
  table.cells = {{.cpus = 1, .batch = 8, .reason = "not measured yet"}};
  nlohmann::ordered_json old = to_json(table);
  EXPECT_FALSE(old["cells"][0].contains("left_out"));
  old["cells"][0]["left_out"] = 2;
  old["cells"][0].erase("cpu_wait");
  std::ofstream(file_) << old.dump();
  EXPECT_EQ(to_json(read_cells(file_)), to_json(table));
}

TEST_F(CellsTest, RefusesWhatIsNoTable) {
  EXPECT_NE(refused("").find("cannot be read"), std::string::npos);
  EXPECT_NE(refused("[]").find("is not an object"), std::string::npos);
  EXPECT_NE(refused("{}").find("version must be 1"), std::string::npos);
  EXPECT_NE(refused(R"({"version": 2, "cells": []})").find("version"), std::string::npos);
  EXPECT_NE(refused(R"({"version": 1})").find("cells is missing"), std::string::npos);
  EXPECT_NE(refused(R"({"version": 1, "cells": {}})").find("must be a list"), std::string::npos);
  EXPECT_NE(refused(R"({"version": 1, "cells": [3]})").find("cell 1: is not"), std::string::npos);
  EXPECT_NE(refused(least().dump() + "x"), "was read");
  EXPECT_NE(refused(std::string(100'000, '[')), "was read");
  EXPECT_NE(refused(std::string("{\"version\": 1, \"model\": \"\xff\", \"cells\": []}")),
            "was read");
  EXPECT_NE(refused(R"({"version": 1, "version": 1, "cells": []})").find("twice"),
            std::string::npos);
  EXPECT_NE(refused(R"({"version": 1, "images_per_epoch": 1e999, "cells": []})"), "was read");
  EXPECT_NE(refused(R"({"version": 1, "seed": -1, "cells": []})").find("seed"), std::string::npos);
  EXPECT_NE(refused(R"({"version": 1, "machine": [], "cells": []})").find("machine"),
            std::string::npos);
  EXPECT_THROW(read_cells(folder_.path()), Error);           // a folder
  EXPECT_THROW(read_cells(folder_.path() / "none"), Error);  // nothing
  EXPECT_THROW(read_cells("/dev/zero"), Error);              // would never end
}

TEST_F(CellsTest, RefusesOddFigures) {
  const json odd = json::parse(R"({
    "cpus": [0, -2, 2.5, "2", null, 18446744073709551615], "batch": [0, 1e300], "backend": ["", "<b>", "../x"],
    "status": ["done", null], "threads": [0, 3], "ranks": [1], "seconds_per_epoch": [0, -1, null, 1e13, [1]],
    "spread": [[4, 3], [3], "3", [3.6, 4]], "repeats": [[0], 3], "steps": [-1], "gflops": ["many"],
    "budget": [3, {"forward": "long"}], "limits": ["compute", {"what": 3}], "runs": [["/etc"], ["a/../../b"], [""], [3]],
    "reason": [3], "final_accuracy": [1.5], "stolen": [1.5, -0.125], "cpu_wait": [1.5, "some"], "batch_per_rank": [0],
    "reached_target": [-1, true], "includes_warm_up": [1, "yes"]})");
  std::vector<std::pair<std::string, json>> all{{"backend", std::string(99, 'a')},
                                                {"command", std::string(1 << 17, 'x')}};
  for (const auto& [key, values] : odd.items()) {
    for (const json& value : values) all.emplace_back(key, value);
  }
  for (const auto& [key, value] : all) {
    const std::string message = refused_with(key, value);
    EXPECT_NE(message.find("cell 1"), std::string::npos) << key << ": " << message;
  }
  EXPECT_NE(refused_with("status", "n/a").find("must be null"), std::string::npos);
  json table = least();
  table["cells"][0]["repeats"] = {3.5, 3.5};
  table["cells"][0]["reached_target"] = 2;
  EXPECT_EQ(read(table).cells[0].reached_target, 2);
  table["cells"][0]["reached_target"] = 3;
  EXPECT_NE(refused(table.dump()).find("reached_target"), std::string::npos);
}

TEST_F(CellsTest, RefusesOddOptions) {
  json table = least();
  table["options"] = {{"learning-rate", "0.1"}};
  EXPECT_EQ(read(table).options.at("learning-rate"), "0.1");
  json many = json::object();
  for (int i = 0; i < 1001; ++i) many[std::to_string(i)] = "1";
  for (const json& odd :
       {json("bf16"), json({"bf16"}), json({{"precision", 16}}), json({{"precision", nullptr}}),
        json({{"", "x"}}), json({{"<b>", "x"}}), json({{"a b", "x"}}),
        json({{std::string(65, 'a'), "x"}}), json({{"a", std::string(1 << 17, 'x')}}), many}) {
    table["options"] = odd;
    EXPECT_NE(refused(table.dump()).find("options"), std::string::npos) << odd.dump().substr(0, 80);
  }
  table = least();
  table["validation_images"] = -1;
  EXPECT_NE(refused(table.dump()).find("validation_images"), std::string::npos);
}

TEST_F(CellsTest, RefusesTwoFiguresForOnePlace) {
  json table = least();
  table["cells"].push_back(table["cells"][0]);
  EXPECT_NE(refused(table.dump()).find("two cells"), std::string::npos);
  table["cells"][1]["batch"] = 32;
  EXPECT_EQ(read(table).cells.size(), 2u);
  table["cells"][0]["extra"] = "ignored";
  EXPECT_EQ(read(table).cells.size(), 2u);
}

TEST_F(CellsTest, GpusAreCountedAndNamed) {
  json table = least();
  json& cell = table["cells"][0];
  cell["backend"] = "cuda";
  EXPECT_EQ(read(table).cells[0].gpus, 2);  // as earlier versions wrote it
  EXPECT_EQ(read(table).cells[0].device, "");
  cell["gpus"] = 1;  // two ranks share it
  cell["device"] = "NVIDIA H100";
  json absent = cell;
  absent.update({{"batch", 32}, {"status", "n/a"}, {"seconds_per_epoch", nullptr}});
  absent.update({{"spread", nullptr}, {"device", ""}});
  table["cells"].push_back(absent);
  table["maps_per_image"] = 12.0;
  CellTable known = read(table);
  EXPECT_EQ(known.cells[0].gpus, 1);
  EXPECT_EQ(known.cells[0].device, "NVIDIA H100");
  EXPECT_EQ(known.cells[1].device, "NVIDIA H100");  // which it was meant for
  EXPECT_EQ(known.maps_per_image, 12);
  write_cells(file_, known);
  const CellTable again = read_cells(file_);
  EXPECT_EQ(to_json(again), to_json(known));
  EXPECT_EQ(again.cells[0].device, "NVIDIA H100");

  // With another kind beside it, nobody knows.
  known.cells.push_back(known.cells[0]);
  known.cells[2].batch = 64;
  known.cells[2].device = "NVIDIA H200";
  known.cells[1].device = "";
  write_cells(file_, known);
  EXPECT_EQ(read_cells(file_).cells[1].device, "");
}

TEST_F(CellsTest, GpusThatCannotBeAreRefused) {
  json table = least();
  for (const int gpus : {0, 3, -1}) {
    table["cells"][0].update({{"backend", "cuda"}, {"gpus", gpus}});
    EXPECT_NE(refused(table.dump()).find("gpus"), std::string::npos) << gpus;
  }
  EXPECT_NE(refused_with("gpus", 1).find("backend cpu computes on no GPU"), std::string::npos);
  EXPECT_NE(refused_with("device", "x").find("backend cpu computes on no GPU"), std::string::npos);
  EXPECT_NE(refused_with("device", 7).find("device must be a text"), std::string::npos);
  EXPECT_EQ(refused_with("gpus", 0), "was read");
}

}  // namespace
}  // namespace cputrain::cells
