#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "core/error.h"
#include "exchange/basic_exchange.h"
#include "exchange/compression/compression.h"
#include "tests/exchange/cases.h"
#include "tests/exchange/exchange_ways.h"
#include "tests/support/locked_backend.h"

/// Arenas that the host cannot touch: who can exchange them, who says that he cannot. The cases of
/// exchange_cases.cpp run on them, too.
namespace cputrain::exchange {
namespace {

ExchangeParts parts_in(compute::Memory& memory, comm::Communicator& comm, int lanes = 0) {
  return {.communicator = comm,
          .layout = layout_of_counts({100, 5000}, DType::f32),
          .bucket_bytes = 1000,
          .lanes = lanes,
          .memory = memory};
}

void expect_refusal(const ExchangeParts& parts, const std::string& allreduce,
                    const std::vector<std::string>& words) {
  try {
    make_exchange(parts, comm::parse_allreduce(allreduce));
    ADD_FAILURE() << allreduce << " was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  }
}

/// What forms its sums where the ranks of a node share memory, or sends from the arenas, says so on
/// all ranks, and the exchange between ranks that is named instead can be had.
void needs_host_memory(comm::Communicator& comm) {
  testing::LockedMemory memory;
  for (const char* name : {"hierarchical", "hierarchical+ring", "ps"}) {
    expect_refusal(parts_in(memory, comm), name,
                   {std::string("--allreduce ") + name, "host's memory", "use auto", "ring"});
  }
  // On several nodes another reason holds, too: whichever is told, it is one.
  expect_refusal(parts_in(memory, comm), "shm", {"--allreduce shm", "auto"});
  expect_refusal(parts_in(memory, comm, 2), "auto", {"--reproducible", "host's memory"});
  EXPECT_NO_THROW(make_exchange(parts_in(memory, comm), comm::parse_allreduce("ring")));
}

void automatic_takes_replicas(comm::Communicator& comm) {
  testing::LockedMemory memory;
  const MadeExchange made = make_exchange(parts_in(memory, comm), {});
  EXPECT_EQ(made.choice.scheme, comm::AllreduceChoice::Scheme::replicas);
  EXPECT_FALSE(made.choice.ranges.empty());
  EXPECT_NE(made.exchange->describe().find("a replica on every rank"), std::string::npos);
  EXPECT_TRUE(made.warnings.empty());
  const ExchangeMemory taken = made.exchange->memory();
  // 112 + 5008 floats twice; a rank alone sums nothing and keeps no buffer for it.
  EXPECT_EQ(taken.own_weights, 4u * 5120);
  EXPECT_EQ(taken.own - taken.own_buffers, 2 * 4u * 5120);
  EXPECT_EQ(taken.own_buffers, comm.size() > 1 ? 4u * 5000 : 0);
}

/// Each method of compression is told the same ranges, and what it keeps from step to step is kept.
void staged_sums_are_those_of_the_host(comm::Communicator& comm) {
  const compute::ParameterLayout layout = layout_of_counts({400, 77}, DType::f32);
  const std::size_t size = layout.gradient_size;
  std::vector<std::string> methods{"none"};
  for (const Compression& method : compressions()) methods.push_back(to_text(method));
  for (const std::string& method : methods) {
    const auto make = [&] {
      return make_gradient_sum(parse_compression(method), layout,
                               comm::open_world(comm, {{"rabenseifner"}}));
    };
    testing::LockedMemory memory;
    const compute::OwnedArray arena(memory, size, DType::f32);
    const auto plain = make();
    const auto staged = make_staged_sum(memory, size, DType::f32, make());
    EXPECT_EQ(staged->name(), plain->name());
    EXPECT_EQ(staged->volume({0, size}), plain->volume({0, size}));
    EXPECT_EQ(staged->memory(), plain->memory() + 4 * size);
    for (int step = 0; step < 3; ++step) {
      for (const Range range : {Range{0, 77}, Range{77, size}}) {
        std::vector<float> values(range.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = std::sin(static_cast<float>((i + 1) * static_cast<std::size_t>(step + 3) +
                                                  static_cast<std::size_t>(comm.rank())));
        }
        const Array part = arena.array().slice(range.begin, range.end);
        memory.write(std::as_bytes(std::span(values)), part.data);
        staged->sum(range, part);
        plain->sum(range, Array::of<float>(values));
        EXPECT_EQ(compute::read_numbers(memory, part),
                  std::vector<double>(values.begin(), values.end()))
            << method << " in step " << step;
      }
    }
  }
}

/// More than goes to the host in one piece, and no whole number of pieces.
void arrays_are_broadcast(comm::Communicator& comm) {
  const std::size_t size = 2 * compute::piece_elements(DType::f64) + 17;
  testing::LockedMemory memory;
  const compute::OwnedArray array(memory, size, DType::f64);
  std::vector<double> values(size);
  const int root = comm.size() - 1;
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = static_cast<double>(i % 10007) + (comm.rank() == root ? 0.5 : 0.25);
  }
  memory.write(std::as_bytes(std::span(values)), array.array().data);
  broadcast_array(comm, memory, array.array(), root);
  memory.read(array.array().data, std::as_writable_bytes(std::span(values)));
  for (std::size_t i = 0; i < size; ++i) {
    if (values[i] != static_cast<double>(i % 10007) + 0.5) FAIL() << values[i] << " at " << i;
  }
}

}  // namespace

std::vector<comm::CommCase> memory_cases() {
  return {{"memory_shared_ways_need_the_host", needs_host_memory},
          {"memory_automatic_takes_replicas", automatic_takes_replicas},
          {"memory_staged_sums_are_those_of_the_host", staged_sums_are_those_of_the_host},
          {"memory_arrays_are_broadcast", arrays_are_broadcast}};
}

}  // namespace cputrain::exchange
