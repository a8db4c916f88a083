// What differs between runs, and two of them beside each other.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scaling/report/trainings/runs_document.h"

namespace cputrain::report {
namespace {

using Texts = std::vector<std::string>;

RunRecord flagged_run(const std::string& name, std::map<std::string, std::string> flags,
                      std::vector<double> accuracies = {0.5}) {
  RunRecord r;
  r.name = name;
  r.folder = "runs/" + name;
  r.model = "dogcat";
  r.configuration = std::move(flags);
  r.made_of["seed"] = "1";
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    r.epochs.push_back({.epoch = static_cast<int>(i) + 1,
                        .images = 100,
                        .seconds = 10,
                        .train = {.loss = 0.5},
                        .validation = runfiles::Figures{.loss = 0.4, .accuracy = accuracies[i]},
                        .validation_images = 400});
  }
  return r;
}

Texts row_texts(const Row& row) {
  Texts all{row.label};
  for (const Entry& entry : row.entries) all.push_back(entry.text);
  return all;
}

TEST(Differences, AreFlagsThenFacts) {
  std::vector<RunRecord> runs{
      flagged_run("a", {{"lr", "0.1"}, {"batch", "8"}, {"ranks", "1"}}),
      flagged_run("b",
                  {{"lr", "0.1"}, {"batch", "16"}, {"ranks", "2"}, {"weight-decay", "0.001"}})};
  runs[1].made_of["seed"] = "2";
  EXPECT_EQ(keys_that_differ(runs), (Texts{"batch", "weight-decay", "ranks", "seed"}));
  const Section section = differences_section(runs);
  ASSERT_EQ(section.tables.size(), 1u);
  const DocumentTable& table = section.tables[0];
  EXPECT_EQ(table.head, (Texts{"a", "b"}));
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(row_texts(table.rows[0]), (Texts{"batch", "8", "16"}));
  EXPECT_EQ(row_texts(table.rows[1]), (Texts{"weight-decay", kNotKnown, "0.001"}));
  runs[1] = runs[0];
  EXPECT_TRUE(keys_that_differ(runs).empty());
  EXPECT_TRUE(differences_section(runs).id.empty());
}

/// Losses have the penalty of the layers that learn, which are others where the flag is another.
TEST(Differences, LossesWithAnotherPenaltyAreNotedOnce) {
  const auto remarks = [](const char* flag) {
    return differences_section({flagged_run("a", {{flag, "all-but-head"}, {"lr", "0.1"}}),
                                flagged_run("b", {{"lr", "0.2"}})})
        .remarks;
  };
  EXPECT_EQ(remarks("freeze"),
            Texts{"Losses of training and validation include the L2 penalty of the layers that "
                  "learn, if the model has one. These runs differ in freeze: compare accuracies, "
                  "or losses of eval."});
  EXPECT_EQ(remarks("augment"), Texts{});
}

TEST(Differences, WhatNobodySaysIsNone) {
  RunRecord unread = flagged_run("unread", {});
  unread.model.clear();
  RunRecord killed = flagged_run("killed", {{"lr", "0.1"}, {"ranks", ""}});
  RunRecord whole = flagged_run("whole", {{"lr", "0.1"}, {"ranks", "1"}});
  whole.made_of["network"] = "13 parameters (0123456789abcdef)";
  EXPECT_TRUE(keys_that_differ({unread, killed, whole}).empty());
  RunRecord other = whole;
  other.made_of["network"] = "14 parameters (0123456789abcdef)";
  EXPECT_EQ(keys_that_differ({unread, whole, other}), Texts{"network"});
}

TEST(Differences, OfManyRunsARowIsARun) {
  std::vector<RunRecord> runs;
  for (int i = 0; i < 5; ++i)
    runs.push_back(flagged_run("r" + std::to_string(i), {{"lr", std::to_string(i)}}));
  const DocumentTable table = differences_section(runs).tables.at(0);
  EXPECT_EQ(table.head, Texts{"lr"});
  ASSERT_EQ(table.rows.size(), 5u);
  EXPECT_EQ(row_texts(table.rows[3]), (Texts{"r3", "3"}));
  EXPECT_TRUE(table.sortable && table.filterable);
}

TEST(Differences, AreInJsonAndCsv) {
  RunList list;
  list.runs = {flagged_run("a", {{"batch", "8"}, {"label-smoothing", "0.1"}, {"odd\nkey", "1"}}),
               flagged_run("b", {{"batch", "16"}})};
  const nlohmann::ordered_json json = runs_json(list);
  EXPECT_EQ(json["differences"], (Texts{"batch", "label-smoothing", "odd\nkey"}));
  EXPECT_EQ(json["runs"][0]["differs"]["label-smoothing"], "0.1");
  EXPECT_TRUE(json["runs"][1]["differs"]["label-smoothing"].is_null());
  const std::string csv = runs_csv(list);
  const std::string head = csv.substr(0, csv.find("\r\n"));
  EXPECT_TRUE(head.ends_with(",eval_part,label-smoothing")) << head;  // a batch is there already
  EXPECT_TRUE(csv.substr(head.size() + 2, csv.find("\r\n", head.size() + 2) - head.size() - 2)
                  .ends_with(",0.1"))
      << csv;
}

TEST(RunDifference, HasFiguresAndWhatTheyAreWorth) {
  RunRecord a = flagged_run("a", {{"lr", "0.1"}, {"data", "/d/photos"}}, {0.8, 0.9}),
            b = flagged_run("b", {{"lr", "0.2"}, {"data", "/d/photos"}}, {0.95});
  b.epochs[0].seconds = 5;
  const auto json = run_difference_json({a, b});
  EXPECT_EQ(json["differences"],
            nlohmann::ordered_json::parse(R"([{"key":"lr","before":"0.1","after":"0.2"}])"));
  const auto& best = json["figures"][0];
  EXPECT_EQ(best["name"], "best validation accuracy");
  EXPECT_NEAR(best["difference"].get<double>(), 0.05, 1e-12);
  EXPECT_TRUE(best["ratio"].is_null());
  const auto& seconds = json["figures"][2];
  EXPECT_EQ(seconds["name"], "seconds to it");
  EXPECT_EQ(seconds["difference"], -15);
  EXPECT_EQ(seconds["ratio"], 0.25);
  const Document document = run_difference_document({a, b});
  // Wilson's intervals of 360 and 380 of 400: 0.8667 to 0.9257, and 0.9240 to 0.9674.
  EXPECT_TRUE(document.headline.at(0).find("no difference shown") != std::string::npos)
      << document.headline[0];
  b.epochs[0].validation->accuracy = 0.99;
  EXPECT_TRUE(run_difference_document({a, b}).headline.at(0).find("a difference beyond") !=
              std::string::npos);
  b.configuration["data"] = "/d/others";
  EXPECT_TRUE(run_difference_document({a, b}).headline.at(0).find("on other images") !=
              std::string::npos);
  EXPECT_EQ(run_difference_document({a, a}).summary,
            Texts{"Nothing differs in their flags, data and machine."});
}

}  // namespace
}  // namespace cputrain::report
