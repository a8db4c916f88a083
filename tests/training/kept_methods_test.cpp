// Tiles that a training found are there for the next one, whose device is emulated here.
#include "training/plan/kept_methods.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/backend.h"
#include "backends/threads/threads_communicator.h"
#include "composition/services.h"
#include "emulated/settings.h"
#include "logging/reporters.h"
#include "tests/support/temporary_folder.h"
#include "training/training.h"
#include "weights/load.h"

namespace cputrain::training {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNetwork = R"({"format": "cputrain model 1", "name": "small",
  "recipe": {"image_size": 6, "batch": 8, "epochs": 6, "optimizer": "sgd", "learning_rate": 0.01},
  "layers": [{"type": "convolution", "filters": 40, "kernel": 3, "name": "conv"}, {"type": "relu"},
             {"type": "flatten"}, {"type": "dense", "units": "classes"}, {"type": "softmax"}]})";

/// A variable of the environment, until it goes out of scope.
class InEnvironment {
 public:
  InEnvironment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~InEnvironment() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  InEnvironment(const InEnvironment&) = delete;
  InEnvironment& operator=(const InEnvironment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// What a rank saw of one training.
struct Seen {
  bool tried = false;
  std::string at_first{}, recorded{}, in_the_end{};  ///< tiles; `recorded`: by what it began with
  std::string weights{};
};

class KeptMethods : public ::testing::Test {
 protected:
  KeptMethods() : services_(composition::make_services(launcher_, signals_)) {
    emulated::Settings two = before_;
    two.devices = 2;
    emulated::restart(two);
    const fs::path network = folder_.path() / "small.json";
    std::ofstream(network) << kNetwork;
    flags_.model = network;
    flags_.data = "synthetic:40";
    flags_.threads = 1;
    flags_.verbose = 0;
    flags_.allreduce = comm::parse_allreduce("staged");
  }
  ~KeptMethods() override { emulated::restart(before_); }

  Seen train(bool measures = true) { return train_on(1, measures).front(); }

  /// By rank. Only rank 0 has its device for itself: a file of its tiles is none of others'.
  std::vector<Seen> train_on(int ranks, bool measures = true) {
    std::vector<Seen> seen(static_cast<std::size_t>(ranks));
    threads::run_ranks(ranks, [&](comm::Communicator& communicator) {
      Session session{.services = services_, .communicator = nullptr, .quiet = true};
      session.communicator.reset(&communicator);
      try {
        seen[static_cast<std::size_t>(communicator.rank())] = train(session, measures);
      } catch (...) {
        (void)session.communicator.release();
        throw;
      }
      (void)session.communicator.release();
    });
    return seen;
  }

  /// Those of the cache.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    const fs::path cache = folder_.path() / "cputrain";
    if (fs::exists(cache)) found.assign(fs::directory_iterator(cache), fs::directory_iterator());
    return found;
  }

  TrainingFlags flags_;
  fs::path checkpoint_, goes_on_from_;  ///< folders, of one rank; empty: none
  testing::TemporaryFolder folder_;
  InEnvironment cache_{"XDG_CACHE_HOME", folder_.path().string()};

 private:
  Seen train(Session& session, bool measures) {
    const int rank = session.communicator->rank();
    session.nodes = comm::read_node_map(*session.communicator);
    for (int each = 0; each < session.communicator->size(); ++each) {
      session.plan.ranks.push_back({.rank = each, .host = "here"});
    }
    session.device.ranks = 1 + rank;
    session.backend = cuda::make_device_backend({.device = rank, .measures = measures});
    Training training = open_training(session, choose_training(flags_));
    training.load();
    const loop::Progress start = begin(training);
    compute::Program& program = *training.compiled().program;
    Seen seen{.tried = program.tuner().trying(),
              .at_first = program.tuner().tuned_methods(),
              .recorded = start.tuned_methods};
    const auto silent = logging::all_of({});
    loop::Control control;
    training.run(start, *silent, control);
    keep_methods(session, training.plan(), program);
    seen.in_the_end = program.tuner().tuned_methods();
    seen.weights = weights::weights_hash(program, training.weights());
    return seen;
  }

  /// From a checkpoint, or from the beginning, of which one may be taken.
  loop::Progress begin(Training& training) {
    if (!goes_on_from_.empty()) return training.resume(goes_on_from_);
    training.start();
    loop::Progress start;
    start.tuned_methods = training.compiled().program->tuner().tuned_methods();
    if (checkpoint_.empty()) return start;
    fs::create_directory(checkpoint_);
    training.snapshot().take(start);
    training.snapshot().write(checkpoint_, training.description(), {});
    return start;
  }

  system::SignalWatch signals_;
  placement::Launcher launcher_;  // nobody's
  Services services_;
  emulated::Settings before_ = emulated::settings();
};

TEST_F(KeptMethods, AreThoseThatAnEarlierTrainingFound) {
  const Seen first = train();
  EXPECT_TRUE(first.tried);
  EXPECT_NE(first.in_the_end, "");
  ASSERT_EQ(files().size(), 1u);
  const Seen next = train();
  EXPECT_FALSE(next.tried);
  EXPECT_EQ(next.at_first, first.in_the_end);
  EXPECT_EQ(next.in_the_end, first.in_the_end);
  EXPECT_EQ(next.weights, first.weights);
  EXPECT_EQ(files().size(), 1u);
}

TEST_F(KeptMethods, AreNoneWhereTilesAreTheRules) {
  const Seen rule = train(false);
  EXPECT_FALSE(rule.tried);
  EXPECT_EQ(rule.in_the_end, "");
  EXPECT_TRUE(files().empty());
  train();
  EXPECT_EQ(train(false).at_first, "");
}

/// A checkpoint from before the trials' end has none; one with tiles brings them into the file.
TEST_F(KeptMethods, AreThereForWhatGoesOn) {
  checkpoint_ = folder_.path() / "early";
  const Seen first = train();
  checkpoint_ = folder_.path() / "late";
  train();
  fs::remove(files().front());
  for (const char* name : {"late", "early"}) {
    goes_on_from_ = folder_.path() / name;
    const Seen next = train();
    EXPECT_FALSE(next.tried) << name;
    EXPECT_EQ(next.at_first, first.in_the_end) << name;
    EXPECT_EQ(next.recorded, first.in_the_end) << name;
    EXPECT_EQ(next.weights, first.weights) << name;
    EXPECT_EQ(files().size(), 1u) << name;
  }
}

TEST_F(KeptMethods, AreNotThoseOfOtherTrainings) {
  train();
  flags_.freeze = {"conv"};
  EXPECT_TRUE(train().tried);
  EXPECT_EQ(files().size(), 2u);
  flags_.freeze = {};
  flags_.micro_batch = 4;
  EXPECT_TRUE(train().tried);
  EXPECT_EQ(files().size(), 3u);
  flags_.image_size = 8;
  EXPECT_TRUE(train().tried);
  EXPECT_EQ(files().size(), 4u);
}

TEST_F(KeptMethods, ReplaceADamagedFile) {
  const std::string found = train().in_the_end;
  ASSERT_EQ(files().size(), 1u);
  const fs::path file = files().front();
  const std::string whole = testing::text_of(file);
  const std::string origin = whole.substr(0, whole.find('\n') + 1);
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() - 1), "x" + whole, whole + "x",
        origin + "no tiles\n", origin + found + " 000\n", std::string(100'000, '0')}) {
    std::ofstream(file) << text;
    const Seen seen = train();
    EXPECT_TRUE(seen.tried) << text.substr(0, 200);
    EXPECT_EQ(testing::text_of(file), origin + seen.in_the_end + "\n");
  }
}

TEST_F(KeptMethods, NeedNoPlace) {
  const InEnvironment home("HOME", "");
  for (const std::string& place :
       {(folder_.path() / "small.json").string(), std::string("no/root")}) {
    const InEnvironment cache("XDG_CACHE_HOME", place);
    EXPECT_NE(train().in_the_end, "");
    EXPECT_TRUE(train().tried);
  }
}

TEST_F(KeptMethods, AreRank0sOnAllRanks) {
  flags_.batch = 16;
  flags_.epochs = 10;
  const std::vector<Seen> first = train_on(2);
  EXPECT_TRUE(first[1].tried);
  EXPECT_EQ(files().size(), 1u);
  const std::vector<Seen> next = train_on(2);
  for (const Seen& seen : next) {
    EXPECT_FALSE(seen.tried);
    EXPECT_EQ(seen.at_first, first[0].in_the_end);
    EXPECT_EQ(seen.weights, first[0].weights);
  }
}

}  // namespace
}  // namespace cputrain::training
