#include "compute/executor/memory_plan.h"

#include <gtest/gtest.h>

#include "core/random/random.h"

namespace cputrain::compute {
namespace {

struct Life {
  MemoryPlan::Block block;
  std::size_t bytes;
  int from, until;
};

TEST(MemoryPlan, BlocksThatLiveTogetherNeverOverlap) {
  for (std::uint32_t round = 0; round < 50; ++round) {
    const RandomStream stream(round, Purpose::noise);
    MemoryPlan plan;
    std::vector<Life> lives;
    for (std::uint32_t i = 0; i < 40; ++i) {
      const auto words = stream.at(i);
      const auto from = static_cast<int>(below(words[0], 30));
      const int until = from + static_cast<int>(below(words[1], 10));
      const std::size_t bytes = 1 + below(words[2], 100'000);
      const auto block = plan.add(bytes);
      plan.use(block, until);
      plan.use(block, from);
      lives.push_back({block, bytes, from, until});
    }
    plan.place();
    for (const Life& a : lives) {
      EXPECT_EQ(plan.offset(a.block) % MemoryPlan::kAlignment, 0u);
      EXPECT_LE(plan.offset(a.block) + a.bytes, plan.peak());
      for (const Life& b : lives) {
        if (a.block == b.block || a.until < b.from || b.until < a.from) continue;
        const bool apart = plan.offset(a.block) + a.bytes <= plan.offset(b.block) ||
                           plan.offset(b.block) + b.bytes <= plan.offset(a.block);
        EXPECT_TRUE(apart) << "round " << round;
      }
    }
  }
}

TEST(MemoryPlan, BlocksOneAfterAnotherShareOnePlace) {
  MemoryPlan plan;
  for (int time = 0; time < 10; ++time) plan.add(640, time);
  plan.place();
  EXPECT_EQ(plan.peak(), 640u);
}

TEST(MemoryPlan, AChainNeedsTwoNeighboursAtATime) {
  // Each map lives while it is written and while the next one is made from it.
  MemoryPlan plan;
  for (int time = 0; time < 8; ++time) plan.use(plan.add(1024, time), time + 1);
  plan.place();
  EXPECT_EQ(plan.peak(), 2048u);
}

TEST(MemoryPlan, WhatIsNeverUsedTakesNothing) {
  MemoryPlan plan;
  plan.add(1 << 20);
  plan.add(64, 3);
  plan.place();
  EXPECT_EQ(plan.peak(), 64u);
}

}  // namespace
}  // namespace cputrain::compute
