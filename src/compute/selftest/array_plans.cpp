#include "compute/selftest/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "optim/update_rule.h"

namespace cputrain::selftest {
namespace {

using compute::Backend;
using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;

/// Rounded once where arrays are floats.
constexpr double kLimit = 2e-6;

/// Drawn numbers in the middle of a larger array, behind so many numbers of others.
class PlacedArray {
 public:
  PlacedArray(Backend& backend, CaseNumbers& numbers, std::size_t size, float low, float high)
      : memory_(backend.memory()),
        begin_(static_cast<std::size_t>(numbers.between(0, 9))),
        size_(size),
        all_(memory_, begin_ + size + kBehind, backend.dtype()) {
    std::vector<double> all(all_.array().size, kOthers);
    std::ranges::copy(numbers.reals(size, low, high),
                      all.begin() + static_cast<std::ptrdiff_t>(begin_));
    compute::write_numbers(memory_, all, all_.array());
  }

  Array array() const { return all_.array().slice(begin_, begin_ + size_); }
  /// Adds the part alone, for large neighbours would hide how far it is off; they must be as
  /// before.
  void put_into(RunOutputs& outputs, const std::string& name) const {
    const std::vector<double> all = compute::read_numbers(memory_, all_.array());
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto last = first + static_cast<std::ptrdiff_t>(size_);
    const auto untouched = [](double number) { return number == kOthers; };
    if (!std::all_of(all.begin(), first, untouched)) {
      outputs.note("something was written in front of " + name);
    }
    if (!std::all_of(last, all.end(), untouched)) {
      outputs.note("something was written behind the end of " + name);
    }
    outputs.add(name, std::vector(first, last));
  }

 private:
  static constexpr std::size_t kBehind = 9;
  static constexpr double kOthers = 77;
  compute::Memory& memory_;
  std::size_t begin_, size_;
  compute::OwnedArray all_;
};

/// All arrays of a slice behind work(slice). Squares in its state are not below zero, and above
/// those of means.
template <class Work>
RunOutputs after(Backend& backend, CaseNumbers numbers, int states, const Work& work) {
  constexpr float kLow[]{1, 0.1f, -1}, kHigh[]{2, 0.9f, 1};
  const auto size = static_cast<std::size_t>(numbers.odd_between(5001, 9001));
  const PlacedArray weights(backend, numbers, size, -1, 1),
      gradients(backend, numbers, size, -1, 1);
  std::vector<std::unique_ptr<PlacedArray>> state;
  optim::UpdateSlice slice{.weights = weights.array(), .gradients = gradients.array()};
  for (std::size_t i = 0; i < static_cast<std::size_t>(states); ++i) {
    state.push_back(std::make_unique<PlacedArray>(backend, numbers, size, kLow[i], kHigh[i]));
    slice.state[i] = state.back()->array();
  }
  work(slice);
  RunOutputs outputs;
  weights.put_into(outputs, "weights");
  gradients.put_into(outputs, "gradients");
  for (std::size_t i = 0; i < state.size(); ++i) {
    state[i]->put_into(outputs, fmt::format("state {}", i));
  }
  return outputs;
}

/// The same of both backends: run(backend).
template <class Run>
CasePlan plan(const std::string& name, double limit, Backend& tested, Backend& reference,
              const Run& run) {
  return {.name = name,
          .limit = limit,
          .compute = [&tested, run](int) { return run(tested); },
          .expect = [&reference, run] { return run(reference); }};
}

std::vector<CasePlan> update_plans(std::uint64_t seed, Backend& tested, Backend& reference) {
  std::vector<CasePlan> plans;
  const auto add = [&](const char* name, const optim::UpdateRule& rule, double decay = 0) {
    const auto run = [rule, decay, numbers = CaseNumbers(seed, name)](Backend& backend) {
      return after(backend, numbers, optim::state_arrays(rule), [&](optim::UpdateSlice slice) {
        slice.decays = true;
        backend.make_update({.rule = rule, .slices = {slice}, .weight_decay = decay})
            ->apply({rule, 0.013, 4});
      });
    };
    plans.push_back(plan(name, kLimit, tested, reference, run));
  };
  using optim::RmsProp, optim::Sgd;
  add("update by SGD", Sgd{});
  add("update by momentum with weight decay", Sgd{.momentum = 0.9}, 0.02);
  add("update by Nesterov's momentum", Sgd{0.9, true});
  add("update by RMSprop", RmsProp{});
  add("update by RMSprop, momentum", RmsProp{.momentum = 0.5});
  add("update by RMSprop, centered", RmsProp{.centered = true});
  add("update by RMSprop, both with weight decay", RmsProp{.momentum = 0.5, .centered = true},
      0.02);
  add("update by Adam", optim::Adam{});
  add("update by LARS", optim::Lars{});
  add("update by LAMB", optim::Lamb{});
  return plans;
}

std::vector<CasePlan> change_plans(std::uint64_t seed, Backend& tested, Backend& reference) {
  std::vector<CasePlan> plans;
  const auto add = [&](const char* name, const optim::GradientOperation& change, int states = 0) {
    const auto run = [change, states, numbers = CaseNumbers(seed, name)](Backend& backend) {
      return after(backend, numbers, states, [&](const optim::UpdateSlice& slice) {
        backend.change_gradients(change, slice);
      });
    };
    plans.push_back(plan(name, kLimit, tested, reference, run));
  };
  add("gradients with weights added", optim::AddWeights{0.2});
  add("gradients that are clipped", optim::ClipValues{0.5});
  add("gradients that are scaled", optim::ScaleGradients{0.37});
  add("gradients that are averaged", optim::MoveAverage{0.9});
  add("gradients in LAMB's direction", optim::LambDirection{optim::Lamb{}, 0.05, 4}, 2);
  return plans;
}

CasePlan sum_plan(std::uint64_t seed, int count, Backend& tested, Backend& reference) {
  const std::string name = fmt::format("sum of {} arrays, into the last", count);
  return plan(name, kLimit, tested, reference, [seed, name, count](Backend& backend) {
    CaseNumbers numbers(seed, name);
    const auto size = static_cast<std::size_t>(numbers.odd_between(5001, 9001));
    std::vector<std::unique_ptr<PlacedArray>> placed;
    std::vector<Array> arrays;
    for (int i = 0; i < count; ++i) {
      placed.push_back(std::make_unique<PlacedArray>(backend, numbers, size, -1000, 1000));
      arrays.push_back(placed.back()->array());
    }
    backend.sum(arrays, arrays.back());
    RunOutputs outputs;
    placed.back()->put_into(outputs, "sum");
    placed.front()->put_into(outputs, "first summand");
    return outputs;
  });
}

CasePlan norm_plan(std::uint64_t seed, Backend& tested, Backend& reference) {
  const std::string name = "norms of blocks";
  // Products of floats are exact in double.
  return plan(name, 1e-13, tested, reference, [seed, name](Backend& backend) {
    CaseNumbers numbers(seed, name);
    const auto size = static_cast<std::size_t>(numbers.odd_between(9001, 30001));
    const auto position = static_cast<std::size_t>(numbers.between(1, 5000));
    const PlacedArray array(backend, numbers, size, -3, 3);
    const compute::ArenaPart placed{{position, position + size}, array.array()};
    RunOutputs outputs;
    outputs.add("norms", backend.block_norms({&placed, 1}).wait());
    outputs.add("norm of all", std::vector{backend.sum_of_squares(array.array())});
    return outputs;
  });
}

/// Bytes go to the memory, from there to another place of it, and back; longer than what a
/// driver stages at a time.
CasePlan copy_plan(std::uint64_t seed, Backend& tested) {
  const std::string name = "copies of bytes";
  CaseNumbers numbers(seed, name);
  const std::size_t capacity = (std::size_t{9} << 20) + 1000;
  const auto from = static_cast<std::size_t>(numbers.odd_between(1, 99));
  const auto to = static_cast<std::size_t>(numbers.odd_between(1, 99));
  const std::size_t size = capacity - 200 - static_cast<std::size_t>(numbers.between(0, 99));
  const auto compute = [=, &tested](int run) {
    compute::Memory& memory = tested.memory();
    const auto a = memory.allocate(capacity), b = memory.allocate(capacity);
    std::vector<std::byte> written(size), whole(capacity);
    for (std::size_t i = 0; i < size; ++i) {
      written[i] = static_cast<std::byte>((i * 7 + i / 251 + from) % 256);
    }
    memory.write(written, a->bytes().data() + from);
    memory.copy(a->bytes().data() + from, b->bytes().data() + to, size);
    std::ranges::fill(whole, static_cast<std::byte>(run));
    memory.read(b->bytes().data(), whole);
    double wrong = 0;
    for (std::size_t i = 0; i < capacity; ++i) {
      const bool inside = i >= to && i < to + size;
      wrong += whole[i] != (inside ? written[i - to] : std::byte{0});
    }
    RunOutputs outputs;
    outputs.add("wrong bytes", std::vector{wrong});
    return outputs;
  };
  return {name, 0, compute, [] {
            RunOutputs outputs;
            outputs.add("wrong bytes", std::vector{0.0});
            return outputs;
          }};
}

}  // namespace

std::vector<CasePlan> array_plans(std::uint64_t seed, Backend& tested, Backend& reference) {
  std::vector<CasePlan> plans = update_plans(seed, tested, reference);
  std::ranges::move(change_plans(seed, tested, reference), std::back_inserter(plans));
  for (const int count : {2, 3, 11}) plans.push_back(sum_plan(seed, count, tested, reference));
  plans.push_back(norm_plan(seed, tested, reference));
  plans.push_back(copy_plan(seed, tested));
  return plans;
}

}  // namespace cputrain::selftest
