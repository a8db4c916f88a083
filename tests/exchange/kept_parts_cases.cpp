#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "exchange/compression/compression.h"
#include "tests/exchange/compressed_sums.h"

namespace cputrain::exchange {
namespace {

/// Only so many numbers of each rank arrive in a step, the largest, and in the end all do: steps
/// without a gradient bring what was kept back.
void what_is_kept_back_comes_later(comm::Communicator& comm) {
  constexpr std::size_t kSize = 10007, kChosen = 1001;  // a tenth, rounded up
  const auto sum = make_sum("topk:0.1", comm, vector_of(kSize, DType::f64));
  std::vector<double> total(kSize), gradients(kSize), values(kSize);
  for (int step = 0; step < 16; ++step) {
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto mixed = static_cast<int>((i * 7919 + 31 * static_cast<std::size_t>(step)) % 1009);
      values[i] = step < 6 ? (comm.rank() + 1) * (mixed - 500) : 0;
      gradients[i] += step < 6 ? comm.size() * (comm.size() + 1) / 2 * (mixed - 500) : 0;
    }
    sum->sum({0, kSize}, Array::of(std::span(values)));
    const auto sent = kSize - static_cast<std::size_t>(std::ranges::count(values, 0.0));
    EXPECT_LE(sent, kChosen * static_cast<std::size_t>(comm.size()));
    EXPECT_GT(sent + 10, step < 6 ? kChosen : 0);
    if (step == 0) {
      EXPECT_EQ(values[0] != 0, true) << "the largest, -500, is not among them";
    }
    for (std::size_t i = 0; i < kSize; ++i) total[i] += values[i];
  }
  EXPECT_EQ(total, gradients);
}

/// Numbers of a rank in a step, of which compression leaves some behind.
std::vector<double> numbers_of_step(std::size_t size, int rank, int step) {
  std::vector<double> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = std::sin(static_cast<double>(i + 1) * (rank + 2) + step);
  }
  return values;
}

/// What a sum keeps, given to another one, which then forms the same sums. Ranges are cut as those
/// of buckets; the first is small enough to travel whole.
void what_is_kept_goes_on(const std::string& text, comm::Communicator& comm) {
  const auto layout = layout_of({120, 60}, DType::f64);
  const Range ranges[] = {{0, 100}, {100, 5000}, {5000, 7200}};
  const auto step_of = [&](GradientSum& sum, int step) {
    std::vector<double> all = numbers_of_step(7200, comm.rank(), step);
    for (const Range& r : ranges) {
      sum.sum(r, Array::of(std::span(all).subspan(r.begin, r.size())));
    }
    return all;
  };
  const auto first = make_sum(text, comm, layout), second = make_sum(text, comm, layout);
  for (int step = 0; step < 3; ++step) step_of(*first, step);
  const auto fresh = step_of(*second, 7);  // which it is to forget
  KeptParts &theirs = *first->kept_parts(), &mine = *second->kept_parts();
  mine.forget();
  EXPECT_EQ(step_of(*second, 7), fresh);
  mine.forget();
  std::ranges::copy(theirs.unsent().as<double>(), mine.unsent().as<double>().begin());
  for (const compute::ArenaPart& part : theirs.factors()) mine.set_factors(part.range, part.values);
  EXPECT_EQ(theirs.factors().size(), text == "topk:0.1" ? 0u : 3u);
  for (int step = 3; step < 6; ++step) {
    EXPECT_EQ(step_of(*first, step), step_of(*second, step)) << text << " in step " << step;
  }
}

/// Whatever is owed is sent in the end, also where ranges are cut so that nothing is kept of them.
/// So it is where they were summed before it came, as when a training goes back.
void what_is_owed_is_sent(const std::string& text, comm::Communicator& comm) {
  const std::size_t size = 3000;
  const auto layout = layout_of({60, 50}, DType::f64);
  const auto sum = make_sum(text, comm, layout);
  std::vector<double> total(size), values;
  const auto add_nothing = [&] {
    values.assign(size, 0);
    for (std::size_t begin = 0; begin < size; begin += 30) {
      sum->sum({begin, begin + 30}, Array::of(std::span(values).subspan(begin, 30)));
    }
  };
  add_nothing();
  sum->kept_parts()->forget();
  const auto unsent = sum->kept_parts()->unsent().as<double>();
  for (std::size_t i = 0; i < size; ++i)
    unsent[i] = static_cast<double>(i % 17) * (comm.rank() + 1);
  for (int step = 0; step < 3; ++step) {
    add_nothing();
    for (std::size_t i = 0; i < size; ++i) total[i] += values[i];
  }
  const double ranks = comm.size() * (comm.size() + 1) / 2;
  for (std::size_t i = 0; i < size; ++i) {
    ASSERT_NEAR(total[i], ranks * static_cast<double>(i % 17), 1e-9) << text << " at " << i;
  }
}

/// Gradients that were no numbers leave nothing behind.
void nan_is_forgotten(const std::string& text, comm::Communicator& comm) {
  const auto sum = make_sum(text, comm, layout_of({100, 50}, DType::f64));
  std::vector<double> values = numbers_of_step(5000, comm.rank(), 0);
  values[4000] = std::numeric_limits<double>::quiet_NaN();
  sum->sum({0, 5000}, Array::of(std::span(values)));
  sum->kept_parts()->forget_nonfinite();
  for (int step = 1; step < 3; ++step) {
    values = numbers_of_step(5000, comm.rank(), step);
    sum->sum({0, 5000}, Array::of(std::span(values)));
    EXPECT_TRUE(std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) << text;
  }
}

/// What is sent whole leaves nothing for a checkpoint.
void sums_of_everything_keep_nothing(comm::Communicator& comm) {
  for (const char* text : {"none", "fp16", "bf16"}) {
    EXPECT_EQ(make_sum(text, comm, layout_of({100, 50}, DType::f32))->kept_parts(), nullptr)
        << text;
  }
}

}  // namespace

std::vector<comm::CommCase> kept_parts_cases() {
  std::vector<comm::CommCase> cases;
  for (const char* text : {"topk:0.1", "powersgd:2"}) {
    cases.push_back(case_of(text, "what_is_kept_goes_on", what_is_kept_goes_on));
    cases.push_back(case_of(text, "what_is_owed_is_sent", what_is_owed_is_sent));
    cases.push_back(case_of(text, "nan_is_forgotten", nan_is_forgotten));
  }
  cases.push_back({"topk_what_is_kept_back_comes_later", what_is_kept_back_comes_later});
  cases.push_back({"sums_of_everything_keep_nothing", sums_of_everything_keep_nothing});
  return cases;
}

}  // namespace cputrain::exchange
