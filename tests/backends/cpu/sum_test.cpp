#include "backends/cpu/kernels/sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tests/backends/cpu/each_instruction_set.h"
#include "tests/backends/cpu/numbers.h"
#include "tests/backends/cpu/team.h"

/// Sums of arrays, bit by bit: in the order of the sources, whatever their number, however long
/// they are and wherever they begin.
namespace cputrain::cpu::sum_test {
namespace {

constexpr float kUntouched = 1000;  // more than any sum here

/// Floats that begin `offset` floats behind a cache line's begin, among others.
class Floats {
 public:
  Floats(std::size_t size, std::size_t offset) : all_(size + 3 * kLine, kUntouched), size_(size) {
    const std::size_t address = reinterpret_cast<std::uintptr_t>(all_.data()) / sizeof(float);
    begin_ = kLine + (kLine - address % kLine) % kLine + offset;
  }
  Floats(const Floats&) = delete;

  std::span<float> span() { return std::span(all_).subspan(begin_, size_); }
  Array array() { return Array::of(span()); }
  bool others_are_untouched() const {
    return std::ranges::count(all_, kUntouched) == static_cast<std::ptrdiff_t>(all_.size() - size_);
  }

 private:
  static constexpr std::size_t kLine = 16;
  std::vector<float> all_;
  std::size_t size_, begin_;
};

/// Of the k-th source; drawing a million anew would take longer than all sums.
const std::vector<float>& numbers_of(int k, std::size_t size) {
  static std::map<std::pair<int, std::size_t>, std::vector<float>> drawn;
  std::vector<float>& values = drawn[{k, size}];
  if (values.empty()) values = numbers(size, 0.9f, static_cast<std::uint32_t>(k));
  return values;
}

class Sum : public EachInstructionSet {
 protected:
  /// Sources that begin `offset` floats behind a cache line's begin.
  void set_sources(int count, std::size_t size, std::size_t offset) {
    sources_.clear();
    src_.clear();
    expected_.assign(size, 0);
    for (int k = 0; k < count; ++k) {
      const std::vector<float>& values = numbers_of(k, size);
      std::ranges::copy(values, sources_.emplace_back(size, offset).span().begin());
      src_.push_back(sources_.back().array());
      if (k == 0) {
        expected_ = values;
      } else {
        std::ranges::transform(expected_, values, expected_.begin(), std::plus<>());
      }
    }
  }

  void expect_sum_in(Floats& dst) {
    sum_in_parallel(GetParam(), src_, dst.array());
    EXPECT_TRUE(std::ranges::equal(dst.span(), expected_));
    EXPECT_TRUE(dst.others_are_untouched());
  }

  void expect_sums(int count, std::size_t size) {
    SCOPED_TRACE(::testing::Message() << count << " sources of " << size);
    for (const std::size_t offset : {0, 3, 8}) {
      set_sources(count, size, 5);
      Floats dst(size, offset);
      expect_sum_in(dst);
    }
    for (const std::size_t offset : {0, 5}) {
      set_sources(count, size, offset);
      expect_sum_in(sources_.front());
      set_sources(count, size, offset);
      expect_sum_in(sources_.back());
    }
  }

  std::list<Floats> sources_;
  std::vector<Array> src_;
  std::vector<float> expected_;
};

TEST_P(Sum, GoesInTheOrderOfItsSources) {
  for (const int count : {1, 2, 3, 4, 5, 7, 8}) {
    for (const std::size_t size : {1, 5, 16, 2049}) expect_sums(count, size);
  }
}

TEST_P(Sum, IsWrittenPastTheCache) {
  for (const int threads : {1, 3}) {
    const Team team(threads);
    for (const int count : {1, 2, 3}) expect_sums(count, kPastCache + 21);
    for (const int count : {1, 2}) expect_sums(count, kPastCache);
  }
}

INSTANTIATE_TEST_SUITE_P(AllSets, Sum, all_instruction_sets(), name_of_set);

}  // namespace
}  // namespace cputrain::cpu::sum_test
