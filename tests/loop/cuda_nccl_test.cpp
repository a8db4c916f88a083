// Trainings whose gradients the devices sum by themselves: ranks are threads, each with an emulated
// device of its own, and NCCL is a table that puts sums into their streams (tests/cuda/nccl).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <thread>

#include "backends/cuda/backend.h"
#include "backends/threads/threads_communicator.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "emulated/counts.h"
#include "emulated/settings.h"
#include "nccl/fake_nccl.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

namespace fake = nccl::fake;

/// As many devices as a test wants.
class CudaNccl : public ::testing::TestWithParam<int> {
 protected:
  void TearDown() override { emulated::restart(before_); }

  void use(int devices, emulated::Order order = emulated::Order::forward,
           const fake::Settings& settings = {}) {
    emulated::Settings all = before_;
    all.devices = devices;
    all.order = order;
    emulated::restart(all);
    fake::restart(settings);
  }

 private:
  emulated::Settings before_ = emulated::settings();
};

struct OnDevices {
  int devices = 1;
  bool captures = true;
  nccl::TimeLimits limits{};
};

/// Each rank that asks takes the next device.
MadeOptions on_devices(MadeOptions options, const OnDevices& how) {
  const auto next = std::make_shared<std::atomic<int>>(0);
  options.backend = [next, how] {
    return cuda::make_device_backend({.device = (*next)++ % how.devices, .captures = how.captures},
                                     {.library = &fake::library(), .limits = how.limits});
  };
  return options;
}

std::map<int, MadeResult> train_on(int ranks, const MadeOptions& options, bool captures = true) {
  return train_ranks(ranks, on_devices(options, {.devices = ranks, .captures = captures}));
}

MadeOptions with_momentum() {
  MadeOptions options;
  options.optimizer = {.rule = optim::Sgd{.momentum = 0.9}, .weight_decay = 0.01};
  options.rate = {.base = 0.01, .schedule = optim::InverseTimeDecay{0.5}};
  options.allreduce = comm::parse_allreduce("nccl");
  return options;
}

void expect_curve(const MadeResult& made, const MadeResult& expected, double bound) {
  const std::vector<double> here = losses(made), there = losses(expected);
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    EXPECT_NEAR(here[i], there[i], bound * std::abs(there[i])) << "value " << i;
  }
}

/// What clips, skips, or has rates of its own for layers comes between the sums and the update.
TEST_P(CudaNccl, HasTheCurveOfPlainLoops) {
  std::map<std::string, MadeOptions> recipes = made_recipes();
  recipes["RMSprop"] = {};
  recipes["momentum"] = with_momentum();
  for (auto& [name, options] : recipes) {
    SCOPED_TRACE(name);
    if (options.batch_norm) options.optimizer.rule = optim::Sgd{.momentum = 0.9};
    options.allreduce = comm::parse_allreduce("nccl");
    use(GetParam());
    const MadeResult expected = [&] {
      MadeOptions plain = options;
      plain.allreduce = {};
      return train_made(*comm::make_solo(), plain);
    }();
    for (const auto& [rank, made] : train_on(GetParam(), options)) {
      SCOPED_TRACE(rank);
      expect_curve(made, expected, 1e-4);
    }
    EXPECT_GT(fake::seen().sums, 0);
    EXPECT_EQ(fake::seen().destroyed, GetParam());
    EXPECT_EQ(fake::seen().aborted, 0);
  }
}

/// In every order of work, with graphs and without.
TEST_P(CudaNccl, HasTheSameBitsEachTimeOnEveryRank) {
  const MadeOptions options = with_momentum();
  std::string bits;
  for (const auto order :
       {emulated::Order::forward, emulated::Order::reverse, emulated::Order::random}) {
    for (const bool captures : {true, false}) {
      use(GetParam(), order);
      for (const auto& [rank, made] : train_on(GetParam(), options, captures)) {
        if (bits.empty()) bits = made.weights_hash;
        EXPECT_EQ(made.weights_hash, bits) << rank;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CudaNccl, ::testing::Values(1, 2, 3, 7));

using CudaNcclSteps = CudaNccl;

/// A fourth step of one micro-batch, on two ranks.
TEST_F(CudaNcclSteps, AreOneGraphWithSumsAndUpdate) {
  MadeOptions options = with_momentum();
  options.micro_batch = 5;
  options.batch = 6;
  options.samples = 30;
  options.prefetch = 0;
  options.validation = 0;
  const auto counts_of = [&](std::uint64_t steps) {
    use(2);
    options.train.steps = steps;
    const emulated::Counts before = emulated::counts();
    train_on(2, options);
    return difference(emulated::counts(), before);
  };
  const emulated::Counts three = counts_of(3);
  const fake::Seen seen_three = fake::seen();
  const emulated::Counts step = difference(counts_of(4), three);
  const fake::Seen seen = fake::seen();
  EXPECT_EQ(step.graphs, 2u);
  EXPECT_EQ(step.kernels.at("update").launches, 2u);
  EXPECT_LE(step.waits(), 6u);
  EXPECT_EQ(seen.captured, seen_three.captured);  // the graph is there, and was launched again
  EXPECT_GT(seen.captured, 0);
  EXPECT_GT(seen.sums, seen_three.sums);
  EXPECT_EQ(seen.counts, seen_three.counts);
}

/// Each bucket is a sum of its own; the last is what is left.
TEST_F(CudaNcclSteps, SumBucketByBucket) {
  MadeOptions options = with_momentum();
  options.train.steps = 1;
  options.validation = 0;
  use(2);
  options.bucket_bytes = 1;
  train_on(2, options);
  const std::vector<std::size_t> many = fake::seen().counts;
  use(2);
  options.bucket_bytes = std::size_t{1} << 30;
  train_on(2, options);
  const std::vector<std::size_t> one = fake::seen().counts;
  ASSERT_EQ(one.size(), 1u);
  EXPECT_GT(many.size(), 3u);
  EXPECT_EQ(std::accumulate(many.begin(), many.end(), std::size_t{0}), one[0]);
}

/// Batches of fewer images than ranks leave some of them without any.
TEST_F(CudaNcclSteps, HaveRanksWithoutImages) {
  MadeOptions options = with_momentum();
  options.batch = 2;
  options.samples = 5;
  MadeOptions plain = options;
  plain.allreduce = {};
  use(3);
  const MadeResult expected = train_made(*comm::make_solo(), plain);
  for (const auto& [rank, made] : train_on(3, options)) expect_curve(made, expected, 1e-4);
}

TEST_F(CudaNcclSteps, MaySendHalfTheBytes) {
  MadeOptions options = with_momentum();
  options.compression = exchange::parse_compression("bf16");
  MadeOptions plain = with_momentum();
  plain.allreduce = {};
  use(3);
  const MadeResult expected = train_made(*comm::make_solo(), plain);
  std::string bits;
  for (const bool captures : {true, false}) {
    use(3);
    for (const auto& [rank, made] : train_on(3, options, captures)) {
      expect_curve(made, expected, 3e-2);
      if (bits.empty()) bits = made.weights_hash;
      EXPECT_EQ(made.weights_hash, bits);
    }
  }
  use(3);
  EXPECT_NE(train_on(3, with_momentum()).at(0).weights_hash, bits);
}

TEST_F(CudaNcclSteps, GoOnFromACheckpoint) {
  MadeOptions options = with_momentum();
  options.due = [](const Progress& progress) { return progress.steps == 3; };
  use(2);
  const auto whole = train_on(2, options);
  const MadeState taken = whole.at(0).control.taken.at(0);
  options.due = nullptr;
  options.start = &taken;
  use(2);
  for (const auto& [rank, made] : train_on(2, options)) {
    EXPECT_EQ(made.weights_hash, whole.at(0).weights_hash);
  }
}

std::string error_of(ExitCode code, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

using CudaNcclFailures = CudaNccl;

/// So that a watch names who does not come, and not those that wait for it in no call of their own.
TEST_F(CudaNcclFailures, RanksShowThatTheyWaitForOneThatIsStopped) {
  MadeOptions options = with_momentum();
  options.micro_batch = 5;
  options.batch = 6;
  use(2);
  const MadeOptions made = on_devices(options, {.devices = 2});
  std::atomic<comm::Pulse*> pulse_of_other = nullptr;
  std::atomic<bool> shown = false;
  threads::run_ranks(2, [&](comm::Communicator& communicator) {
    MadeOptions own = made;
    if (communicator.rank() == 0) pulse_of_other = &communicator.pulse();
    own.fault = [&](const FaultPlace& place) {
      if (place.rank != 1 || place.step != 3 || place.phase != comm::Phase::input) return;
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (!shown && std::chrono::steady_clock::now() < end) {
        const comm::Pulse& pulse = *pulse_of_other.load();
        shown = pulse.waits() && pulse.helper_waits() && pulse.place().step == 3;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    };
    train_made(communicator, own);
  });
  EXPECT_TRUE(shown);
}

MadeOptions with_one_sum_a_step() {
  MadeOptions options = with_momentum();
  options.bucket_bytes = std::size_t{1} << 30;
  options.micro_batch = 5;  // of all ranks in the last micro-batch, so that steps may be graphs
  return options;
}

/// What a rank ends with, and how many checkpoints it has taken, one after each step.
struct End {
  std::string error{};
  std::size_t checkpoints = 0;
};
End end_of(comm::Communicator& communicator, MadeOptions options) {
  End end;
  MadeControl control;
  options.control = &control;
  options.due = [](const Progress&) { return true; };
  end.error = error_of(ExitCode::internal, [&] { train_made(communicator, options); });
  end.checkpoints = control.taken.size();
  return end;
}

/// The same of two ranks. The first of them that ends has the others leave whatever they wait for;
/// what they end with may be that.
std::vector<End> ends_of_two(const std::function<MadeOptions(int rank)>& options) {
  std::vector<End> ends(2);
  error_of(ExitCode::internal, [&] {
    threads::run_ranks(2, [&](comm::Communicator& communicator) {
      End& end = ends[static_cast<std::size_t>(communicator.rank())];
      end = end_of(communicator, options(communicator.rank()));
      fail(ExitCode::internal, end.error);
    });
  });
  return ends;
}

void expect_told(const std::vector<End>& ends, const std::string& words) {
  const auto tells = [&](const End& end) { return end.error.find(words) != std::string::npos; };
  EXPECT_TRUE(std::ranges::any_of(ends, tells)) << ends.front().error;
  for (const End& end : ends) EXPECT_NE(end.error, "no error");
}

TEST_F(CudaNcclFailures, EndTheTrainingAndReachNoCheckpoint) {
  for (const bool captures : {true, false}) {
    use(2);
    fake::break_at(4);
    const MadeOptions made =
        on_devices(with_one_sum_a_step(), {.devices = 2, .captures = captures});
    const std::vector<End> ends = ends_of_two([&](int) { return made; });
    expect_told(ends, "remote process exited");
    for (const End& end : ends) EXPECT_LE(end.checkpoints, 4u);
    EXPECT_EQ(fake::seen().aborted, 2);
  }
}

/// Calls that NCCL refuses. Graphs make none: the last of four is that of the last step of the
/// second epoch.
TEST_F(CudaNcclFailures, InTheCallEndTheTraining) {
  for (const bool captures : {true, false}) {
    use(1);
    fake::refuse_at(3);
    const MadeOptions made = on_devices(with_one_sum_a_step(), {.captures = captures});
    const End end = end_of(*comm::make_solo(), made);
    EXPECT_NE(end.error.find("remote process exited"), std::string::npos) << end.error;
    EXPECT_EQ(end.checkpoints, captures ? 9u : 3u);
    EXPECT_EQ(fake::seen().aborted, 1);
  }
}

/// Without a checkpoint, too: what comes behind a sum that failed is nobody's loss or norm.
TEST_F(CudaNcclFailures, EndTheTrainingSoon) {
  constexpr int kFirst = 2, kLater = 3;
  for (const bool clips : {true, false}) {
    SCOPED_TRACE(clips);
    MadeOptions options = with_one_sum_a_step();
    if (clips) options.optimizer.clip_norm = 1e-3;
    options.samples = 60;  // twelve steps of one kind, which are graphs from the second on
    options.validation = 0;
    use(1);
    fake::break_at(kFirst);
    const std::string text = error_of(
        ExitCode::internal, [&] { train_made(*comm::make_solo(), on_devices(options, {})); });
    EXPECT_NE(text.find("remote process exited"), std::string::npos) << text;
    EXPECT_LE(fake::seen().sums, kFirst + kLater);
  }
}

/// A device that fails while sums are under way: here of ranks that cut their gradients otherwise.
TEST_F(CudaNcclFailures, OfTheDeviceAreToldWithoutACrash) {
  use(2);
  const MadeOptions made = on_devices(with_momentum(), {.devices = 2});
  const std::vector<End> ends = ends_of_two([&](int rank) {
    MadeOptions own = made;
    own.bucket_bytes = rank == 0 ? 1 : std::size_t{1} << 30;
    return own;
  });
  expect_told(ends, "arrays of different lengths");
}

TEST_F(CudaNcclFailures, RanksThatNeverComeAreGivenUp) {
  use(2);
  fake::let_nobody_join();
  const auto options =
      on_devices(with_momentum(), {.devices = 2, .limits = {.start = 0.05, .call = 1}});
  const std::string text = error_of(ExitCode::internal, [&] { train_ranks(2, options); });
  EXPECT_NE(text.find("joining the other ranks took over 0.05 s"), std::string::npos) << text;
}

/// Two ranks of one device: refused before training where NCCL was asked for, else by way of the
/// host, unless NCCL can.
TEST_F(CudaNcclFailures, TwoRanksOfOneDeviceAreToldApart) {
  use(1);
  MadeOptions options = with_momentum();
  const auto train = [&] { return train_ranks(2, on_devices(options, {.devices = 1})); };
  const std::string text = error_of(ExitCode::usage, train);
  EXPECT_NE(text.find("ranks 0 and 1 share a GPU, which NCCL 2.28.9 refuses"), std::string::npos)
      << text;
  options.allreduce = {};
  train();
  EXPECT_EQ(fake::seen().joined, 0);
}

}  // namespace
}  // namespace cputrain::loop
