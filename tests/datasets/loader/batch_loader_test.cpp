// Every sample once an epoch, whatever the ranks and the batch; and a loader that can be left at
// any time.
#include "datasets/loader/batch_loader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "core/error.h"
#include "tests/datasets/loader/made_set.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

struct Layout {
  int ranks;
  std::size_t samples, global_batch;
  int micro_batch;
  data::PlanOptions options{};
};

/// The samples of an epoch in the order in which a single rank would have seen them: step by step,
/// in each step rank by rank.
std::vector<std::uint32_t> samples_of_epoch(const data::ImageSet& set, const Layout& layout,
                                            const data::BatchRequest& request, int epoch) {
  std::vector<std::vector<std::uint32_t>> by_step;
  for (int rank = 0; rank < layout.ranks; ++rank) {
    const data::BatchPlan whole(layout.samples, layout.global_batch, layout.micro_batch, rank,
                                layout.ranks, layout.options);
    const data::BatchPlan plan = whole.in_epoch(epoch);
    const auto source = make_batch_loader(set, whole, request);
    source->seek(epoch, 0);
    by_step.resize(plan.steps());
    for (std::size_t step = 0; step < plan.steps(); ++step) {
      for (int k = 0; k < plan.micro_batches(step); ++k) {
        const compute::MicroBatch& batch = source->next();
        EXPECT_EQ(batch.images.size(), batch.samples.size());
        EXPECT_EQ(batch.labels.size(), batch.samples.size());
        EXPECT_EQ(batch.images.size(), plan.piece(step, k).size());
        by_step[step].insert(by_step[step].end(), batch.samples.begin(), batch.samples.end());
      }
    }
  }
  std::vector<std::uint32_t> all;
  for (const auto& step : by_step) all.insert(all.end(), step.begin(), step.end());
  return all;
}

TEST(Loader, EverySampleOnceAnEpochInOneOrderAtAnyRankCount) {
  const MadeSet made(203, {2, 2, 3});
  for (const std::size_t batch : {1u, 5u, 32u, 101u, 203u, 1024u}) {
    for (const int epoch : {0, 3}) {
      const data::BatchRequest request{.seed = 9, .threads = 1};
      const auto alone = samples_of_epoch(made.set(), {1, 203, batch, 16}, request, epoch);
      auto sorted = alone;
      std::ranges::sort(sorted);
      EXPECT_EQ(sorted, made.set().samples);
      for (const int ranks : {2, 3, 7, 96}) {
        if (batch == 1 && ranks == 96) continue;  // 203 steps on 96 loaders tell nothing new
        EXPECT_EQ(samples_of_epoch(made.set(), {ranks, 203, batch, 3}, request, epoch), alone)
            << ranks << " ranks, batch " << batch;
      }
    }
  }
}

TEST(Loader, StridedRanksHaveEveryNthImageOfTheSameOrder) {
  const MadeSet made(203, {2, 2, 3});
  const auto sorted_steps = [&](int ranks, const data::PlanOptions& options, int epoch) {
    auto all = samples_of_epoch(made.set(), {ranks, 203, 20, 3, options}, {.seed = 9}, epoch);
    for (std::size_t begin = 0; begin < all.size(); begin += 20) {
      std::sort(all.begin() + begin, all.begin() + std::min<std::size_t>(all.size(), begin + 20));
    }
    return all;
  };
  for (const int ranks : {1, 2, 3, 7, 96}) {
    EXPECT_EQ(sorted_steps(ranks, {.sharding = data::Sharding::strided}, 2),
              sorted_steps(1, {}, 2));
  }
}

TEST(Loader, GeneratorsDrawTheSameImagesOnEveryRank) {
  const MadeSet made(100, {1, 1, 3});
  const auto all = samples_of_epoch(
      made.set(), {2, 100, 8, 4, {.sharding = data::Sharding::generator}}, {.seed = 3}, 0);
  ASSERT_EQ(all.size(), 96u);
  EXPECT_EQ(std::set<std::uint32_t>(all.begin(), all.end()).size(), 48u);
  for (std::size_t step = 0; step < 12; ++step) {
    EXPECT_TRUE(
        std::equal(all.begin() + 8 * step, all.begin() + 8 * step + 4, all.begin() + 8 * step + 4));
  }
}

TEST(Loader, TheBatchGrowsBetweenEpochs) {
  const MadeSet made(50, {1, 1, 3});
  const data::BatchPlan plan(50, 8, 64, 0, 1, {.accumulate = 2, .growth = {{1, 3}}});
  for (const bool shuffle : {true, false}) {
    const auto source = make_batch_loader(made.set(), plan, {.seed = 4, .shuffle = shuffle});
    const auto expect_sizes = [&](const std::vector<int>& sizes) {
      for (const int size : sizes) EXPECT_EQ(source->next().size(), size);
    };
    source->seek(0, 0);
    expect_sizes({8, 8, 8, 8, 8, 8, 2, 24, 24, 2, 24});
    source->seek(1, 1);
    expect_sizes({2, 24});
    source->seek(0, 3);
    expect_sizes({2});
    source->seek(0, 0);  // what comes next begins an epoch of other batches
    expect_sizes({8});
  }
}

TEST(Loader, OrderHangsOnSeedAndEpoch) {
  const MadeSet made(50, {1, 1, 3});
  const Layout layout{1, 50, 7, 7};
  const auto order = [&](std::uint64_t seed, int epoch, bool shuffle = true) {
    return samples_of_epoch(made.set(), layout, {.seed = seed, .shuffle = shuffle}, epoch);
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_EQ(order(1, 5, false), made.set().samples);
}

TEST(Loader, ImagesLabelsAndSamplesBelongTogetherAndNoPixelIsCopied) {
  const MadeSet made(23, {3, 2, 3});
  const auto source = make_batch_loader(made.set(), data::BatchPlan(23, 6, 4, 0, 1), {.seed = 2});
  for (int call = 0; call < 20; ++call) {
    const compute::MicroBatch& batch = source->next();
    for (std::size_t i = 0; i < batch.images.size(); ++i) {
      const std::size_t index = MadeSet::index_of(batch.samples[i]);
      EXPECT_EQ(batch.labels[i], made.set().labels[index]);
      EXPECT_EQ(batch.images[i], made.set().pixels[index]);
    }
  }
}

TEST(Loader, GoesOnIntoTheNextEpochAndSeeksAnywhere) {
  const MadeSet made(10, {1, 1, 3});
  const data::BatchPlan plan(10, 4, 2, 0, 1);
  const auto source = make_batch_loader(made.set(), plan, {.seed = 4});
  const auto expect_piece = [&](int epoch, std::size_t step, int k) {
    const auto order = data::epoch_order(10, 4, epoch);
    const data::StridedRange piece = plan.piece(step, k);
    const compute::MicroBatch& batch = source->next();
    ASSERT_EQ(batch.samples.size(), piece.size());
    for (std::size_t i = 0; i < piece.size(); ++i) {
      EXPECT_EQ(MadeSet::index_of(batch.samples[i]), order[piece.at(i)]);
    }
  };
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (std::size_t step = 0; step < plan.steps(); ++step) {
      for (int k = 0; k < plan.micro_batches(step); ++k) expect_piece(epoch, step, k);
    }
  }
  source->seek(7, 2), expect_piece(7, 2, 0), expect_piece(8, 0, 0), expect_piece(8, 0, 1);
  source->seek(0, 1), source->seek(1, 1), expect_piece(1, 1, 0);
  for (int i = 0; i < 300; ++i) {
    source->seek(i, 1);
    if (i % 3 != 0) expect_piece(i, 1, 0);
    if (i % 3 == 2) expect_piece(i, 1, 1);
  }
}

TEST(Loader, NothingToDoGivesEmptyBatches) {
  const MadeSet none(0, {4, 4, 3}), two(2, {4, 4, 3});
  const auto empty = make_batch_loader(none.set(), data::BatchPlan(0, 8, 4, 0, 2), {});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(empty->next().size(), 0);
  // Two images on three ranks: somebody has none.
  int images = 0;
  for (int rank = 0; rank < 3; ++rank) {
    images += make_batch_loader(two.set(), data::BatchPlan(2, 8, 4, rank, 3), {})->next().size();
  }
  EXPECT_EQ(images, 2);
}

TEST(Loader, MayBeDestroyedAtAnyTime) {
  const MadeSet made(64, {16, 16, 3});
  for (int i = 0; i < 200; ++i) {
    const auto source =
        make_batch_loader(made.set(), data::BatchPlan(64, 16, 8, 0, 1), {.augment = {.six = true}});
    for (int k = 0; k < i % 5; ++k) source->next();
    if (i % 7 == 0) source->seek(i, 2);
    if (i % 11 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

TEST(Loader, WithoutPrefetchingABatchIsMadeWhenItIsAskedFor) {
  data::ImageSet set = MadeSet(4, {1, 1, 3}).set();
  const auto source =
      make_batch_loader(set, data::BatchPlan(4, 2, 2, 0, 1), {.shuffle = false, .prefetch = 0});
  for (const std::int32_t label : {70, 80}) {
    std::ranges::fill(set.labels, label);  // nobody has looked at them yet
    EXPECT_TRUE(std::ranges::equal(source->next().labels, std::vector{label, label}));
  }
}

/// A file of `bytes` bytes that is mapped and not in memory.
class ColdFile {
 public:
  explicit ColdFile(std::size_t bytes) {
    std::string path = folder_.path() / "XXXXXX";
    const int file = ::mkstemp(path.data());
    const std::vector<std::uint8_t> content(bytes, 7);
    EXPECT_EQ(::write(file, content.data(), bytes), static_cast<ssize_t>(bytes));
    ::fsync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    void* const start = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    bytes_ = {static_cast<std::uint8_t*>(start), bytes};
    ::close(file);
  }
  ~ColdFile() { ::munmap(bytes_.data(), bytes_.size()); }

  const std::uint8_t* at(std::size_t i) const { return &bytes_[i]; }
  /// Whether all pages are in memory that some of the bytes from `i` on lie in.
  bool is_there(std::size_t i, std::size_t bytes) const {
    std::vector<unsigned char> pages((bytes + 4095) / 4096);
    EXPECT_EQ(::mincore(&bytes_[i], bytes, pages.data()), 0);
    return std::ranges::all_of(pages, [](unsigned char page) { return page & 1; });
  }

 private:
  testing::TemporaryFolder folder_;
  std::span<std::uint8_t> bytes_;
};

TEST(Loader, ImagesInAFileOnDiskAreInMemoryBeforeAStepReadsThem) {
  constexpr Shape kImage{64, 64, 3};  // 3 pages
  constexpr std::size_t kImages = 400;
  const ColdFile file(kImages * kImage.size());
  const auto is_there = [&](std::size_t i) {
    return file.is_there(i * kImage.size(), kImage.size());
  };
  data::ImageSet set;
  set.image = kImage;
  set.on_disk = true;
  std::size_t there = 0;
  for (std::size_t i = 0; i < kImages; ++i) {
    set.pixels.push_back(file.at(i * kImage.size()));
    set.labels.push_back(0);
    set.samples.push_back(static_cast<std::uint32_t>(i));
    there += is_there(i);
  }
  if (there > 0) GTEST_SKIP() << "this file system keeps pages in memory";
  for (const int prefetch : {0, 1}) {
    const auto source = make_batch_loader(set, data::BatchPlan(kImages, 16, 16, 0, 1),
                                          {.seed = 5, .prefetch = prefetch});
    source->seek(prefetch, 0);
    for (const std::uint32_t sample : source->next().samples) EXPECT_TRUE(is_there(sample));
  }
}

}  // namespace
}  // namespace cputrain::datasets
