// A rank that fails must not leave the others waiting: every test here ends, or runs into ctest's
// limit.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backends/threads/threads_communicator.h"
#include "core/error.h"
#include "exchange/exchanges.h"
#include "tests/support/refusal.h"

namespace cputrain::threads {
namespace {

struct Waiting {
  const char* name;
  void (*wait)(comm::Communicator&);
};

void wait_in_exchange(comm::Communicator& comm) {
  const compute::ParameterLayout layout{
      {{"p", {8}, 8, Range{0, 8}, true, true, false, 0}}, 16, 16, DType::f32};
  const auto exchange = exchange::make_exchange({comm, layout}, {}).exchange;
  exchange->begin(0, true);
  exchange->ready(16);
  exchange->finish([](Range) {});
}

void wait_in_sum(comm::Communicator& comm) {
  std::vector<double> values(10);
  comm.sum(Array::of(std::span(values)));
}

const Waiting kWaiting[] = {
    {"barrier", [](comm::Communicator& comm) { comm.barrier(); }},
    {"node_barrier", [](comm::Communicator& comm) { comm.node_memory().barrier(); }},
    {"gather", [](comm::Communicator& comm) { comm.gather("x"); }},
    {"allocate", [](comm::Communicator& comm) { comm.node_memory().allocate(100); }},
    {"sum", wait_in_sum},
    {"exchange", wait_in_exchange},
};

class FailureWhileOthersWait : public ::testing::TestWithParam<Waiting> {};

TEST_P(FailureWhileOthersWait, IsRethrown) {
  for (int failing = 0; failing < 4; ++failing) {
    try {
      run_ranks(4, [&](comm::Communicator& comm) {
        GetParam().wait(comm);  // once together
        if (comm.rank() == failing) throw std::out_of_range("rank " + std::to_string(failing));
        GetParam().wait(comm);
      });
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_EQ(error.what(), "rank " + std::to_string(failing));
    }
  }
}

TEST_P(FailureWhileOthersWait, ARankThatReturnsLateIsAnError) {
  EXPECT_THROW(run_ranks(3,
                         [&](comm::Communicator& comm) {
                           if (comm.rank() != 1) return GetParam().wait(comm);
                           // the others wait already (if not, this is the test below)
                           std::this_thread::sleep_for(std::chrono::milliseconds(20));
                         }),
               Error);
}

TEST_P(FailureWhileOthersWait, ARankThatReturnsEarlyIsAnError) {
  EXPECT_THROW(run_ranks(3,
                         [&](comm::Communicator& comm) {
                           if (comm.rank() != 1) GetParam().wait(comm);
                         }),
               Error);
}

INSTANTIATE_TEST_SUITE_P(Threads, FailureWhileOthersWait, ::testing::ValuesIn(kWaiting),
                         [](const auto& test) { return std::string(test.param.name); });

std::string message_of(const std::function<void(comm::Communicator&)>& body) {
  try {
    run_ranks(3, body);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Threads, DifferentCallsAreNamed) {
  const std::string message = message_of([](comm::Communicator& comm) {
    if (comm.rank() == 2) {
      comm.barrier();
    } else {
      comm.gather("x");
    }
  });
  EXPECT_NE(message.find("gather"), std::string::npos) << message;
  EXPECT_NE(message.find("barrier"), std::string::npos) << message;
}

TEST(Threads, DifferentSizesAreAnError) {
  const std::string message = message_of([](comm::Communicator& comm) {
    std::vector<float> values(comm.rank() == 0 ? 3 : 4);
    comm.sum(Array::of(std::span(values)));
  });
  EXPECT_NE(message.find("sum"), std::string::npos) << message;
}

TEST(Threads, AbortEndsAllRanks) {
  testing::refused(ExitCode::disagree, [&] {
    run_ranks(3, [](comm::Communicator& comm) {
      if (comm.rank() == 1) comm.abort(64);
      comm.barrier();
    });
  });
}

}  // namespace
}  // namespace cputrain::threads
