#include "comm/communicator.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "system/output.h"
#include "system/pages.h"
#include "system/print.h"
#include "system/scratch/scratch_file.h"

namespace cputrain::comm {
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

/// One process, which is alone on its node, too.
class Solo final : public Communicator, private NodeMemory {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string describe() const override { return "one process"; }

  void sum(Array) override {}
  void broadcast(std::span<std::byte>, [[maybe_unused]] int root) override { assert(root == 0); }
  std::vector<std::string> gather(std::string_view text) override { return {std::string(text)}; }
  void barrier() override {}  // of both

  NodeMemory& node_memory() override { return *this; }

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
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  int first_rank() const override { return 0; }
  std::unique_ptr<system::SharedBlock> allocate_touched(
      std::size_t bytes, [[maybe_unused]] std::span<const Range> mine) override {
    return std::make_unique<system::Pages>(bytes);
  }
  std::string folder_for(std::size_t bytes) override {
    return system::folder_with_room(bytes, /*on_disk=*/true);
  }
  std::unique_ptr<system::SharedBlock> allocate_in(const std::string& folder,
                                                   std::size_t bytes) override {
    return std::make_unique<system::ScratchFile>(folder, bytes);
  }
};

}  // namespace

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

std::unique_ptr<Communicator> make_solo() { return std::make_unique<Solo>(); }

void check_agreement(Communicator& communicator, const std::string& what, const std::string& mine) {
  const std::vector<std::string> all = communicator.gather(mine);
  if (std::ranges::all_of(all, [&](const std::string& other) { return other == all.front(); })) {
    return;
  }
  std::map<std::string, std::vector<std::string>> ranks;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    ranks[all[rank]].push_back(std::to_string(rank));
  }
  for (const auto& [value, who] : ranks) {
    if (communicator.rank() == 0) system::tell("ranks {}: {}", join(who, ","), value);
  }
  fail(ExitCode::disagree,
       "ranks differ in {} (they would train different things; the lines above say which has "
       "what); start all of them with the same program, flags and data",
       what);
}

void attempt_together(Communicator& communicator, const std::function<void()>& make,
                      const std::function<void()>& undo) {
  std::string failure;
  try {
    make();
  } catch (const std::exception& error) {  // Error, and no memory: the other ranks wait
    failure = error.what();
  }
  for (const std::string& text : communicator.gather(failure)) {
    if (text.empty()) continue;
    undo();  // now, not while an exception is on its way, when shared memory is left alone
    fail(ExitCode::internal, text);
  }
}

void on_rank_0(Communicator& communicator, const std::function<void()>& work) {
  std::string failure;
  int code = 0;
  try {
    if (communicator.rank() == 0) work();
  } catch (const Error& error) {
    failure = error.what();
    code = static_cast<int>(error.code());
  } catch (const std::exception& error) {  // no memory: the other ranks wait all the same
    failure = error.what();
    code = static_cast<int>(ExitCode::internal);
  }
  code = gather_values(communicator, code).front();
  if (code != 0) {
    fail(static_cast<ExitCode>(code), communicator.gather(failure).front());
  }
}

}  // namespace cputrain::comm
