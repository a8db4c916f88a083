#include "checkpoint/state_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cputrain::checkpoint {
namespace {

using Json = nlohmann::ordered_json;
using Limits = std::numeric_limits<double>;

/// Every number another one, and none that a decimal fraction of few digits is.
loop::Progress made_progress() {
  loop::Progress p{.steps = 1234567,
                   .settled_steps = 1200000,
                   .images = (std::uint64_t{1} << 53) - 1,
                   .epochs = 17,
                   .begun = loop::EpochSums{.steps = 40, .skipped = 3},
                   .seconds = 1.0 / 3,
                   .training_seconds = 0.1 + 0.2,
                   .own_images = 4.0 / 7,
                   .plateau = {.best_loss = 2.0 / 7, .waited = 4, .factor = 0.1 * 0.1},
                   .last_rate = 5e-324,
                   .best = {.loss = 1e308, .epoch = 12},
                   .patience = {.loss = 3.0 / 7, .waited = 5},
                   .reached = loop::TimeToAccuracy{0.7, 0.71, 9, 1e-7},
                   .left_out = {5, 99},
                   .tuned_methods = "dws bbb"};
  p.begun->train = {.loss = 1.1, .correct = 30, .images = 77, .among_five = 50, .ranked = 60};
  p.begun->seconds = 12.7;
  double value = 0.3;
  for (const BudgetPart& part : kBudgetParts) {
    p.begun->budget.*part.seconds = value *= 0.7;
    p.begun->settled.budget.*part.seconds = -value;
  }
  p.begun->settled.steps = 38;
  p.begun->settled.seconds = 11.9;
  p.begun->learning_rate = 0.0125;
  return p;
}

loop::Progress through_text(const loop::Progress& progress) {
  const Json state{{"format", 2}, {"progress", to_json(progress)}};
  return progress_of_state(parse_state(state.dump()));
}

void expect_refusal(const Json& json, const std::string& field) {
  try {
    progress_of(json);
    ADD_FAILURE() << field << " was taken: " << json.dump();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
  }
}

TEST(ProgressJson, EveryNumberComesBack) {
  const loop::Progress there = made_progress(), here = through_text(there);
  EXPECT_EQ(here.steps, there.steps);
  EXPECT_EQ(here.settled_steps, there.settled_steps);
  EXPECT_EQ(here.images, there.images);
  EXPECT_EQ(here.epochs, there.epochs);
  EXPECT_EQ(here.seconds, there.seconds);
  EXPECT_EQ(here.training_seconds, there.training_seconds);
  EXPECT_EQ(here.own_images, there.own_images);
  EXPECT_EQ(here.plateau.best_loss, there.plateau.best_loss);
  EXPECT_EQ(here.plateau.waited, there.plateau.waited);
  EXPECT_EQ(here.plateau.factor, there.plateau.factor);
  EXPECT_EQ(here.last_rate, there.last_rate);
  EXPECT_EQ(here.best.loss, there.best.loss);
  EXPECT_EQ(here.best.epoch, there.best.epoch);
  EXPECT_EQ(here.patience.loss, there.patience.loss);
  EXPECT_EQ(here.patience.waited, there.patience.waited);
  EXPECT_EQ(here.left_out, there.left_out);
  EXPECT_EQ(here.tuned_methods, there.tuned_methods);
  ASSERT_TRUE(here.reached);
  EXPECT_EQ(here.reached->target, there.reached->target);
  EXPECT_EQ(here.reached->accuracy, there.reached->accuracy);
  EXPECT_EQ(here.reached->epoch, there.reached->epoch);
  EXPECT_EQ(here.reached->seconds, there.reached->seconds);
}

TEST(ProgressJson, AccuraciesAreThereWhereTheyWereFollowed) {
  loop::Progress there = made_progress();
  const Json without = to_json(there);
  EXPECT_FALSE(without["best"].contains("accuracy"));
  EXPECT_FALSE(without["patience"].contains("accuracy"));
  EXPECT_FALSE(without["plateau"].contains("best_accuracy"));
  EXPECT_FALSE(through_text(there).best.accuracy);
  there.best.accuracy = 5.0 / 7;
  there.patience.accuracy = 4.0 / 7;
  there.plateau.best_accuracy = 1.0 / 3;
  const loop::Progress here = through_text(there);
  EXPECT_EQ(here.best.accuracy, there.best.accuracy);
  EXPECT_EQ(here.patience.accuracy, there.patience.accuracy);
  EXPECT_EQ(here.plateau.best_accuracy, there.plateau.best_accuracy);
  EXPECT_TRUE(here.best.is_by(optim::Monitor::accuracy));
  Json wrong = to_json(there);
  wrong["best"]["accuracy"] = 1.5;
  expect_refusal(wrong, "accuracy");
}

/// Files of before they were counted do not have them, nor those of trainings without any.
TEST(ProgressJson, SkippedStepsAreThereWhereThereWereAny) {
  loop::Progress there = made_progress();
  EXPECT_FALSE(to_json(there).contains("skipped"));
  EXPECT_EQ(through_text(there).skipped, 0u);
  there.skipped = 17;
  EXPECT_EQ(through_text(there).skipped, 17u);
  there.skipped = there.steps + 1;
  expect_refusal(to_json(there), "skipped");
}

TEST(ProgressJson, SoDoThoseOfAnEpoch) {
  const loop::EpochSums there = *made_progress().begun;
  loop::EpochSums here = through_text(made_progress()).begun.value();
  loop::EpochSums expected = there;
  EXPECT_EQ(here.steps, there.steps);
  EXPECT_EQ(here.skipped, there.skipped);
  const auto sums = here.train.sums(), expected_sums = expected.train.sums();
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(*sums[i], *expected_sums[i]);
  EXPECT_EQ(here.seconds, there.seconds);
  EXPECT_EQ(here.settled.steps, there.settled.steps);
  EXPECT_EQ(here.settled.seconds, there.settled.seconds);
  for (const BudgetPart& part : kBudgetParts) {
    EXPECT_EQ(here.budget.*part.seconds, there.budget.*part.seconds) << part.name;
    EXPECT_EQ(here.settled.budget.*part.seconds, there.settled.budget.*part.seconds);
  }
  EXPECT_EQ(here.learning_rate, there.learning_rate);
}

TEST(ProgressJson, NoneIsNone) {
  const loop::Progress here = through_text({});
  EXPECT_FALSE(here.begun);
  EXPECT_FALSE(here.reached);
  EXPECT_EQ(here.plateau.best_loss, Limits::infinity());
  EXPECT_EQ(here.best.loss, Limits::infinity());
  EXPECT_TRUE(here.left_out.empty());
}

TEST(ProgressJson, NaNComesBackAsTheSameBits) {
  const std::uint64_t nan = 0xfff8000000000123;
  for (const double loss :
       {Limits::infinity(), -Limits::infinity(), std::bit_cast<double>(nan), -0.0}) {
    loop::Progress progress;
    progress.best.loss = loss;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(through_text(progress).best.loss),
              std::bit_cast<std::uint64_t>(loss));
  }
}

TEST(ProgressJson, EveryFieldIsNeededAndNoOther) {
  const Json whole = to_json(made_progress());
  for (const auto& [name, value] : whole.items()) {
    Json less = whole;
    less.erase(name);
    expect_refusal(less, "progress: " + name);
    for (const auto& [inner, of] : value.items()) {
      if (!value.is_object()) continue;
      less = whole;
      less[name].erase(inner);
      expect_refusal(less, "progress, " + name + ": " + inner);
      less[name][inner + "s"] = of;  // as many as are known
      expect_refusal(less, "progress, " + name + ": " + inner);
    }
  }
  Json more = whole;
  more["seed"] = 1;
  expect_refusal(more, "seed is not a field");
}

TEST(ProgressJson, ValuesLieWithinTheirLimits) {
  const Json whole = to_json(made_progress());
  const auto with = [&](const char* pointer, const Json& value) {
    Json changed = whole;
    changed[Json::json_pointer(pointer)] = value;
    return changed;
  };
  const std::vector<std::pair<const char*, Json>> wrong{
      {"/steps", -1},
      {"/steps", 1.5},
      {"/steps", "1"},
      {"/steps", (std::uint64_t{1} << 53) + 1},
      {"/settled_steps", 1234568},
      {"/epochs", 1'000'000'001},
      {"/begun", 7},
      {"/begun/steps", 1234568},
      {"/begun/skipped", 41},
      {"/begun/train/images", -1},
      {"/begun/train/loss", "much"},
      {"/begun/train/loss", "nan:3ff0000000000000"},
      {"/begun/train/loss", "nan:7ff80000000000zz"},
      {"/begun/budget/forward", Json::array()},
      {"/seconds", "inf"},
      {"/own_images", -0.5},
      {"/plateau/factor", "nan:7ff8000000000000"},
      {"/best/epoch", -1},
      {"/best/other", 1},
      {"/patience/other", 1},
      {"/reached", "never"},
      {"/left_out", Json::object()},
      {"/left_out/1", -3},
      {"/findings", "a\nb"},
      {"/findings", std::string(70000, 'd')},
      {"/findings", nullptr}};
  for (const auto& [pointer, value] : wrong) {
    std::string field(pointer);
    field = field.substr(1, field.find('/', 1) - 1);
    expect_refusal(with(pointer, value), field);
  }
  EXPECT_NO_THROW(progress_of(with("/begun/train/loss", "-inf")));
}

TEST(ProgressJson, StatesOfOtherFormsAreRefused) {
  for (const char* text :
       {"", "[]", "1", "{}", "{\"format\": 2", "{\"format\": 3}", "{\"format\": 2.5}",
        "{\"format\": \"2\"}", "{\"format\": 1}", "{\"format\": 2, \"format\": 2}"}) {
    EXPECT_THROW(parse_state(text), Error) << text;
  }
  EXPECT_THROW(progress_of_state(parse_state("{\"format\": 2}")), Error);
  EXPECT_THROW(progress_of_state(parse_state("{\"format\": 2, \"progress\": []}")), Error);
}

}  // namespace
}  // namespace cputrain::checkpoint
