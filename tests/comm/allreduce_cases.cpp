#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "tests/comm/cases.h"

namespace cputrain::comm {
namespace {

std::unique_ptr<Allreduce> make(const std::string& name, Communicator& comm, PointToPoint& peers,
                                int group) {
  if (name == "server") return make_server(peers);
  return make_algorithm(name, peers, name == "mpi" ? comm.make_allreduce(group) : nullptr);
}

std::vector<int> every(int step, int first, int size) {
  std::vector<int> ranks;
  for (int rank = first; rank < size; rank += step) ranks.push_back(rank);
  return ranks;
}

/// From nothing to several segments; no length that the number of ranks divides.
constexpr std::size_t kSizes[] = {0, 1, 2, 7, 8, 1000, 100003, 600011};

template <class T>
void expect_exact_sums(Allreduce& allreduce, int rank, int ranks) {
  for (const std::size_t size : kSizes) {
    std::vector<T> values(size);
    const auto pattern = [](std::size_t i) {
      return static_cast<T>(static_cast<int>(i % 97) - 48);
    };
    for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<T>(rank + 1) * pattern(i);
    allreduce.sum(Array::of(std::span(values)));
    for (std::size_t i = 0; i < size; ++i) {
      const T expected = static_cast<T>(ranks * (ranks + 1) / 2) * pattern(i);
      if (values[i] != expected) FAIL() << values[i] << " at " << i << " of " << size;
    }
  }
}

void exact_sums(const std::string& name, Communicator& comm) {
  const auto peers = comm.make_point_to_point();
  const auto allreduce = make(name, comm, *peers, 0);
  expect_exact_sums<float>(*allreduce, comm.rank(), comm.size());
  expect_exact_sums<double>(*allreduce, comm.rank(), comm.size());
}

/// Even ranks among themselves, odd ones among themselves, at the same time.
void sums_of_groups(const std::string& name, Communicator& comm) {
  const auto peers = comm.make_point_to_point();
  PointToPointGroup group(*peers, every(2, comm.rank() % 2, comm.size()));
  const auto allreduce = make(name, comm, group, comm.rank() % 2);
  expect_exact_sums<float>(*allreduce, group.rank(), group.size());
}

/// Numbers whose sum depends on the order of additions: all ranks get the same bits, and they are
/// near the sum in double.
void the_same_bits(const std::string& name, Communicator& comm) {
  const auto peers = comm.make_point_to_point();
  const auto allreduce = make(name, comm, *peers, 0);
  const auto value = [](std::size_t i, int rank) {
    return std::sin(static_cast<float>(i + 1) * static_cast<float>(rank + 1)) *
           std::pow(10.0f, static_cast<float>((i + static_cast<std::size_t>(rank)) % 7));
  };
  std::vector<float> values(40009);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(i, comm.rank());
  allreduce->sum(Array::of(std::span(values)));
  const auto bytes = std::as_bytes(std::span(values));
  const auto texts = comm.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::string& text : texts) ASSERT_TRUE(text == texts[0]);
  for (std::size_t i = 0; i < values.size(); i += 101) {
    double exact = 0, size = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
      exact += static_cast<double>(value(i, rank));
      size += std::abs(static_cast<double>(value(i, rank)));
    }
    ASSERT_NEAR(static_cast<double>(values[i]), exact, 1e-6 * size);
  }
}

}  // namespace

std::vector<CommCase> allreduce_cases() {
  std::vector<std::string> names = allreduce_algorithms();
  names.push_back("server");
  std::vector<CommCase> cases;
  for (std::string name : names) {
    std::string word = name == "recursive-doubling" ? "recursive_doubling" : name;
    const auto add = [&](const char* what, auto body) {
      cases.push_back({word + "_" + what, [name, body](Communicator& comm) { body(name, comm); }});
    };
    add("exact_sums", exact_sums);
    add("sums_of_groups", sums_of_groups);
    add("the_same_bits", the_same_bits);
  }
  return cases;
}

}  // namespace cputrain::comm
