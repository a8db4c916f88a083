// A training as a program of one's own makes it: its steps, images and weights.
#include "training/training.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>

#include "composition/services.h"
#include "core/error.h"
#include "logging/reporters.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "weights/description.h"
#include "weights/load.h"

namespace cputrain::training {
namespace {

/// Small, since under ThreadSanitizer the reference backend computes it.
constexpr const char* kNetwork = R"({"format": "cputrain model 1", "name": "small",
  "recipe": {"image_size": 16, "batch": 8, "epochs": 1, "optimizer": "sgd", "learning_rate": 0.01},
  "layers": [{"type": "convolution", "filters": 4, "kernel": 3}, {"type": "relu"},
             {"type": "max_pool", "size": 2, "stride": 2}, {"type": "dropout", "rate": 0.3}, {"type": "flatten"},
             {"type": "dense", "units": "classes"}, {"type": "softmax"}]})";

class Trainings : public ::testing::Test {
 protected:
  Trainings() : services_(composition::make_services(launcher_, signals_)) {
    const std::filesystem::path network = folder_.path() / "small.json";
    std::ofstream(network) << kNetwork;
    flags_.model = network;
    flags_.data = "synthetic:30";
    flags_.image_size = 16;
    flags_.batch = 9;
    flags_.epochs = 1;
    flags_.threads = 1;
    flags_.verbose = 0;
    flags_.reproducible = true;  // the same bits each time
  }

  loop::TrainResult run(Training& training) {
    const auto silent = logging::all_of({});
    return training.run(*silent, [] { return false; });
  }

  /// The words with which open_training() refuses these flags; empty where it does not.
  std::string refusal(const Session& session, const std::function<void(TrainingFlags&)>& change) {
    TrainingFlags flags = flags_;
    change(flags);
    return testing::refusal_of(ExitCode::usage,
                               [&] { open_training(session, choose_training(flags)); });
  }

  system::SignalWatch signals_;
  placement::Launcher launcher_;  // nobody's
  Services services_;
  TrainingFlags flags_;
  testing::TemporaryFolder folder_;
};

TEST_F(Trainings, StepsAreThoseOfThePlan) {
  const Session session = start_session(flags_, services_);
  Training training = open_training(session, choose_training(flags_));
  training.compile();
  EXPECT_EQ(training.batches().train.samples(), 27u);  // a tenth of 30 validates
  EXPECT_EQ(training.batches().train.steps(), 3u);
  EXPECT_EQ(training.batches().validation.samples(), 3u);
  const RankMemory& memory = training.compiled().memory.ranks.at(0);
  EXPECT_GE(memory.gradients, 4 * training.plan().graph.parameter_count());  // floats
  training.load();
  training.start();
  const loop::TrainResult result = run(training);
  EXPECT_EQ(result.progress.steps, 3u);
  EXPECT_EQ(result.progress.epochs, 1);
  EXPECT_EQ(result.last->train.images, 27);
  EXPECT_EQ(result.last->validation->images, 3);
}

TEST_F(Trainings, ImagesThatAreDecodedServeSeveral) {
  const Session session = start_session(flags_, services_);
  const TrainingSpec spec = choose_training(flags_);
  const auto source = std::make_shared<const data::DataSource>(
      services_.data.open(spec.flags.data_request(spec.seed)));
  const auto data = std::make_shared<const data::DecodedData>(
      services_.data.decode(*source, {spec.image}, session.communicator->node_memory()));
  std::string first;
  for (int i = 0; i < 2; ++i) {
    Training training(session, plan_training(session, spec, 2), source);
    training.load(data);  // compiles, since nobody did
    training.start();
    run(training);
    const std::string hash =
        weights::weights_hash(*training.compiled().program, training.weights());
    if (i == 0) first = hash;
    EXPECT_EQ(hash, first);
  }
}

TEST_F(Trainings, SavedWeightsAreTheOnesThatWereTrained) {
  const std::filesystem::path file = folder_.path() / "weights.safetensors";
  const Session session = start_session(flags_, services_);
  std::string trained;
  {
    Training training = open_training(session, choose_training(flags_));
    training.load();
    training.start();
    run(training);
    training.save(file);
    trained = weights::weights_hash(*training.compiled().program, training.weights());
  }
  EXPECT_EQ(weights::read_description(file).model, "small");
  flags_.weights = file;
  Training next = open_training(session, choose_training(flags_));
  next.load();
  next.start();
  EXPECT_EQ(weights::weights_hash(*next.compiled().program, next.weights()), trained);
}

TEST_F(Trainings, ABackendThatIsNotThereIsRefused) {
  flags_.backend = "abacus";
  const std::string text =
      testing::refused(ExitCode::usage, [&] { start_session(flags_, services_); });
  EXPECT_NE(text.find("reference"), std::string::npos) << text;
}

TEST_F(Trainings, TheBackendKnowsOfFewSteps) {
  bool brief = false;
  services_.make_backend = [&, make = services_.make_backend](const BackendRequest& request) {
    brief = request.brief;
    return make(request);
  };
  const auto is_brief = [&](std::optional<std::uint64_t> steps) {
    flags_.steps = steps;
    start_session(flags_, services_);
    return brief;
  };
  EXPECT_TRUE(is_brief(99));
  EXPECT_FALSE(is_brief(100));
  EXPECT_FALSE(is_brief({}));
}

/// What each of these flags asks for needs images for validation, whatever takes them away.
TEST_F(Trainings, WhatWatchesTheValidationIsRefusedWithoutOne) {
  const std::map<std::string, std::function<void(TrainingFlags&)>> watchers{
      {"--early-stopping",
       [](TrainingFlags& f) {
         f.safety.early_stopping = EarlyStopping{1, 0};
       }},
      {"--save-best", [](TrainingFlags& f) { f.safety.save_best = true; }},
      {"--schedule plateau:3:0.5",
       [](TrainingFlags& f) {
         f.schedule = optim::Plateau{3, 0.5};
       }},
      {"--target-accuracy 0.9", [](TrainingFlags& f) { f.target_accuracy = 0.9; }}};
  const std::map<std::string, std::function<void(TrainingFlags&)>> absences{
      {"--limit-val 0 looks", [](TrainingFlags& f) { f.limit_val = 0; }},
      {"--validation-split 0 keeps", [](TrainingFlags& f) { f.validation_split = 0; }},
      {"--validation-split 0.01 of 30 images in 2 classes comes to none",
       [](TrainingFlags& f) { f.validation_split = 0.01; }},
      {"--validation-split 0.1 of 2 images in 2 classes comes to none",
       [](TrainingFlags& f) { f.data = "synthetic:2"; }}};
  const Session session = start_session(flags_, services_);
  for (const auto& [flag, ask] : watchers) {
    EXPECT_EQ(refusal(session, ask), "") << flag;
    for (const auto& [why, take_away] : absences) {
      const std::string said = refusal(session, [&](TrainingFlags& flags) {
        ask(flags);
        take_away(flags);
      });
      EXPECT_TRUE(said.starts_with(flag)) << said;
      EXPECT_NE(said.find(why), std::string::npos) << said;
    }
  }
}

/// Nobody asked for it here, and measurements evaluate nothing.
TEST_F(Trainings, APlateauOfARecipeIsWarnedOf) {
  const std::filesystem::path network = folder_.path() / "plateau.json";
  std::string text = kNetwork;
  const std::string rate = R"("learning_rate": 0.01)";
  text.replace(text.find(rate), rate.size(), rate + R"(, "schedule": "plateau:2")");
  std::ofstream(network) << text;
  flags_.model = network;
  flags_.limit_val = 0;
  const Session session = start_session(flags_, services_);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(refusal(session, [](TrainingFlags&) {}), "");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("plateau:2"), std::string::npos) << said;
  EXPECT_NE(said.find("--limit-val 0 looks at none"), std::string::npos) << said;
}

}  // namespace
}  // namespace cputrain::training
