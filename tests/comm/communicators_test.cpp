// The common cases on one process and on ranks that are threads.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "backends/threads/threads_communicator.h"
#include "comm/cases.h"
#include "comm/solo.h"

namespace cputrain {
namespace {

std::vector<CommCase> all_cases() {
  std::vector<CommCase> cases(collective_cases().begin(), collective_cases().end());
  cases.insert(cases.end(), exchange_cases().begin(), exchange_cases().end());
  return cases;
}

class Solo : public testing::TestWithParam<CommCase> {};

TEST_P(Solo, agrees) {
  const auto comm = make_solo();
  ASSERT_EQ(comm->size(), 1);
  GetParam().body(*comm);
}

INSTANTIATE_TEST_SUITE_P(Communicator, Solo, testing::ValuesIn(all_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

class Threads : public testing::TestWithParam<std::tuple<int, CommCase>> {};

TEST_P(Threads, agree) {
  const auto& [ranks, comm_case] = GetParam();
  run_ranks(ranks, [&](Communicator& comm) {
    ASSERT_EQ(comm.size(), ranks);
    comm_case.body(comm);
  });
}

INSTANTIATE_TEST_SUITE_P(Communicator, Threads,
                         testing::Combine(testing::Values(1, 2, 3, 4, 7),
                                          testing::ValuesIn(all_cases())),
                         [](const auto& test) {
                           return std::string(std::get<1>(test.param).name) + "_on_" +
                                  std::to_string(std::get<0>(test.param));
                         });

}  // namespace
}  // namespace cputrain
