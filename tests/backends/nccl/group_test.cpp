// A rank's place among those that sum by NCCL, with tables that answer as a test wants.
#include "backends/nccl/group.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <future>

#include "core/error.h"
#include "tests/support/refusal.h"

namespace cputrain::nccl {
namespace {

/// What the functions of the table answer, and what they were asked.
struct Answers {
  Result init = Result::success, sum = Result::success, state = Result::success;
  int polls_in_progress = 0;  ///< before `state`
  std::string calls{};
  int version = 22809;
  const char* last_error = "";
  std::function<void()> during_abort = [] {};
};
Answers answers;
int handle = 0;

Communicator* const kHandle = reinterpret_cast<Communicator*>(&handle);

Result get_version(int* version) {
  *version = answers.version;
  return Result::success;
}
const char* get_error_string(Result result) {
  return result == Result::invalid_usage ? "invalid usage" : "some error";
}
Result get_unique_id(UniqueId* id) {
  std::memset(id, 3, sizeof *id);
  return answers.init;
}
const char* get_last_error(Communicator*) { return answers.last_error; }
Result init_rank_config(Communicator** made, int ranks, UniqueId id, int rank, Config* config) {
  answers.calls += config->blocking == 0 && config->size == 24 ? "free " : "blocking ";
  answers.calls += "init " + std::to_string(rank) + "/" + std::to_string(ranks) + " id " +
                   std::to_string(id.bytes[0]) + "; ";
  *made = kHandle;
  return answers.init;
}
Result get_async_error(Communicator* communicator, Result* result) {
  EXPECT_EQ(communicator, kHandle);
  *result = answers.polls_in_progress > 0 ? Result::in_progress : answers.state;
  --answers.polls_in_progress;
  return Result::success;
}
Result all_reduce(const void* src, void* dst, std::size_t count, DataType type, Operation,
                  Communicator*, Stream*) {
  EXPECT_EQ(src, dst);
  answers.calls += "sum " + std::to_string(count) + (type == DataType::bfloat16 ? " bf16; " : "; ");
  return answers.sum;
}
Result finalize(Communicator*) {
  answers.calls += "finalize; ";
  return Result::in_progress;
}
Result destroy(Communicator*) {
  answers.calls += "destroy; ";
  return Result::success;
}
Result abort(Communicator*) {
  answers.calls += "abort; ";
  answers.during_abort();
  return Result::success;
}

Calls new_calls() {
  return {.get_version = get_version,
          .get_error_string = get_error_string,
          .get_unique_id = get_unique_id,
          .get_last_error = get_last_error,
          .comm_init_rank_config = init_rank_config,
          .comm_get_async_error = get_async_error,
          .comm_finalize = finalize,
          .comm_destroy = destroy,
          .comm_abort = abort,
          .all_reduce = all_reduce};
}

std::string error_of(const std::function<void()>& call) {
  return testing::refusal_of(ExitCode::internal, [&] { call(); });
}

class Groups : public ::testing::Test {
 protected:
  void SetUp() override { answers = {}; }
};

TEST_F(Groups, JoinWithoutWaitingInTheLibrary) {
  const Calls calls = new_calls();
  const Library library = checked(calls, "file");
  {
    const UniqueId id = Group::make_id(library);
    answers.init = Result::in_progress;
    answers.polls_in_progress = 5;
    Group group(library, id, 2, 3);
    float number = 1;
    answers.polls_in_progress = 3;
    answers.sum = Result::in_progress;
    group.all_reduce(&number, 1, DataType::float32, nullptr);
    group.all_reduce(&number, 2, DataType::bfloat16, nullptr);
    EXPECT_EQ(group.failure(), "");
  }
  EXPECT_EQ(answers.calls, "free init 2/3 id 3; sum 1; sum 2 bf16; finalize; destroy; ");
}

TEST_F(Groups, GiveUpRanksThatDoNotCome) {
  const Calls calls = new_calls();
  answers.init = answers.state = Result::in_progress;
  const std::string text =
      error_of([&] { const Group group(checked(calls, ""), {}, 0, 2, {.start = 0.02}); });
  EXPECT_NE(text.find("joining the other ranks took over 0.02 s"), std::string::npos) << text;
  EXPECT_NE(answers.calls.find("abort"), std::string::npos);
}

TEST_F(Groups, SayWhyARankMayNotJoin) {
  const Calls calls = new_calls();
  answers.init = Result::invalid_usage;
  answers.last_error = "two ranks of one GPU";
  const std::string text = error_of([&] { const Group group(checked(calls, ""), {}, 0, 2); });
  EXPECT_NE(text.find("invalid usage (two ranks of one GPU)"), std::string::npos) << text;
  EXPECT_NE(text.find("--allreduce staged"), std::string::npos) << text;
}

TEST_F(Groups, TellOfFailuresAndEndWithoutWaitingForTheOthers) {
  const Calls calls = new_calls();
  {
    Group group(checked(calls, ""), {}, 0, 2);
    answers.state = Result{6};
    EXPECT_EQ(group.failure(), "some error");
    group.abort();
    float number = 1;
    EXPECT_NE(error_of([&] { group.all_reduce(&number, 1, DataType::float32, nullptr); }), "");
  }
  EXPECT_EQ(answers.calls, "free init 0/2 id 0; abort; ");
}

/// NCCL is in it until graphs are gone. Who is to destroy them may be about to sum.
TEST_F(Groups, KeepNobodyWaitingWhileTheyAreGivenUp) {
  const Calls calls = new_calls();
  Group group(checked(calls, ""), {}, 0, 2);
  answers.during_abort = [&] {
    const auto refused = std::async(std::launch::async, [&] {
      float number = 1;
      return error_of([&] { group.all_reduce(&number, 1, DataType::float32, nullptr); });
    });
    if (refused.wait_for(std::chrono::seconds(10)) != std::future_status::ready) std::abort();
    EXPECT_EQ(group.failure(), "given up");
    group.abort();  // once is enough
  };
  group.abort();
  EXPECT_EQ(answers.calls, "free init 0/2 id 0; abort; ");
}

/// Graphs that still hold sums keep it waiting: a mistake of the program, which must not hang.
TEST_F(Groups, EndWithinTheirTime) {
  const Calls calls = new_calls();
  {
    const Group group(checked(calls, ""), {}, 0, 2, {.call = 0.02});
    answers.state = Result::in_progress;
  }
  EXPECT_EQ(answers.calls, "free init 0/2 id 0; finalize; abort; ");
}

TEST_F(Groups, AreNotMadeByVersionsThatNobodyKnows) {
  const Calls calls = new_calls();
  const auto why = [&](int version) {
    answers.version = version;
    return checked(calls, "").why_none;
  };
  EXPECT_EQ(why(2804), "NCCL 2.8.4 is older than 2.19");
  EXPECT_EQ(why(21403), "NCCL 2.14.3 is older than 2.19");
  EXPECT_EQ(why(21806), "NCCL 2.18.6 is older than 2.19");
  EXPECT_EQ(why(21901), "");
  EXPECT_EQ(why(23101), "");
  EXPECT_NE(why(30001).find("3.0.1"), std::string::npos);
}

}  // namespace
}  // namespace cputrain::nccl
