// Sums of one rank: NCCL's own where there is a GPU with it, else the table for emulated devices.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

#include "backends/cuda/device_sums.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "tests/backends/cuda/nccl_under_test.h"

namespace cputrain::cuda {
namespace {

class NcclOfOneRank : public ::testing::Test {
 protected:
  void SetUp() override {
    const nccl::Library& library = nccl_under_test();
    if (!library.calls) GTEST_SKIP() << library.why_none;
    sums_.emplace(0, "device", compute_, library);
  }

  /// Numbers that bf16 has, from 1 on.
  compute::OwnedArray numbers(std::size_t count) {
    compute::OwnedArray array(memory_, count, DType::f32);
    std::vector<double> values(count);
    std::iota(values.begin(), values.end(), 1.0);
    compute::write_numbers(memory_, values, array.array());
    return array;
  }

  std::unique_ptr<compute::DeviceSum> sum(std::size_t most, bool narrow = false) {
    return sums_->make(*ranks_, narrow, most);
  }

  ComputeStream compute_;
  DeviceMemory memory_{0, 1, Numbers::exact, compute_};
  std::unique_ptr<comm::Communicator> ranks_ = comm::make_solo();
  std::optional<NcclSums> sums_;
};

/// An odd place, too, and nothing.
TEST_F(NcclOfOneRank, ChangesNothing) {
  for (const bool narrow : {false, true}) {
    const auto array = numbers(201);
    const std::vector<double> before = compute::read_numbers(memory_, array.array());
    const auto sum = this->sum(201, narrow);
    sum->enqueue(array.array().slice(0, 7));
    sum->enqueue(array.array().slice(7, 201));
    sum->enqueue(array.array().slice(201, 201));
    sum->join();
    sum->started();
    compute_.finish_call();
    EXPECT_EQ(compute::read_numbers(memory_, array.array()), before);
    EXPECT_EQ(sum->memory(), narrow ? 402u : 0u);
    EXPECT_EQ(sum->library_memory(), 0u);  // it moves nothing
  }
}

/// As passes are: what comes before, the sum beside, what comes behind.
TEST_F(NcclOfOneRank, IsAPartOfGraphs) {
  const auto array = numbers(100);
  const auto sum = this->sum(100, /*narrow=*/true);
  {
    const Graph graph(compute_.get(), [&] {
      clear_async(array.array().data, 50 * sizeof(float), compute_.get());
      sum->enqueue(array.array());
      sum->join();
    });
    for (int launch = 0; launch < 3; ++launch) {
      graph.launch(compute_.get());
      sum->started();
      compute_.finish_call();
    }
    const std::vector<double> after = compute::read_numbers(memory_, array.array());
    EXPECT_EQ(after[49], 0);
    EXPECT_EQ(after[50], 51);
    EXPECT_EQ(after[99], 100);
  }
}

/// Whoever waits for the stream goes on.
TEST_F(NcclOfOneRank, IsGivenUp) {
  const auto array = numbers(64);
  OwnedStream stream;
  nccl::Group group(nccl_under_test(), nccl::Group::make_id(nccl_under_test()), 0, 1);
  group.all_reduce(array.array().data, 64, nccl::DataType::float32,
                   reinterpret_cast<nccl::Stream*>(stream.get()));
  group.abort();
  stream.synchronize();
  EXPECT_THROW(group.all_reduce(array.array().data, 64, nccl::DataType::float32,
                                reinterpret_cast<nccl::Stream*>(stream.get())),
               Error);
}

TEST_F(NcclOfOneRank, IsNamedWithItsVersion) {
  EXPECT_EQ(sums_->facts().library.substr(0, 7), "NCCL 2.");
  EXPECT_EQ(sums_->facts().device, "device");
}

TEST_F(NcclOfOneRank, SaysWhatSomebodyTurnedOn) {
  const auto varies = [this](const char* value) {
    ::setenv("NCCL_NVLS_ENABLE", value, 1);
    return NcclSums(0, "device", compute_, nccl_under_test()).facts().varies;
  };
  EXPECT_EQ(varies("1"), "NCCL_NVLS_ENABLE=1");
  EXPECT_EQ(varies("0"), "");
}

/// What a stream computes behind a sum that was given up reaches nobody.
TEST(ComputeStreams, MayBeSpoilt) {
  ComputeStream compute;
  DeviceMemory memory(0, 1, Numbers::exact, compute);
  const compute::OwnedArray array(memory, 3, DType::f32);
  compute.spoil("a rank is gone");
  compute.spoil("another, too");
  try {
    compute::read_numbers(memory, array.array());
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a rank is gone");
  }
  EXPECT_THROW(compute.synchronize(), Error);
}

}  // namespace
}  // namespace cputrain::cuda
