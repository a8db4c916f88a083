// Arrays as long as an arena on their way between rank 0 and the owners of its parts.
#include "loop/arena_owners.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "backends/threads/threads_communicator.h"
#include "tests/support/locked_backend.h"

namespace cputrain::loop {
namespace {

/// Elements that lie in more than one message.
const std::size_t kLong = compute::piece_elements(DType::f64) + 11;

/// Numbers of a rank for the ranges that it owns, in a memory.
class Owned {
 public:
  Owned(compute::Memory& memory, std::vector<Range> ranges) : memory_(memory), ranges_(ranges) {
    for (const Range& range : ranges) {
      arrays_.emplace_back(memory, range.size(), DType::f64);
      parts_.push_back({range, arrays_.back().array()});
    }
  }

  std::span<const Range> ranges() const { return ranges_; }
  std::span<const compute::ArenaPart> parts() const { return parts_; }
  /// Element i becomes i + a.
  void fill(double a) {
    for (const compute::ArenaPart& part : parts_) {
      std::vector<double> values(part.range.size());
      std::iota(values.begin(), values.end(), static_cast<double>(part.range.begin) + a);
      compute::write_numbers(memory_, values, part.values);
    }
  }
  void expect(double a) const {
    for (const compute::ArenaPart& part : parts_) {
      const std::vector<double> values = compute::read_numbers(memory_, part.values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != static_cast<double>(part.range.begin + i) + a) {
          FAIL() << values[i] << " at " << part.range.begin + i;
        }
      }
    }
  }

 private:
  compute::Memory& memory_;
  std::vector<Range> ranges_;
  std::vector<compute::OwnedArray> arrays_;
  std::vector<compute::ArenaPart> parts_;
};

/// The whole of rank 0: element i is i + a.
class Whole {
 public:
  Whole(comm::Communicator& communicator, compute::Memory& memory, std::size_t size)
      : own_(memory, {{0, communicator.rank() == 0 ? size : 0}}) {}
  Owned& numbers() { return own_; }
  Array array() const { return own_.parts().front().values; }

 private:
  Owned own_;
};

/// Every rank owns everything: owner k is rank k.
void replicas(comm::Communicator& communicator, compute::Memory& memory) {
  Owned own(memory, {{0, kLong}});
  Whole whole(communicator, memory, kLong);
  ArenaOwners owners(communicator, own.ranges());
  EXPECT_EQ(owners.owners(), communicator.size());
  EXPECT_EQ(owners.first_owner(kLong - 1), 0);
  EXPECT_EQ(owners.first_owner(kLong), -1);
  for (int k = 0; k < communicator.size(); ++k) {
    own.fill(0.25 * (communicator.rank() + 1));
    owners.gather(k, own.parts(), memory, whole.array());
    if (communicator.rank() == 0) whole.numbers().expect(0.25 * (k + 1));
    if (communicator.rank() == 0) whole.numbers().fill(100);
    owners.deal(k, own.parts(), memory, whole.array());
    own.expect(communicator.rank() == k ? 100 : 0.25 * (communicator.rank() + 1));
  }
  whole.numbers().fill(7);
  owners.deal_to_all(own.parts(), memory, whole.array());
  own.expect(7);
}

TEST(ArenaOwners, OfReplicas) {
  for (const int ranks : {1, 3}) {
    threads::run_ranks(ranks, [](comm::Communicator& communicator) {
      replicas(communicator, compute::host_memory());
    });
  }
  threads::run_ranks(2, [](comm::Communicator& communicator) {
    testing::LockedMemory memory;
    replicas(communicator, memory);
  });
}

/// Two nodes of two ranks, which share 30 elements out among them in ranges that touch.
TEST(ArenaOwners, OfSlicesOfNodes) {
  threads::run_ranks(4, [](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    Owned own(compute::host_memory(), rank % 2 == 0 ? std::vector<Range>{{0, 4}, {4, 9}, {20, 21}}
                                                    : std::vector<Range>{{9, 20}, {21, 30}});
    Whole whole(communicator, compute::host_memory(), 30);
    ArenaOwners owners(communicator, own.ranges());
    EXPECT_EQ(owners.owners(), 2);
    for (const std::size_t element : {0, 4, 8, 20}) EXPECT_EQ(owners.first_owner(element), 0);
    for (const std::size_t element : {9, 19, 21, 29}) EXPECT_EQ(owners.first_owner(element), 1);
    for (int node = 0; node < 2; ++node) {
      own.fill(rank < 2 ? 0.5 : 0.75);
      owners.gather(node, own.parts(), compute::host_memory(), whole.array());
      if (rank == 0) whole.numbers().expect(node == 0 ? 0.5 : 0.75);
      whole.numbers().fill(3);
      owners.deal(node, own.parts(), compute::host_memory(), whole.array());
      own.expect(rank / 2 == node ? 3 : rank < 2 ? 0.5 : 0.75);
    }
    whole.numbers().fill(4);
    owners.deal_to_all(own.parts(), compute::host_memory(), whole.array());
    own.expect(4);
  });
}

/// A server: the others own nothing. What nobody owns stays as it is.
TEST(ArenaOwners, OfOneRank) {
  threads::run_ranks(3, [](comm::Communicator& communicator) {
    const bool leads = communicator.rank() == 0;
    Owned own(compute::host_memory(),
              leads ? std::vector<Range>{{2, 10}, {10, 10}} : std::vector<Range>());
    Whole whole(communicator, compute::host_memory(), 12);
    ArenaOwners owners(communicator, own.ranges());
    EXPECT_EQ(owners.owners(), 1);
    EXPECT_EQ(owners.first_owner(1), -1);
    own.fill(0.5);
    owners.gather(0, own.parts(), compute::host_memory(), whole.array());
    if (!leads) return;
    const auto values = whole.array().as<double>();
    EXPECT_EQ(values[1], 0);
    EXPECT_EQ(values[2], 2.5);
    EXPECT_EQ(values[9], 9.5);
    EXPECT_EQ(values[10], 0);
  });
}

TEST(ArenaOwners, HashesTellWhoOwnsWhat) {
  const auto hash_of = [](int ranks, const std::function<std::vector<Range>(int)>& owned) {
    std::uint64_t hash = 0;
    threads::run_ranks(ranks, [&](comm::Communicator& communicator) {
      const auto ranges = owned(communicator.rank());
      const ArenaOwners owners(communicator, ranges);
      if (communicator.rank() == 0) hash = owners.hash();
    });
    return hash;
  };
  const auto halves = [](int rank) {
    return rank == 0 ? std::vector<Range>{{0, 5}} : std::vector<Range>{{5, 9}};
  };
  const auto other_halves = [](int rank) {
    return rank == 0 ? std::vector<Range>{{0, 4}} : std::vector<Range>{{4, 9}};
  };
  const auto all = [](int) { return std::vector<Range>{{0, 9}}; };
  EXPECT_EQ(hash_of(2, halves), hash_of(2, halves));
  EXPECT_NE(hash_of(2, halves), hash_of(2, other_halves));
  EXPECT_NE(hash_of(2, all), hash_of(3, all));
}

}  // namespace
}  // namespace cputrain::loop
