#include <cstdlib>
#include <utility>

#include "comm/watch/watch.h"

namespace cputrain::watch {
namespace {

using Meeting = comm::Pulse::Meeting;

class WatchedAllreduce final : public comm::Allreduce {
 public:
  WatchedAllreduce(std::unique_ptr<comm::Allreduce> allreduce, comm::Pulse& pulse)
      : allreduce_(std::move(allreduce)), pulse_(pulse) {}
  void sum(const Array& numbers) override {
    const Meeting meeting(pulse_);
    allreduce_->sum(numbers);
  }

 private:
  std::unique_ptr<comm::Allreduce> allreduce_;
  comm::Pulse& pulse_;
};

/// The ranks of a machine give their memory back together. It may outlive the communicator where
/// one rank has the machine.
class WatchedBlock final : public system::SharedBlock {
 public:
  WatchedBlock(std::unique_ptr<system::SharedBlock> block, std::shared_ptr<comm::Pulse> pulse)
      : block_(std::move(block)), pulse_(std::move(pulse)) {}
  ~WatchedBlock() override {
    const Meeting meeting(*pulse_);
    block_.reset();
  }
  std::span<std::byte> bytes() const override { return block_->bytes(); }

 private:
  std::unique_ptr<system::SharedBlock> block_;
  std::shared_ptr<comm::Pulse> pulse_;
};

class WatchedNodeMemory final : public comm::NodeMemory {
 public:
  WatchedNodeMemory(comm::NodeMemory& memory, std::shared_ptr<comm::Pulse> pulse)
      : memory_(memory), pulse_(std::move(pulse)) {}
  int local_rank() const override { return memory_.local_rank(); }
  int local_size() const override { return memory_.local_size(); }
  int first_rank() const override { return memory_.first_rank(); }
  void barrier() override {
    const Meeting meeting(*pulse_);
    memory_.barrier();
  }

  /// Much memory takes long to touch, which is work. A rank that waits in it for others of its
  /// machine spins, and seems to work, too: a rank that is stopped is silent all the same.
  std::unique_ptr<system::SharedBlock> allocate_touched(std::size_t bytes,
                                                        std::span<const Range> mine) override {
    pulse_->moved();
    auto block = std::make_unique<WatchedBlock>(memory_.allocate_touched(bytes, mine), pulse_);
    pulse_->moved();
    return block;
  }
  /// A slow disk may take long for a file, which is no wait for other ranks.
  std::unique_ptr<system::SharedBlock> allocate_large(std::size_t bytes) override {
    return folder_of_large(bytes).empty() ? allocate(bytes) : memory_.allocate_large(bytes);
  }
  std::string folder_of_large(std::size_t bytes) override {
    const Meeting meeting(*pulse_);
    return memory_.folder_of_large(bytes);
  }
  std::unique_ptr<system::SharedBlock> allocate_in(const std::string& folder,
                                                   std::size_t bytes) override {
    pulse_->moved();
    auto block = memory_.allocate_in(folder, bytes);
    pulse_->moved();
    return block;
  }
  std::string folder_for(std::size_t bytes) override {
    const Meeting meeting(*pulse_);
    return memory_.folder_for(bytes);
  }

 private:
  comm::NodeMemory& memory_;
  std::shared_ptr<comm::Pulse> pulse_;
};

class WatchedCommunicator final : public comm::Communicator {
 public:
  explicit WatchedCommunicator(std::unique_ptr<comm::Communicator> ranks)
      : ranks_(std::move(ranks)), memory_(ranks_->node_memory(), share_pulse()) {}
  ~WatchedCommunicator() override {
    pulse().at(comm::Phase::end);
    const Meeting meeting(pulse(), Meeting::kOfAll);
    ranks_.reset();
  }

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  std::string describe() const override { return ranks_->describe(); }

  void sum(Array values) override {
    const Meeting meeting(pulse(), Meeting::kOfAll);
    ranks_->sum(values);
  }
  void broadcast(std::span<std::byte> data, int root) override {
    const Meeting meeting(pulse(), Meeting::kOfAll);
    ranks_->broadcast(data, root);
  }
  std::vector<std::string> gather(std::string_view text) override {
    const Meeting meeting(pulse(), Meeting::kOfAll);
    return ranks_->gather(text);
  }
  void barrier() override {
    const Meeting meeting(pulse(), Meeting::kOfAll);
    ranks_->barrier();
  }

  bool reads_devices() const override { return ranks_->reads_devices(); }

  comm::NodeMemory& node_memory() override { return memory_; }

  std::unique_ptr<comm::PointToPoint> make_point_to_point() override {
    const Meeting meeting(pulse(), Meeting::kOfAll);
    return std::make_unique<comm::MessagesWithin>(ranks_->make_point_to_point(),
                                                  [&pulse = pulse()](const auto& exchange) {
                                                    const Meeting met(pulse);
                                                    exchange();
                                                  });
  }
  std::unique_ptr<comm::Allreduce> make_allreduce(int group) override {
    const Meeting meeting(pulse(), Meeting::kOfAll);
    return std::make_unique<WatchedAllreduce>(ranks_->make_allreduce(group), pulse());
  }
  bool serves_threads() const override { return ranks_->serves_threads(); }
  [[noreturn]] void abort(int code) override {
    ranks_->abort(code);
    std::abort();  // GCC 12 takes a virtual call for one that returns
  }

 private:
  std::unique_ptr<comm::Communicator> ranks_;
  WatchedNodeMemory memory_;
};

}  // namespace

std::unique_ptr<comm::Communicator> watched(std::unique_ptr<comm::Communicator> ranks) {
  return std::make_unique<WatchedCommunicator>(std::move(ranks));
}

}  // namespace cputrain::watch
