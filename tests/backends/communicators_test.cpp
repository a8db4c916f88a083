// The common cases on one process and on ranks that are threads.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "backends/threads/threads_communicator.h"
#include "comm/communicator.h"
#include "tests/exchange/cases.h"

namespace cputrain::testing {
namespace {

class Solo : public ::testing::TestWithParam<comm::CommCase> {};

TEST_P(Solo, Agrees) {
  const auto comm = comm::make_solo();
  ASSERT_EQ(comm->size(), 1);
  GetParam().body(*comm);
}

INSTANTIATE_TEST_SUITE_P(Communicator, Solo, ::testing::ValuesIn(exchange::all_cases()),
                         [](const auto& test) { return test.param.name; });

/// Ranks, and how many of them share a node; Solo is one alone. Tests in mpi/ have up to eight
/// processes on one.
struct Job {
  int ranks, a_node;
};

class Threads : public ::testing::TestWithParam<std::tuple<Job, comm::CommCase>> {};

TEST_P(Threads, Agree) {
  const auto& [job, comm_case] = GetParam();
  threads::run_ranks(
      job.ranks,
      [&, ranks = job.ranks](comm::Communicator& comm) {
        ASSERT_EQ(comm.size(), ranks);
        comm_case.body(comm);
      },
      job.a_node);
}

std::vector<std::tuple<Job, comm::CommCase>> jobs_and_cases() {
  std::vector<std::tuple<Job, comm::CommCase>> all;
  for (const Job job : {Job{2, 2}, Job{4, 2}, Job{7, 3}}) {
    for (const comm::CommCase& comm_case : exchange::all_cases()) {
      // Copies of arrays that the host cannot touch are slow, and those of a rank are its own.
      if (job.ranks > 4 && comm_case.name.starts_with("locked_")) continue;
      all.emplace_back(job, comm_case);
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Communicator, Threads, ::testing::ValuesIn(jobs_and_cases()),
                         [](const auto& test) {
                           const Job job = std::get<0>(test.param);
                           return std::get<1>(test.param).name + "_on_" +
                                  std::to_string(job.ranks) + "_by_" + std::to_string(job.a_node);
                         });

}  // namespace
}  // namespace cputrain::testing
