#include "backends/threads/threads_communicator.h"

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/threads/team.h"
#include "comm/allreduce_exchange.h"
#include "comm/pages.h"
#include "core/error.h"

namespace cputrain {

namespace {

/// Each rank sums its slice of the elements over all ranks' memory, in rank order, and writes the
/// sum to all of them: no element is touched by two ranks, and the bits are the same everywhere.
template <class T>
void sum_slice(const std::vector<Call>& calls, int rank, std::size_t size) {
  const std::size_t ranks = calls.size();
  for (std::size_t i = size * rank / ranks; i < size * (rank + 1) / ranks; ++i) {
    T sum = 0;
    for (const Call& call : calls) sum += static_cast<const T*>(call.data)[i];
    for (const Call& call : calls) static_cast<T*>(call.data)[i] = sum;
  }
}

void sum_over_team(Team& team, int rank, Array values) {
  team.meet(rank, {values.dtype == DType::f32 ? "sum of f32" : "sum of f64", values.size,
                   values.data, values.size});
  if (values.dtype == DType::f32) {
    sum_slice<float>(team.calls(), rank, values.size);
  } else {
    sum_slice<double>(team.calls(), rank, values.size);
  }
  team.meet(rank, {"end of sum"});
}

class TeamSums final : public TravellingSums {
 public:
  TeamSums(Team& team, int rank) : team_(team), rank_(rank) {}

  // Nothing travels by itself between threads of a test: the sums are formed in wait().
  void start(Array numbers) override { started_.push_back(numbers); }
  void progress() override {}
  void meet() override { team_.meet(rank_, {"finish of an exchange", started_.size()}); }
  void wait() override {
    for (const Array& numbers : started_) sum_over_team(team_, rank_, numbers);
    started_.clear();
  }

 private:
  Team& team_;
  int rank_;
  std::vector<Array> started_;
};

/// Shared ownership, because ranks let go of a block in any order.
class TeamBlock final : public SharedBlock {
 public:
  explicit TeamBlock(std::shared_ptr<Pages> pages) : pages_(std::move(pages)) {}
  std::span<std::byte> bytes() const override { return pages_->bytes(); }

 private:
  std::shared_ptr<Pages> pages_;
};

class TeamNodeMemory final : public NodeMemory {
 public:
  TeamNodeMemory(Team& team, int rank) : team_(team), rank_(rank) {}
  int local_rank() const override { return rank_; }
  int local_size() const override { return team_.size(); }
  std::unique_ptr<SharedBlock> allocate(std::size_t bytes) override {
    std::shared_ptr<Pages> pages;
    if (rank_ == 0) pages = std::make_shared<Pages>(bytes);
    team_.meet(rank_, {"allocate", bytes, &pages});
    auto block = std::make_unique<TeamBlock>(
        *static_cast<const std::shared_ptr<Pages>*>(team_.calls()[0].data));
    team_.meet(rank_, {"end of allocate"});
    return block;
  }

 private:
  Team& team_;
  int rank_;
};

class TeamNodeBarrier final : public NodeBarrier {
 public:
  TeamNodeBarrier(Team& team, int rank) : team_(team), rank_(rank) {}
  void wait() override { team_.meet(rank_, {"node barrier"}); }

 private:
  Team& team_;
  int rank_;
};

class TeamCommunicator final : public Communicator {
 public:
  TeamCommunicator(Team& team, int rank)
      : team_(team), rank_(rank), memory_(team, rank), barrier_(team, rank) {}

  int rank() const override { return rank_; }
  int size() const override { return team_.size(); }
  std::string describe() const override { return "threads"; }

  void sum(Array values) override { sum_over_team(team_, rank_, values); }

  void broadcast(std::span<std::byte> data, int root) override {
    team_.meet(rank_, {"broadcast", data.size() * size() + root, data.data(), data.size()});
    if (rank_ != root && !data.empty()) {
      std::memcpy(data.data(), team_.calls()[root].data, data.size());
    }
    team_.meet(rank_, {"end of broadcast"});
  }

  std::vector<std::string> gather(std::string_view text) override {
    team_.meet(rank_, {"gather", 0, const_cast<char*>(text.data()), text.size()});
    std::vector<std::string> texts;
    for (const Call& call : team_.calls()) {
      texts.emplace_back(static_cast<const char*>(call.data), call.length);
    }
    team_.meet(rank_, {"end of gather"});
    return texts;
  }

  void barrier() override { team_.meet(rank_, {"barrier"}); }

  NodeMemory& node_memory() override { return memory_; }
  NodeBarrier& node_barrier() override { return barrier_; }

  std::unique_ptr<GradientExchange> make_exchange(const ExchangePlan& plan) override {
    return make_allreduce_exchange(plan, std::make_unique<TeamSums>(team_, rank_));
  }

  [[noreturn]] void abort(int code) override {
    fail(static_cast<ExitCode>(code), "rank " + std::to_string(rank_) + " ended all ranks");
  }

 private:
  Team& team_;
  int rank_;
  TeamNodeMemory memory_;
  TeamNodeBarrier barrier_;
};

void run_one(Team& team, int rank, const std::function<void(Communicator&)>& body) {
  std::exception_ptr failure;
  try {
    TeamCommunicator communicator(team, rank);
    body(communicator);
  } catch (const Stopped&) {
    // the rank that failed first has left its reason
  } catch (...) {
    failure = std::current_exception();
  }
  team.leave(failure);
}

}  // namespace

void run_ranks(int size, const std::function<void(Communicator&)>& body) {
  Team team(size);
  {
    std::vector<std::jthread> threads;  // join when they go out of scope
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&team, &body, rank] { run_one(team, rank, body); });
    }
  }
  if (team.failure()) std::rethrow_exception(team.failure());
}

}  // namespace cputrain
