#include "backends/threads/threads_communicator.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/threads/team.h"
#include "core/casts.h"
#include "core/error.h"
#include "system/pages.h"

namespace cputrain::threads {

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

class TeamPointToPoint final : public comm::PointToPoint {
 public:
  TeamPointToPoint(Team& team, int rank, int channel)
      : team_(team), rank_(rank), channel_(channel) {}
  int rank() const override { return rank_; }
  int size() const override { return team_.size(); }
  void exchange(int to, std::span<const std::byte> out, int from,
                std::span<std::byte> in) override {
    if (!out.empty()) team_.post({channel_, rank_, to}, out);
    if (!in.empty()) team_.take({channel_, from, rank_}, in);
  }

 private:
  Team& team_;
  int rank_, channel_;
};

/// There is no engine below threads: a tree stands in for it.
class GroupAllreduce final : public comm::Allreduce {
 public:
  GroupAllreduce(std::unique_ptr<comm::PointToPoint> peers, std::vector<int> members)
      : peers_(std::move(peers)),
        group_(*peers_, std::move(members)),
        tree_(comm::make_tree(group_)) {}
  void sum(const Array& numbers) override { tree_->sum(numbers); }

 private:
  std::unique_ptr<comm::PointToPoint> peers_;
  comm::PointToPointGroup group_;
  std::unique_ptr<comm::Allreduce> tree_;
};

/// Shared ownership, because ranks let go of a block in any order.
class TeamBlock final : public system::SharedBlock {
 public:
  explicit TeamBlock(std::shared_ptr<system::Pages> pages) : pages_(std::move(pages)) {}
  std::span<std::byte> bytes() const override { return pages_->bytes(); }

 private:
  std::shared_ptr<system::Pages> pages_;
};

class TeamNodeMemory final : public comm::NodeMemory {
 public:
  TeamNodeMemory(Team& team, int rank, int first_rank)
      : team_(team), rank_(rank), first_rank_(first_rank) {}
  int local_rank() const override { return rank_; }
  int local_size() const override { return team_.size(); }
  int first_rank() const override { return first_rank_; }
  std::unique_ptr<system::SharedBlock> allocate_touched(
      std::size_t bytes, [[maybe_unused]] std::span<const Range> mine) override {
    std::shared_ptr<system::Pages> pages;
    if (rank_ == 0) pages = std::make_shared<system::Pages>(bytes);
    team_.meet(rank_, {"allocate", bytes, &pages});
    auto block = std::make_unique<TeamBlock>(
        *static_cast<const std::shared_ptr<system::Pages>*>(team_.calls()[0].data));
    team_.meet(rank_, {"end of allocate"});
    return block;
  }
  void barrier() override { team_.meet(rank_, {"node barrier"}); }

 private:
  Team& team_;
  int rank_, first_rank_;
};

class TeamCommunicator final : public comm::Communicator {
 public:
  TeamCommunicator(Team& team, int rank, Team& node, int first_rank)
      : team_(team), rank_(rank), memory_(node, rank - first_rank, first_rank) {}

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

  comm::NodeMemory& node_memory() override { return memory_; }

  std::unique_ptr<comm::PointToPoint> make_point_to_point() override {
    return std::make_unique<TeamPointToPoint>(team_, rank_, channels_++);
  }
  std::unique_ptr<comm::Allreduce> make_allreduce(int group) override {
    const auto groups = gather(std::to_string(group));
    std::vector<int> members;
    for (int rank = 0; rank < size(); ++rank) {
      if (groups[to_size(rank)] == std::to_string(group)) members.push_back(rank);
    }
    return std::make_unique<GroupAllreduce>(make_point_to_point(), std::move(members));
  }
  bool serves_threads() const override { return true; }

  [[noreturn]] void abort(int code) override {
    fail(static_cast<ExitCode>(code), "rank " + std::to_string(rank_) + " ended all ranks");
  }

 private:
  Team& team_;
  int rank_;
  TeamNodeMemory memory_;
  int channels_ = 0;  // opened so far, by all ranks in the same order
};

/// All ranks, and those of each node.
class World {
 public:
  World(int size, int ranks_a_node) : all_(size), ranks_a_node_(ranks_a_node) {
    for (int first = 0; first < size; first += ranks_a_node) {
      nodes_.push_back(std::make_unique<Team>(std::min(ranks_a_node, size - first)));
    }
  }
  Team& all() { return all_; }
  Team& node_of(int rank) { return *nodes_[to_size(rank / ranks_a_node_)]; }
  int first_of(int rank) const { return rank / ranks_a_node_ * ranks_a_node_; }
  void leave(int rank, const std::exception_ptr& failure) {
    all_.leave(failure);
    node_of(rank).leave(failure);
    if (!this->failure()) return;
    all_.stop();
    for (const auto& node : nodes_) node->stop();
  }
  /// The first of all ranks, or of a node's.
  std::exception_ptr failure() const {
    std::exception_ptr first = all_.failure();
    for (const auto& node : nodes_) first = first ? first : node->failure();
    return first;
  }

 private:
  Team all_;
  int ranks_a_node_;
  std::vector<std::unique_ptr<Team>> nodes_;
};

void run_one(World& world, int rank, const std::function<void(comm::Communicator&)>& body) {
  std::exception_ptr failure;
  try {
    TeamCommunicator communicator(world.all(), rank, world.node_of(rank), world.first_of(rank));
    body(communicator);
  } catch (const Stopped&) {
    // the rank that failed first has left its reason
  } catch (...) {
    failure = std::current_exception();
  }
  world.leave(rank, failure);
}

}  // namespace

void run_ranks(int size, const std::function<void(comm::Communicator&)>& body,
               std::optional<int> ranks_a_node) {
  World world(size, ranks_a_node.value_or(size));
  {
    std::vector<std::jthread> threads;  // join when they go out of scope
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&world, &body, rank] { run_one(world, rank, body); });
    }
  }
  if (world.failure()) std::rethrow_exception(world.failure());
}

}  // namespace cputrain::threads
