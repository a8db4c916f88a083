// What ranks that share a device can get of it is asked when each of them has a part already.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "backends/threads/threads_communicator.h"
#include "core/error.h"
#include "training/plan/training_memory.h"

namespace cputrain::training {
namespace {

/// A device of 1,000 bytes of which each rank takes 100 by having a backend there.
struct SharedDevice {
  std::atomic<std::size_t> free{1000};
  std::atomic<std::size_t> most_told{0};
};

class MemoryOfDevice final : public compute::Memory {
 public:
  explicit MemoryOfDevice(SharedDevice& device) : device_(device) { device_.free -= 100; }
  std::unique_ptr<system::SharedBlock> allocate(std::size_t) override { refuse(); }
  void read(const void*, std::span<std::byte>) override { refuse(); }
  void write(std::span<const std::byte>, void*) override { refuse(); }
  void copy(const void*, void*, std::size_t) override { refuse(); }
  bool is_host() const override { return false; }
  std::optional<std::size_t> available() const override {
    const std::size_t told = device_.free;
    for (std::size_t most = device_.most_told;
         most < told && !device_.most_told.compare_exchange_weak(most, told);) {
    }
    return told;
  }

 private:
  [[noreturn]] static void refuse() { fail(ExitCode::internal, "only asked for its room"); }
  SharedDevice& device_;
};

/// Computes nothing: it is its memory.
class BackendOfDevice final : public compute::Backend {
 public:
  explicit BackendOfDevice(SharedDevice& device) : memory_(device) {}
  const compute::BackendFacts& facts() const override { return facts_; }
  compute::Memory& memory() override { return memory_; }
  std::unique_ptr<compute::Program> compile(const model::Graph&, const compute::CompileOptions&,
                                            const compute::ArenaSource&) override {
    return nullptr;
  }
  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan&) override {
    return nullptr;
  }
  void change_gradients(const optim::GradientOperation&, const optim::UpdateSlice&) override {}
  void sum(std::span<const Array>, const Array&) override {}
  compute::Pending<std::vector<double>> block_norms(std::span<const compute::ArenaPart>) override {
    return {};
  }
  compute::Limits measure_limits(const compute::Together&) override { return {}; }

 private:
  compute::BackendFacts facts_{.name = "device", .description = "device"};
  MemoryOfDevice memory_;
};

/// What ranks find whose hosts have these names; a rank each.
std::vector<NodeCapacity> capacities_of(comm::Communicator& communicator, SharedDevice& device,
                                        const std::vector<std::string>& hosts) {
  const Services services{};
  Session session{.services = services, .communicator = nullptr};
  session.communicator.reset(&communicator);
  session.nodes = comm::read_node_map(communicator);
  session.backend = std::make_unique<BackendOfDevice>(device);
  for (const std::string& host : hosts) {
    session.plan.ranks.push_back(
        {.rank = static_cast<int>(session.plan.ranks.size()), .host = host});
  }
  auto capacities = measure_capacities(session);
  (void)session.communicator.release();
  return capacities;
}

TEST(DeviceRoom, IsAskedWhenAllRanksHaveTheirPart) {
  constexpr int kRanks = 4;
  SharedDevice device;
  threads::run_ranks(kRanks, [&](comm::Communicator& communicator) {
    // Ranks come one after the other, far apart.
    std::this_thread::sleep_for(std::chrono::milliseconds(20 * communicator.rank()));
    const auto capacities = capacities_of(communicator, device, {"a", "b", "c", "d"});
    ASSERT_EQ(capacities.size(), 1u);  // one machine, with four containers
    EXPECT_EQ(capacities[0].ranks.size(), 4u);
    EXPECT_EQ(capacities[0].backend_available, 600u);
  });
  EXPECT_EQ(device.most_told, 600u);  // each of them heard it, not only who asked last
}

TEST(NodeCapacities, AreOfMachinesThoughTheseHaveOneName) {
  SharedDevice device;
  threads::run_ranks(
      4,
      [&](comm::Communicator& communicator) {
        const auto capacities = capacities_of(communicator, device, {"a", "a", "a", "a"});
        ASSERT_EQ(capacities.size(), 2u);
        EXPECT_EQ(capacities[0].ranks, (std::vector{0, 1}));
        EXPECT_EQ(capacities[1].ranks, (std::vector{2, 3}));
      },
      2);
}

}  // namespace
}  // namespace cputrain::training
