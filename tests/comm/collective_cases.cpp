#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/comm/cases.h"

namespace cputrain::comm {

namespace {

template <class T>
void expect_exact_sums(Communicator& comm) {
  const T ranks = static_cast<T>(comm.size());
  for (const std::size_t size : {0u, 1u, 2u, 7u, 1000u, 100003u}) {
    std::vector<T> values(size);
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = static_cast<T>((comm.rank() + 1) * (static_cast<int>(i % 97) - 48));
    }
    comm.sum(Array::of(std::span(values)));
    for (std::size_t i = 0; i < size; ++i) {  // comparing first: ASSERT_EQ is slow under sanitizers
      const T expected = ranks * (ranks + 1) / 2 * static_cast<T>(static_cast<int>(i % 97) - 48);
      if (values[i] != expected) FAIL() << values[i] << " at " << i << " of " << size;
    }
  }
}

void sums_of_float(Communicator& comm) { expect_exact_sums<float>(comm); }
void sums_of_double(Communicator& comm) { expect_exact_sums<double>(comm); }

/// Numbers whose sum depends on the order of the additions: still the same bits everywhere.
void sums_have_the_same_bits(Communicator& comm) {
  std::vector<float> values(4099);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i + 1) * static_cast<float>(comm.rank() + 1)) *
                std::pow(10.0f, static_cast<float>((i + comm.rank()) % 7));
  }
  comm.sum(Array::of(std::span(values)));
  const auto bytes = std::as_bytes(std::span(values));
  const auto texts = comm.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::string& text : texts) ASSERT_EQ(text, texts[0]);
}

void broadcast_from_each_root(Communicator& comm) {
  for (int root = 0; root < comm.size(); ++root) {
    for (const std::size_t size : {0u, 1u, 1000u, 300000u}) {
      const auto expected = [&](std::size_t i) {
        return static_cast<std::byte>((i * 31 + root * 7 + 1) % 251);
      };
      std::vector<std::byte> data(size, std::byte{0xff});
      if (comm.rank() == root) {
        for (std::size_t i = 0; i < size; ++i) data[i] = expected(i);
      }
      comm.broadcast(data, root);
      for (std::size_t i = 0; i < size; ++i) {
        if (data[i] != expected(i)) FAIL() << "byte " << i << " of " << size << " from " << root;
      }
    }
  }
}

void gather_of_unequal_texts(Communicator& comm) {
  constexpr std::size_t kLengths[] = {0, 1, 100000, 17};  // the third does not fit in 64 KiB
  const auto text_of = [&](int rank, int round) {
    return std::string(kLengths[(rank + round) % 4], static_cast<char>('a' + rank % 26));
  };
  for (int round = 0; round < 4; ++round) {
    const auto texts = comm.gather(text_of(comm.rank(), round));
    ASSERT_EQ(texts.size(), static_cast<std::size_t>(comm.size()));
    for (int rank = 0; rank < comm.size(); ++rank) {
      ASSERT_TRUE(texts[rank] == text_of(rank, round)) << "rank " << rank << " round " << round;
    }
  }
  for (const std::string& text : comm.gather({})) EXPECT_EQ(text, "");
}

void gather_keeps_zero_bytes(Communicator& comm) {
  const std::string text("a\0b", 3);
  for (const std::string& other : comm.gather(text)) EXPECT_EQ(other, text);
}

void ranks_are_numbered(Communicator& comm) {
  std::set<std::string> names;
  for (const std::string& text : comm.gather(std::to_string(comm.rank()))) names.insert(text);
  std::set<std::string> expected;
  for (int rank = 0; rank < comm.size(); ++rank) expected.insert(std::to_string(rank));
  EXPECT_EQ(names, expected);
  EXPECT_FALSE(comm.describe().empty());
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

void node_memory_is_seen_by_all(Communicator& comm) {
  NodeMemory& memory = comm.node_memory();
  const auto numbers =
      comm.gather(std::to_string(memory.first_rank()) + " " + std::to_string(memory.local_rank()));
  EXPECT_EQ(std::set<std::string>(numbers.begin(), numbers.end()).size(), numbers.size());

  for (const std::size_t size : {1u, 63u, 4096u, 4097u, (1u << 20) + 13}) {
    const auto first = memory.allocate(size), second = memory.allocate(size);
    for (const auto* block : {first.get(), second.get()}) {
      ASSERT_EQ(block->bytes().size(), size);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->bytes().data()) % 64, 0u);
      EXPECT_TRUE(all_zero(block->bytes()));
    }
    comm.node_memory().barrier();  // all have seen the zeros
    // every rank writes every size()th byte; together they fill the block
    const auto ranks = static_cast<std::size_t>(memory.local_size());
    for (std::size_t i = memory.local_rank(); i < size; i += ranks) {
      first->bytes()[i] = static_cast<std::byte>(i % 250 + 1);
    }
    comm.node_memory().barrier();
    for (std::size_t i = 0; i < size; ++i) {
      if (first->bytes()[i] != static_cast<std::byte>(i % 250 + 1)) FAIL() << "byte " << i;
    }
    EXPECT_TRUE(all_zero(second->bytes())) << "blocks overlap";
    comm.node_memory().barrier();  // nobody lets go of a block that others read
  }
}

/// Numbers that no short text holds come back as they were.
void gathers_values_bit_for_bit(Communicator& comm) {
  struct Pair {
    double third;
    std::size_t large;
  };
  const auto value = [](int rank) {
    return Pair{(rank + 1) / 3.0,
                std::numeric_limits<std::size_t>::max() - static_cast<std::size_t>(rank)};
  };
  const std::vector<Pair> pairs = gather_values(comm, value(comm.rank()));
  ASSERT_EQ(pairs.size(), static_cast<std::size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) {
    EXPECT_EQ(pairs[static_cast<std::size_t>(rank)].third, (rank + 1) / 3.0);
    EXPECT_EQ(pairs[static_cast<std::size_t>(rank)].large, value(rank).large);
  }
}

void sums_numbers_where_they_are(Communicator& comm) {
  const double ranks = comm.size();
  double own = comm.rank() + 1, one = 1, none = 0;
  sum_numbers(comm, std::array{&own, &one, &none});
  EXPECT_EQ(own, ranks * (ranks + 1) / 2);
  EXPECT_EQ(one, ranks);
  EXPECT_EQ(none, 0);
  std::array<double, 16> many{};
  std::array<double*, 16> places{};
  for (std::size_t i = 0; i < many.size(); ++i) {
    many[i] = static_cast<double>(i);
    places[i] = &many[many.size() - 1 - i];
  }
  sum_numbers(comm, places);
  for (std::size_t i = 0; i < many.size(); ++i) EXPECT_EQ(many[i], ranks * static_cast<double>(i));
}

/// Also where some ranks, or all, know none, and where all are below 0.
void finds_the_largest_of_ranks(Communicator& comm) {
  const int last = comm.size() - 1;
  EXPECT_EQ(largest_of_ranks(comm, 1.0 / (comm.rank() + 3)), 1 / 3.0);
  EXPECT_EQ(largest_of_ranks(comm, -1 - comm.rank()), -1);
  EXPECT_EQ(largest_of_ranks(comm, std::nullopt), std::nullopt);
  const auto known = comm.rank() == last ? std::optional(-2.5) : std::nullopt;
  EXPECT_EQ(largest_of_ranks(comm, known), -2.5);
}

/// Every rank names two runs of pages; what nobody names may lie between.
void node_memory_by_parts(Communicator& comm) {
  NodeMemory& memory = comm.node_memory();
  constexpr std::size_t kPage = 4096;
  const auto rank = static_cast<std::size_t>(memory.local_rank());
  const auto ranks = static_cast<std::size_t>(memory.local_size());
  const std::vector<Range> mine{{3 * rank * kPage, 3 * rank * kPage + 10},
                                {(3 * rank + 2) * kPage, (3 * rank + 3) * kPage}};
  const auto block = memory.allocate_touched(3 * ranks * kPage, mine);
  ASSERT_EQ(block->bytes().size(), 3 * ranks * kPage);
  for (const Range& range : mine) {
    const auto part = block->bytes().subspan(range.begin, range.size());
    EXPECT_TRUE(all_zero(part));
    std::ranges::fill(part, static_cast<std::byte>(rank + 1));
  }
  comm.node_memory().barrier();
  for (std::size_t other = 0; other < ranks; ++other) {
    const auto value = static_cast<std::byte>(other + 1);
    EXPECT_EQ(block->bytes()[3 * other * kPage + 9], value);
    EXPECT_EQ(block->bytes()[(3 * other + 3) * kPage - 1], value);
  }
  comm.node_memory().barrier();
}

void empty_node_memory(Communicator& comm) {
  EXPECT_EQ(comm.node_memory().allocate(0)->bytes().size(), 0u);
}

/// Ranks take turns in writing one number; without the barrier's promise some would see an old one.
void node_barrier_orders_writes(Communicator& comm) {
  const auto block = comm.node_memory().allocate(sizeof(int));
  int& shared = *reinterpret_cast<int*>(block->bytes().data());
  for (int turn = 0; turn < 50; ++turn) {
    if (turn % comm.node_memory().local_size() == comm.node_memory().local_rank()) {
      shared = turn + 1;
    }
    comm.node_memory().barrier();
    ASSERT_EQ(shared, turn + 1);
    comm.node_memory().barrier();
  }
}

void barrier_waits_for_all(Communicator& comm) {
  const auto block = comm.node_memory().allocate(sizeof(int));
  const std::atomic_ref<int> arrived(*reinterpret_cast<int*>(block->bytes().data()));
  for (int round = 1; round <= 20; ++round) {
    arrived.fetch_add(1);
    comm.barrier();
    ASSERT_EQ(arrived.load(), round * comm.node_memory().local_size());
    comm.barrier();
  }
}

const std::vector<CommCase> kCases = {
    {"sums_of_float", sums_of_float},
    {"sums_of_double", sums_of_double},
    {"sums_have_the_same_bits", sums_have_the_same_bits},
    {"broadcast_from_each_root", broadcast_from_each_root},
    {"gather_of_unequal_texts", gather_of_unequal_texts},
    {"gather_keeps_zero_bytes", gather_keeps_zero_bytes},
    {"gathers_values_bit_for_bit", gathers_values_bit_for_bit},
    {"sums_numbers_where_they_are", sums_numbers_where_they_are},
    {"finds_the_largest_of_ranks", finds_the_largest_of_ranks},
    {"ranks_are_numbered", ranks_are_numbered},
    {"node_memory_is_seen_by_all", node_memory_is_seen_by_all},
    {"node_memory_by_parts", node_memory_by_parts},
    {"empty_node_memory", empty_node_memory},
    {"node_barrier_orders_writes", node_barrier_orders_writes},
    {"barrier_waits_for_all", barrier_waits_for_all},
};

}  // namespace

std::vector<CommCase> collective_cases() { return kCases; }

}  // namespace cputrain::comm
