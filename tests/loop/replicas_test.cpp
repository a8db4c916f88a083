#include "loop/replicas.h"

#include <gtest/gtest.h>

#include "backends/threads/threads_communicator.h"
#include "core/error.h"
#include "tests/loop/made_training.h"

namespace cputrain::loop {
namespace {

TEST(Replicas, ThoseThatDifferAreNamed) {
  const std::vector<std::string> hosts{"a", "b", "c", "d", "e"};
  const auto odd = [&](const std::vector<std::uint64_t>& hashes) {
    return odd_ranks(hashes, hosts);
  };
  EXPECT_EQ(odd({7, 7, 7}), "");
  EXPECT_EQ(odd({7}), "");
  EXPECT_EQ(odd({7, 7, 8, 7}), "rank 2 (host c) differs from the other 3");
  EXPECT_EQ(odd({8, 7, 7}), "rank 0 (host a) differs from the other 2");
  EXPECT_EQ(odd({1, 7, 2, 7, 7}), "ranks 0 (host a), 2 (host c) differ from the other 3");
  EXPECT_EQ(odd({7, 8}), "these differ from each other: rank 0 (host a); rank 1 (host b)");
  EXPECT_EQ(odd({7, 8, 7, 8}),
            "these differ from each other: ranks 0 (host a), 2 (host c); ranks 1 (host b), 3 "
            "(host d)");
  EXPECT_EQ(odd_ranks(std::vector<std::uint64_t>{7, 7, 8}, {}), "rank 2 differs from the other 2");
}

/// One bit of one weight of a rank flips while a step is made.
std::function<void(const FaultPlace&)> bit_flip(int rank, std::uint64_t step) {
  return [=](const FaultPlace& place) {
    if (place.phase != comm::Phase::update || place.rank != rank || place.step != step) return;
    std::byte* const byte = place.weights.bytes().data() + 5;
    std::byte value{};
    place.memory->read(byte, {&value, 1});
    value ^= std::byte{1};
    place.memory->write({&value, 1}, byte);
  };
}

TEST(Replicas, ABitThatFlippedEndsTheTrainingAtTheNextCheck) {
  threads::run_ranks(3, [](comm::Communicator& communicator) {
    MadeOptions options;
    options.allreduce = comm::parse_allreduce("ring");
    options.train.hosts = {"one", "two", "three"};
    options.train.check_replicas = 4;
    options.fault = bit_flip(1, 6);
    Recorder recorder;
    options.recorder = &recorder;
    try {
      train_made(communicator, options);
      ADD_FAILURE() << "went on";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::disagree);
      EXPECT_NE(std::string(error.what())
                    .find("after step 8: rank 1 (host two) differs from the other 2"),
                std::string::npos)
          << error.what();
    }
    EXPECT_EQ(recorder.steps.size(), 8u);
    communicator.barrier();  // nobody lets go of weights that others read
  });
}

// Statistics of batch norm differ within an epoch, as they should.
TEST(Replicas, ThatAreAlikePass) {
  for (const char* way : {"shm", "ring", "ps"}) {
    MadeOptions options;
    options.batch_norm = true;
    options.synchronised = false;
    options.micro_batch = 22;
    options.allreduce = comm::parse_allreduce(way);
    options.train.check_replicas = 1;
    EXPECT_EQ(train_ranks(3, options).at(0).result.progress.steps, 10u);
  }
}

}  // namespace
}  // namespace cputrain::loop
