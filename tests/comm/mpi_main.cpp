// The common cases on MPI ranks: mpirun -np N test_mpi_communicator.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backends/mpi/mpi_communicator.h"
#include "backends/mpi/sums.h"
#include "comm/allreduce_exchange.h"
#include "comm/cases.h"

namespace cputrain {
namespace {

/// Ends the process, and with it mpirun and all ranks, when one test takes longer than a minute:
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
    constexpr int kTicksAllowed = 600;
    int seen = 0, ticks = 0;
    while (!stop.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (seen != tests_) {
        seen = tests_;
        ticks = 0;
      } else if (++ticks > kTicksAllowed) {
        std::fprintf(stderr, "rank %d hangs in test %s: given up after 60 s\n", rank_,
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

class CaseTest : public testing::Test {
 public:
  CaseTest(CommCase comm_case, Communicator& comm, Watchdog& watchdog)
      : case_(comm_case), comm_(comm), watchdog_(watchdog) {}
  void TestBody() override {
    watchdog_.enter(case_.name);
    case_.body(comm_);
    comm_.barrier();
  }

 private:
  CommCase case_;
  Communicator& comm_;
  Watchdog& watchdog_;
};

/// The same ranks with the exchange that is otherwise made for ranks on several nodes.
class OverlappingCommunicator final : public Communicator {
 public:
  explicit OverlappingCommunicator(Communicator& comm) : comm_(comm) {}
  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  std::string describe() const override { return comm_.describe(); }
  void sum(Array values) override { comm_.sum(values); }
  void broadcast(std::span<std::byte> data, int root) override { comm_.broadcast(data, root); }
  std::vector<std::string> gather(std::string_view text) override { return comm_.gather(text); }
  void barrier() override { comm_.barrier(); }
  NodeMemory& node_memory() override { return comm_.node_memory(); }
  NodeBarrier& node_barrier() override { return comm_.node_barrier(); }
  std::unique_ptr<GradientExchange> make_exchange(const ExchangePlan& plan) override {
    return make_allreduce_exchange(plan, make_sums_during_backward());
  }
  [[noreturn]] void abort(int code) override {
    comm_.abort(code);
    std::_Exit(code);
  }

 private:
  Communicator& comm_;
};

/// What ranks other than the first print: failures only.
class FailurePrinter final : public testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_,
                 result.file_name() != nullptr ? result.file_name() : "?", result.line_number(),
                 result.message());
  }

 private:
  int rank_;
};

void add_tests(const char* suite, std::span<const CommCase> cases, Communicator& comm,
               Watchdog& watchdog) {
  for (const CommCase& comm_case : cases) {
    testing::RegisterTest(suite, comm_case.name, nullptr, nullptr, __FILE__, __LINE__,
                          [&comm, &watchdog, comm_case]() -> testing::Test* {
                            return new CaseTest(comm_case, comm, watchdog);
                          });
  }
}

int run_all(Communicator& comm) {
  Watchdog watchdog(comm.rank());
  OverlappingCommunicator overlapping(comm);
  add_tests("Mpi", collective_cases(), comm, watchdog);
  add_tests("Mpi", exchange_cases(), comm, watchdog);
  add_tests("MpiDuringBackward", exchange_cases(), overlapping, watchdog);
  if (comm.rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailurePrinter(comm.rank()));
  }
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace cputrain

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto comm = cputrain::make_mpi_communicator();
  const int result = cputrain::run_all(*comm);
  if (result != 0) comm->abort(result);  // the others may wait for this rank
  return 0;
}
