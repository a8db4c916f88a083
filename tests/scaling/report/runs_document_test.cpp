// What a report of single trainings says, and what it does not.

#include "scaling/report/trainings/runs_document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scaling/report/trainings/run_list.h"

namespace cputrain::report {
namespace {

RunRecord run(const std::string& name, std::vector<double> accuracies, double seconds = 10) {
  RunRecord r;
  r.folder = "runs/" + name;
  r.name = name;
  r.model = "dogcat";
  r.data = "/d/photos";
  r.backend = "cpu";
  r.precision = "float";
  r.rule = "sgd 0.01";
  r.machine = "EPYC, 2 cores";
  r.ranks = 2;
  r.threads = 1;
  r.batch = 128;
  r.seed = 0;
  r.outcome = Outcome::finished;
  r.configuration = {{"model", "dogcat"}, {"batch", "128"}};
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    r.epochs.push_back({.epoch = static_cast<int>(i) + 1,
                        .steps = 4,
                        .images = 100,
                        .seconds = seconds,
                        .train = {.loss = 0.5},
                        .validation = runfiles::Figures{.loss = 0.4, .accuracy = accuracies[i]},
                        .settled = loop::SettledSteps{.steps = 4}});
  }
  r.seconds = seconds * static_cast<double>(accuracies.size());
  return r;
}

RunList list_of(std::vector<RunRecord> runs) {
  sort_by_accuracy(runs);
  return {std::move(runs)};
}

const DocumentTable& table_of(const Document& document, const std::string& section) {
  const auto found = std::ranges::find(document.sections, section, &Section::id);
  if (found == document.sections.end()) throw std::runtime_error("no " + section);
  return found->tables.at(0);
}

std::vector<std::string> labels(const DocumentTable& table) {
  std::vector<std::string> names;
  for (const Row& row : table.rows) names.push_back(row.label);
  return names;
}

/// The entry of a run below a head.
Entry entry(const DocumentTable& table, const std::string& name, const std::string& head) {
  const auto column = std::ranges::find(table.head, head) - table.head.begin();
  const auto row = std::ranges::find(table.rows, name, &Row::label);
  return row->entries.at(static_cast<std::size_t>(column));
}

TEST(RunCosts, CountGpusAndNotTheThreadsBesideThem) {
  cells::Prices prices;
  prices.per_gpu_hour[""] = 3600;
  RunRecord r = run("gpus", {0.5}, 10);
  r.backend = "cuda";
  r.threads = 8;
  EXPECT_DOUBLE_EQ(cost_of(r, prices).value(), 20);  // one for each rank where nobody says it
  r.devices.count = 1;
  EXPECT_DOUBLE_EQ(cost_of(r, prices).value(), 10);
  r.devices.emulated = true;
  EXPECT_FALSE(cost_of(r, prices));
}

TEST(RunNames, FoldersTellThemApart) {
  std::vector<RunRecord> runs{run("alone", {0.5}), run("first/run", {0.5}),
                              run("second/run", {0.5}), run("a/b/twin", {0.5}),
                              run("c/b/twin", {0.5})};
  for (RunRecord& r : runs) r.name = r.folder.filename().string();
  tell_names_apart(runs);
  const std::vector<std::string> names{"alone", "first/run", "second/run", "a/b/twin", "c/b/twin"};
  EXPECT_TRUE(std::ranges::equal(runs, names, {}, &RunRecord::name));
  // One folder twice stays so.
  runs = {runs[1], runs[1]};
  tell_names_apart(runs);
  EXPECT_EQ(runs[0].name, runs[1].name);
  EXPECT_TRUE(runs[0].name.ends_with("first/run"));
  // As it was named, wherever a link leads.
  runs = {run("first/run", {0.5}), run("second/../third/run/", {0.5})};
  for (RunRecord& r : runs) r.name = "run";
  tell_names_apart(runs);
  EXPECT_EQ(runs[1].name, "third/run");
}

TEST(RunsDocument, SaysTheBestAndTheQuickestToWhatMostReached) {
  const RunList list = list_of({run("slow", {0.5, 0.935}, 100), run("best", {0.6, 0.95}, 50),
                                run("quick", {0.91, 0.92}, 20), run("bad", {0.3, 0.4}, 1)});
  EXPECT_EQ(
      runs_headline(list),
      (std::vector<std::string>{
          "Best validation accuracy: 0.9500, by best in epoch 2, after 100 s of training.",
          "3 of 4 runs reached 0.92; the least time was that of quick in epoch 2, after 40.0 s of "
          "training (one training each)."}));
  const Document document = runs_document(list);
  const DocumentTable& table = table_of(document, "runs");
  EXPECT_EQ(labels(table), (std::vector<std::string>{"best", "slow", "quick", "bad"}));
  EXPECT_TRUE(table.sortable && table.filterable);
  EXPECT_EQ(entry(table, "slow", "seconds to it").value, 200);
  EXPECT_EQ(entry(table, "bad", "best validation accuracy").text, "0.4000");
}

TEST(RunsDocument, SaysWhichWeightsThereAre) {
  const auto said = [](std::optional<int> weights, std::optional<int> best = {}) {
    RunRecord r = run("a", {0.8, 0.95, 0.9, 0.95}, 10);
    r.weights_epoch = weights, r.best_epoch = best;
    const std::string text = runs_headline(list_of({r})).at(0);
    const std::string_view first =
        "Best validation accuracy: 0.9500, by a in epoch 2, after 20.0 s of training.";
    EXPECT_TRUE(text.starts_with(first)) << text;
    return text.substr(std::min(first.size(), text.size()));
  };
  EXPECT_EQ(said({}), "");  // not known
  EXPECT_EQ(said(3),
            " Its weights were not kept: weights.safetensors is of epoch 3 (0.9000) (--monitor "
            "accuracy keeps them).");
  EXPECT_EQ(said(3, 1),
            " Its weights were not kept: weights.safetensors is of epoch 3 (0.9000), "
            "best.safetensors is of epoch 1 (0.8000) (--monitor accuracy keeps them).");
  EXPECT_EQ(said(3, 2), " Its weights are in best.safetensors.");
  EXPECT_EQ(said(2), " Its weights are in weights.safetensors.");
  EXPECT_EQ(said(4), " weights.safetensors is of epoch 4, which did as well.");
}

TEST(RunsDocument, TakesTheAccuracyThatIsAskedFor) {
  RunList list = list_of({run("a", {0.5, 0.9}), run("b", {0.8, 0.85}, 3)});
  list.wanted_accuracy = 0.8;
  EXPECT_EQ(runs_headline(list).at(1),
            "2 of 2 runs reached 0.8; the least time was that of b in epoch 1, after 3.00 s of "
            "training (one training each).");
  list.wanted_accuracy = 0.99;
  EXPECT_EQ(runs_headline(list).at(1), "No run reached 0.99.");
}

TEST(RunsDocument, WhatEveryFirstEpochReachesIsNotSaid) {
  RunList list = list_of({run("a", {0.57}), run("b", {0.57, 0.2}, 3)});
  EXPECT_EQ(runs_headline(list).size(), 1u);
  list.wanted_accuracy = 0.5;
  EXPECT_EQ(runs_headline(list).size(), 2u);
}

TEST(RunsDocument, RepeatsOfOneConfigurationAreGrouped) {
  std::vector<RunRecord> runs{run("a", {0.90}, 10), run("b", {0.92}, 12), run("c", {0.94}, 20),
                              run("other", {0.5})};
  runs[1].seed = 1;
  runs[3].configuration["batch"] = "1024";
  const RunList list = list_of(runs);
  const Document document = runs_document(list);
  const DocumentTable& table = table_of(document, "same-configuration");
  EXPECT_EQ(labels(table), std::vector<std::string>{"batch 128"});
  EXPECT_EQ(entry(table, "batch 128", "runs").value, 3);
  EXPECT_EQ(entry(table, "batch 128", "best validation accuracy").text,
            "0.9200 (0.9000 to 0.9400)");
  EXPECT_EQ(entry(table, "batch 128", "seconds in all").text, "12.0 (10.0 to 20.0)");
  EXPECT_EQ(entry(table, "batch 128", "seeds").text, "0, 1");
  EXPECT_EQ(runs_json(list)["same_configuration"][0]["runs"].size(), 3u);
}

TEST(RunsDocument, DataThatNoFileNamesAreSaidToBeUnknown) {
  RunList list = list_of({run("a", {0.1, 0.9}), run("b", {0.1, 0.8})});
  list.runs.at(1).data.clear();
  EXPECT_TRUE(runs_headline(list).at(1).starts_with("data not known: Best validation accuracy"))
      << runs_headline(list).at(1);
}

TEST(RunsDocument, RunsWithoutValidationHaveNoColumnsOfIt) {
  RunRecord r = run("a", {0.9});
  r.epochs[0].validation.reset();
  const RunList list = list_of({r});
  EXPECT_EQ(runs_headline(list),
            std::vector<std::string>{"One run without a validation accuracy."});
  const Document document = runs_document(list);
  const DocumentTable& table = table_of(document, "runs");
  const auto has = [&](const char* head) { return std::ranges::count(table.head, head) == 1; };
  EXPECT_FALSE(has("best validation accuracy") || has("seconds to it") ||
               has("last validation loss"));
  EXPECT_TRUE(has("last loss"));
}

TEST(RunsDocument, SecondsThatWereLostAreThoseOfTrainingsThatLostAny) {
  RunRecord hurt = run("hurt", {0.9}), whole = run("whole", {0.8});
  for (RunRecord* r : {&hurt, &whole}) r->epochs[0].budget = Budget{.forward = 10};
  hurt.lost.restarts = {.times = 2, .seconds = 31.26};
  hurt.lost.stalls = {.times = 1, .seconds = 7};
  const Document document = runs_document(list_of({hurt, whole}));
  const auto time = std::ranges::find(document.sections, "time", &Section::id);
  const DocumentTable& lost = time->tables.at(1);
  EXPECT_EQ(labels(lost), std::vector<std::string>{"hurt"});
  EXPECT_EQ(entry(lost, "hurt", "restarts").text, "2");
  EXPECT_EQ(entry(lost, "hurt", "lost to them").text, "31.3");
  EXPECT_EQ(entry(lost, "hurt", "stalls").text, "7.0");
}

TEST(RunsDocument, TheCardRanksATrainingAmongThoseOnItsDataAlone) {
  RunRecord other = run("c", {0.5});
  other.data = "/d/flowers";
  const auto said = [](std::vector<RunRecord> runs) {
    return runs_document(list_of(std::move(runs))).card->facts.front().second;
  };
  EXPECT_EQ(said({run("a", {0.7}), run("b", {0.9}), other}), "b, the best of 2");
  EXPECT_EQ(said({run("b", {0.9}), other}), "b");
}

}  // namespace
}  // namespace cputrain::report
