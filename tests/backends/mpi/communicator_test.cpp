// The common cases on MPI ranks: mpirun -np N test_backends_mpi_communicator [RANKS_A_NODE].
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/mpi/mpi_communicator.h"
#include "tests/exchange/cases.h"

namespace cputrain::mpi {
namespace {

/// Ends the process, and with it mpirun and all ranks, when one test takes longer than 200 s:
/// ranks that wait for ever for each other would say nothing at all.
class Watchdog final {
 public:
  explicit Watchdog(int rank)
      : rank_(rank), thread_([this](std::stop_token stop) { watch(stop); }) {}

  void enter(const char* test) {
    test_ = test;
    ++tests_;
  }

 private:
  void watch(const std::stop_token& stop) {
    constexpr int kTicksAllowed = 2000;
    int seen = 0, ticks = 0;
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (seen != tests_) {
        seen = tests_;
        ticks = 0;
      } else if (++ticks > kTicksAllowed) {
        std::fprintf(stderr, "rank %d hangs in test %s: given up after 200 s\n", rank_,
                     test_.load());
        std::_Exit(76);
      }
    }
  }

  int rank_;
  std::atomic<const char*> test_{"(before the first)"};
  std::atomic<int> tests_{0};
  std::jthread thread_;  // last: it reads the others
};

class CaseTest : public ::testing::Test {
 public:
  CaseTest(const comm::CommCase& comm_case, comm::Communicator& comm, Watchdog& watchdog)
      : case_(comm_case), comm_(comm), watchdog_(watchdog) {}
  void TestBody() override {
    watchdog_.enter(case_.name.c_str());
    case_.body(comm_);
    comm_.barrier();
  }

 private:
  const comm::CommCase& case_;
  comm::Communicator& comm_;
  Watchdog& watchdog_;
};

/// What ranks other than the first print: failures only.
class FailurePrinter final : public ::testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_,
                 result.file_name() != nullptr ? result.file_name() : "?", result.line_number(),
                 result.message());
  }

 private:
  int rank_;
};

/// All cases on four ranks. On other numbers those that call MPI itself: the exchanges are the same
/// code on ranks that are threads, which communicators_test.cpp has in all numbers.
std::vector<comm::CommCase> cases_of(int ranks) {
  if (ranks == 4) return exchange::all_cases();
  std::vector<comm::CommCase> cases = comm::collective_cases();
  std::ranges::copy(comm::allreduce_cases(), std::back_inserter(cases));
  std::ranges::copy_if(
      exchange::exchange_cases(), std::back_inserter(cases), [](const comm::CommCase& c) {
        return c.name.starts_with("automatic_") || c.name.find("mpi_") != std::string::npos;
      });
  return cases;
}

void add_tests(comm::Communicator& comm, Watchdog& watchdog) {
  static const std::vector<comm::CommCase> cases =
      cases_of(comm.size());  // the watchdog keeps their names
  for (const comm::CommCase& comm_case : cases) {
    ::testing::RegisterTest("Mpi", comm_case.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [&comm, &watchdog, &comm_case]() -> ::testing::Test* {
                              return new CaseTest(comm_case, comm, watchdog);
                            });
  }
}

int run_all(comm::Communicator& comm) {
  Watchdog watchdog(comm.rank());
  add_tests(comm, watchdog);
  if (comm.rank() != 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(comm.rank()));
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cputrain::mpi

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const auto ranks_a_node = argc > 1 ? std::optional(std::atoi(argv[1])) : std::nullopt;
  const auto comm = cputrain::mpi::make_mpi_communicator({}, ranks_a_node);
  const int result = cputrain::mpi::run_all(*comm);
  if (result != 0) comm->abort(result);  // the others may wait for this rank
  return 0;
}
