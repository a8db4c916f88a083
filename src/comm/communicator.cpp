#include "comm/communicator.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "system/output.h"
#include "system/pages.h"
#include "system/scratch/scratch_file.h"

namespace cputrain::comm {

void sum_numbers(Communicator& communicator, std::span<double* const> numbers) {
  std::array<double, 16> sums;
  assert(numbers.size() <= sums.size());
  std::ranges::transform(numbers, sums.begin(), [](const double* number) { return *number; });
  communicator.sum(Array{sums.data(), numbers.size(), DType::f64});
  for (std::size_t i = 0; i < numbers.size(); ++i) *numbers[i] = sums[i];
}

double mean_of_ranks(Communicator& communicator, double mine) {
  communicator.sum(Array::of<double>({&mine, 1}));
  return mine / communicator.size();
}

std::optional<double> largest_of_ranks(Communicator& communicator, std::optional<double> mine) {
  constexpr double kUnknown = -std::numeric_limits<double>::infinity();
  const double largest = std::ranges::max(gather_values(communicator, mine.value_or(kUnknown)));
  return largest == kUnknown ? std::nullopt : std::optional(largest);
}

namespace {

class SoloPointToPoint final : public PointToPoint {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void exchange(int, [[maybe_unused]] std::span<const std::byte> out, int,
                [[maybe_unused]] std::span<std::byte> in) override {
    assert(out.empty() && in.empty());
  }
};

class SoloAllreduce final : public Allreduce {
 public:
  void sum(const Array&) override {}
};

class SoloNodeMemory final : public NodeMemory {
 public:
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  int first_rank() const override { return 0; }
  std::unique_ptr<system::SharedBlock> allocate_touched(
      std::size_t bytes, [[maybe_unused]] std::span<const Range> mine) override {
    return std::make_unique<system::Pages>(bytes);
  }
  std::string folder_for(std::size_t bytes) override {
    return system::folder_with_room(bytes, system::Storage::disk);
  }
  std::unique_ptr<system::SharedBlock> allocate_in(const std::string& folder,
                                                   std::size_t bytes) override {
    return std::make_unique<system::ScratchFile>(folder, bytes);
  }
};

class SoloNodeBarrier final : public NodeBarrier {
 public:
  void wait() override {}
};

class SoloCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string describe() const override { return "one process"; }

  void sum(Array) override {}
  void broadcast(std::span<std::byte>, [[maybe_unused]] int root) override { assert(root == 0); }
  std::vector<std::string> gather(std::string_view text) override { return {std::string(text)}; }
  void barrier() override {}

  NodeMemory& node_memory() override { return memory_; }
  NodeBarrier& node_barrier() override { return barrier_; }

  std::unique_ptr<PointToPoint> make_point_to_point() override {
    return std::make_unique<SoloPointToPoint>();
  }
  std::unique_ptr<Allreduce> make_allreduce(int) override {
    return std::make_unique<SoloAllreduce>();
  }
  bool serves_threads() const override { return true; }

  [[noreturn]] void abort(int code) override {
    system::end_at_once(code);  // other threads may still run: no destructors
  }

 private:
  SoloNodeMemory memory_;
  SoloNodeBarrier barrier_;
};

}  // namespace

std::unique_ptr<Communicator> make_solo() { return std::make_unique<SoloCommunicator>(); }

}  // namespace cputrain::comm
