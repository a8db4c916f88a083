// Images that are decoded while they are in use: the same pixels, batches and left-out files as of
// images that were all decoded before, whoever is slow or damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "backends/threads/threads_communicator.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "datasets/datasets.h"
#include "datasets/loader/cache_view.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

constexpr Shape kSmall{8, 8, 3};
constexpr std::size_t kCount = 60;

/// Images of one colour each, of which some are damaged, changed, or cannot be read until they are
/// let go.
class MadeImages final : public data::Dataset {
 public:
  explicit MadeImages(std::size_t count) : count_(count), classes_{"a", "b"} {}

  std::size_t size() const override { return count_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int label(std::size_t index) const override { return static_cast<int>(index % 2); }
  std::string name(std::size_t index) const override { return "made/" + std::to_string(index); }
  std::uint64_t fingerprint() const override { return 1; }
  data::SampleFacts inspect(std::size_t) const override { return {}; }

  data::ReadResult read(std::size_t index, Shape, const data::Resizing&,
                        std::span<std::uint8_t> dst) const override {
    {
      std::unique_lock lock(mutex_);
      if (index == held && !reached_) {
        reached_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return !held; });
      }
    }
    ++reads;
    if (gone) return {data::ReadStatus::unreadable, "made so"};
    if (index == changed) fail(ExitCode::data, "made/changed is another file by now");
    if (index == damaged) return {data::ReadStatus::truncated, "made so"};
    std::ranges::fill(dst, static_cast<std::uint8_t>(index));
    return {};
  }

  /// Until the first reader of the held image is at it, and waits.
  void wait_for_reader() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reached_; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held.reset();
    changed_.notify_all();
  }

  std::optional<std::size_t> held{}, damaged{}, changed{};
  std::atomic<bool> gone = false;  ///< all of them
  mutable std::atomic<std::size_t> reads = 0;

 private:
  std::size_t count_;
  std::vector<std::string> classes_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable bool reached_ = false;
};

void wait_for(const std::function<bool()>& true_at_last) {
  while (!true_at_last()) std::this_thread::yield();
}

class Filling : public ::testing::Test {
 protected:
  Filling() {
    auto made = std::make_unique<MadeImages>(kCount);
    made_ = made.get();
    source_.dataset = std::move(made);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      (i % 10 == 9 ? source_.validation : source_.train).push_back(i);
    }
  }

  data::DecodedData decode(comm::Communicator& comm, bool meanwhile,
                           std::vector<std::uint32_t> first = {}) const {
    return pipeline_.decode(source_,
                            {.image = kSmall, .threads = 1, .meanwhile = meanwhile, .first = first},
                            comm.node_memory());
  }
  /// Batches of two epochs, image by image.
  std::vector<Bytes> two_epochs(const data::DecodedData& data, int prefetch) const {
    const data::BatchPlan plan(source_.train.size(), 12, 5, 0, 1);
    const auto batches = pipeline_.batches(
        data.train, plan,
        {.seed = 3, .augment = data::parse_augment("flip,crop:2"), .prefetch = prefetch});
    std::vector<Bytes> seen;
    for (int epoch = 0; epoch < 2; ++epoch) {
      batches->seek(epoch, 0);
      for (std::size_t step = 0; step < plan.steps(); ++step) {
        for (int k = 0; k < plan.micro_batches(step); ++k) {
          for (const std::uint8_t* image : batches->next().images) {
            seen.emplace_back(image, image + kSmall.size());
          }
        }
      }
    }
    EXPECT_EQ(batches->failure(), "");
    return seen;
  }
  data::DecodedData finish(comm::Communicator& comm, const data::DecodedData& begun) const {
    return pipeline_.finish(source_, begun, {.image = kSmall, .threads = 1}, comm.node_memory());
  }

  data::DataPipeline pipeline_ = make_data_pipeline();
  data::DataSource source_;
  MadeImages* made_;
};

TEST_F(Filling, OfAllRanksEndsWithEveryImage) {
  for (const int ranks : {1, 3, 7}) {
    threads::run_ranks(ranks, [&](comm::Communicator& comm) {
      const data::DecodedData data = decode(comm, true);
      ASSERT_NE(data.filling, nullptr);
      EXPECT_EQ(data.train.samples, source_.train);
      EXPECT_EQ(data.validation.samples, source_.validation);
      wait_for([&] { return data.filling->complete(); });
      EXPECT_EQ(data.filling->damage(), "");
      for (const data::ImageSet* set : {&data.train, &data.validation}) {
        for (std::size_t i = 0; i < set->size(); ++i) {
          ASSERT_EQ(set->ready(i), set->pixels[i]);
          EXPECT_EQ(*set->ready(i), set->samples[i]);
        }
      }
      comm.barrier();
    });
  }
}

TEST_F(Filling, WaitsForNoOtherReader) {
  made_->held = 0;  // by the cache's only thread, as by a process that was stopped
  const auto comm = comm::make_solo();
  const data::DecodedData data = decode(*comm, true);
  made_->wait_for_reader();
  Bytes space(kSmall.size(), 255);
  EXPECT_EQ(data.train.ready(0), nullptr);
  EXPECT_EQ(data.train.pixels_of(0, space), space.data()) << "a copy";
  EXPECT_EQ(space, Bytes(kSmall.size(), 0));
  EXPECT_EQ(data.train.pixels_of(1, space), data.train.pixels[1]) << "into the cache";
  EXPECT_EQ(*data.train.pixels[1], 1);
  EXPECT_FALSE(data.filling->complete());
  made_->let_go();
  wait_for([&] { return data.filling->complete(); });
  EXPECT_EQ(data.train.pixels_of(0, space), data.train.pixels[0]);
}

TEST_F(Filling, BatchesAreThoseOfImagesDecodedBefore) {
  const auto comm = comm::make_solo();
  const std::vector<Bytes> expected = two_epochs(decode(*comm, false), 0);
  EXPECT_EQ(expected.size(), 2 * source_.train.size());
  for (const int prefetch : {0, 1}) {
    EXPECT_TRUE(two_epochs(decode(*comm, true), prefetch) == expected) << "prefetch " << prefetch;
  }
}

TEST_F(Filling, OfImagesThatAreNotKeptGivesTheSameBatches) {
  const auto comm = comm::make_solo();
  const std::vector<Bytes> expected = two_epochs(decode(*comm, false), 0);
  for (const std::size_t keep : {0, 17, 59, 60}) {
    for (const bool meanwhile : {false, true}) {
      data::DecodeRequest request{.image = kSmall, .threads = 1, .meanwhile = meanwhile};
      request.keep = keep;
      const data::DecodedData data = pipeline_.decode(source_, request, comm->node_memory());
      EXPECT_EQ(data.not_kept, kCount - keep);
      EXPECT_EQ(data.filling != nullptr, meanwhile || keep < kCount);
      EXPECT_EQ(data.bytes, keep * kSmall.size());
      EXPECT_EQ(data.train.judged, !meanwhile);
      for (const int prefetch : {0, 1}) {
        EXPECT_TRUE(two_epochs(data, prefetch) == expected) << keep << " kept";
      }
    }
  }
}

TEST_F(Filling, ImagesThatAreNotKeptMayFailAtAnyTime) {
  const auto comm = comm::make_solo();
  data::DecodeRequest request{.image = kSmall, .threads = 1};
  request.keep = 10;
  const data::DecodedData data = pipeline_.decode(source_, request, comm->node_memory());
  const data::BatchPlan plan(source_.train.size(), 54, 54, 0, 1);
  const auto batches = pipeline_.batches(data.train, plan, {.prefetch = 0});
  EXPECT_TRUE(batches->may_fail());
  EXPECT_FALSE(batches->filling()) << "all were read once";
  batches->seek(0, 0);
  batches->next();
  EXPECT_EQ(batches->failure(), "");
  made_->damaged = 31;
  batches->seek(1, 0);
  batches->next();
  EXPECT_NE(batches->failure().find("'made/31' cannot be read: truncated"), std::string::npos);
  EXPECT_TRUE(data.filling->has_changed());
}

/// So no epoch begins with a wait, and validation decodes nothing for naught.
TEST_F(Filling, WhatWasMadeAheadIsWhatTheNextEpochBeginsWith) {
  const auto comm = comm::make_solo();
  data::DecodeRequest request{.image = kSmall, .threads = 1};
  request.keep = 0;
  const data::DecodedData data = pipeline_.decode(source_, request, comm->node_memory());
  constexpr std::size_t kTogether = 27;  // a half of them
  const data::BatchPlan plan(source_.train.size(), kTogether, kTogether, 0, 1);
  for (const bool shuffle : {true, false}) {
    const data::BatchRequest wanted{.seed = 3, .shuffle = shuffle, .prefetch = 1};
    const auto direct =
        pipeline_.batches(data.train, plan, {.seed = 3, .shuffle = shuffle, .prefetch = 0});
    direct->seek(shuffle ? 1 : 0, 0);
    const std::span<const std::uint32_t> seen = direct->next().samples;
    const std::vector<std::uint32_t> expected(seen.begin(), seen.end());
    made_->reads = 0;
    const auto batches = pipeline_.batches(data.train, plan, wanted);
    batches->seek(0, 0);
    for (std::size_t step = 0; step < plan.steps(); ++step) batches->next();
    wait_for([&] { return made_->reads == 3 * kTogether; });
    made_->gone = true;
    batches->seek(shuffle ? 1 : 0, 0);
    const compute::MicroBatch& first = batches->next();
    EXPECT_EQ(batches->failure(), "") << "it was made when the files were still there";
    EXPECT_TRUE(std::ranges::equal(first.samples, expected));
    for (std::size_t i = 0; i < kTogether; ++i) EXPECT_EQ(*first.images[i], expected[i]);
    batches->seek(5, 0);
    batches->next();
    EXPECT_NE(batches->failure(), "") << "another one is made anew";
    made_->gone = false;
  }
}

/// It is no damage, which would leave the image out and begin anew.
TEST_F(Filling, AnImageThatWasWholeBeforeHasChanged) {
  const auto comm = comm::make_solo();
  data::DecodeRequest request{.image = kSmall, .threads = 1, .meanwhile = true, .first = {1, 2}};
  request.keep = 0;
  const data::DecodedData data = pipeline_.decode(source_, request, comm->node_memory());
  Bytes space(kSmall.size());
  EXPECT_EQ(data.train.pixels_of(1, space), space.data());
  EXPECT_FALSE(data.filling->has_changed());
  made_->damaged = 1;
  EXPECT_THROW(data.train.pixels_of(1, space), Error);
  EXPECT_TRUE(data.filling->has_changed());
  EXPECT_EQ(data.filling->damage(), "");
}

TEST_F(Filling, AFileOnDiskHoldsTheSameAndLeavesNothing) {
  const testing::TemporaryFolder folder;
  const auto comm = comm::make_solo();
  data::DecodeRequest request{.image = kSmall, .threads = 1};
  request.folder = folder.path().string();
  const data::DecodedData data = pipeline_.decode(source_, request, comm->node_memory());
  EXPECT_EQ(data.folder, request.folder);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(two_epochs(data, 1) == two_epochs(decode(*comm, false), 1));
}

TEST_F(Filling, ABatchSourceSettlesOnceAndTellsOfIt) {
  made_->held = 59;
  const auto comm = comm::make_solo();
  const data::DecodedData data = decode(*comm, true);
  int told = 0;
  const data::BatchPlan plan(source_.train.size(), 12, 5, 0, 1);
  const auto batches =
      pipeline_.batches(data.train, plan, {.prefetch = 0, .on_whole = [&] { ++told; }});
  made_->wait_for_reader();
  EXPECT_TRUE(batches->may_fail() && batches->filling() && !batches->complete());
  made_->let_go();
  wait_for([&] { return batches->complete(); });
  batches->settle();
  batches->settle();
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(batches->may_fail() || batches->filling());
}

TEST_F(Filling, DamageIsToldOnEveryRankAndLeftOutAsIfFoundBefore) {
  made_->damaged = 31;
  const auto solo = comm::make_solo();
  const data::DecodedData before = decode(*solo, false);
  ASSERT_EQ(before.bad.size(), 1u);
  for (const int ranks : {1, 2, 5}) {
    threads::run_ranks(ranks, [&](comm::Communicator& comm) {
      const data::DecodedData begun = decode(comm, true, {1, 2, 3});
      ASSERT_NE(begun.filling, nullptr);
      wait_for([&] { return !begun.filling->damage().empty(); });
      EXPECT_EQ(begun.filling->damage(),
                "'made/31' cannot be read: truncated (made so); look with 'cputrain data check'");
      Bytes space(kSmall.size());
      EXPECT_THROW(begun.train.pixels_of(28, space), Error);
      EXPECT_FALSE(begun.filling->has_changed());
      comm.barrier();
      const data::DecodedData rest = finish(comm, begun);
      EXPECT_EQ(rest.filling, nullptr);
      EXPECT_EQ(rest.train.samples, before.train.samples);
      EXPECT_EQ(rest.validation.samples, before.validation.samples);
      ASSERT_EQ(rest.bad.size(), 1u);
      EXPECT_EQ(rest.bad.front().name, "made/31");
      for (std::size_t i = 0; i < rest.train.size(); ++i) {
        EXPECT_EQ(*rest.train.pixels[i], rest.train.samples[i]);
      }
      comm.barrier();
    });
  }
}

TEST_F(Filling, DamageAmongTheFirstIsFoundBeforeIt) {
  made_->damaged = 31;
  threads::run_ranks(3, [&](comm::Communicator& comm) {
    const data::DecodedData data = decode(comm, true, {1, 31, 40});
    EXPECT_EQ(data.filling, nullptr);
    EXPECT_EQ(data.bad.size(), 1u);
  });
}

TEST_F(Filling, OfAllThatIsAskedForFirstNothingIsLeft) {
  std::vector<std::uint32_t> all(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) all[i] = i;
  EXPECT_EQ(decode(*comm::make_solo(), true, all).filling, nullptr);
}

TEST_F(Filling, AFileThatIsAnotherOneByNowIsAnError) {
  made_->changed = 20;
  for (const bool asked : {false, true}) {
    if (asked) made_->held = 0;  // its own thread comes no further
    const auto comm = comm::make_solo();
    const data::DecodedData data = decode(*comm, true);
    if (asked) {
      made_->wait_for_reader();
      data.filling->read_rest();
    } else {
      wait_for([&] { return !data.filling->damage().empty(); });
    }
    EXPECT_EQ(data.filling->damage(), "made/changed is another file by now");
    EXPECT_TRUE(data.filling->has_changed());
    EXPECT_FALSE(data.filling->complete());
    if (asked) made_->let_go();
    EXPECT_THROW(finish(*comm, data), Error);
  }
}

TEST(CacheView, KnowsTheFirstDamageInOrderWhicheverWasFoundFirst) {
  const CachedForms forms{{kSmall}};
  const auto comm = comm::make_solo();
  const auto block = comm->node_memory().allocate(CacheView::bytes(9, 9, forms));
  const CacheView view(*block, 9, 9, forms);
  EXPECT_FALSE(view.damaged());
  for (const std::size_t position : {5, 7, 4, 8, 1}) {
    const std::size_t first = std::min(position, view.damaged().value_or(position));
    view.store(position, {data::ReadStatus::truncated, "made so"}, data::Flaw::none);
    EXPECT_EQ(view.damaged(), first);
  }
  view.store(0, {}, data::Flaw::none);
  EXPECT_EQ(view.damaged(), 1u);
}

TEST_F(Filling, FlawsAreThoseOfImagesDecodedBefore) {
  const auto comm = comm::make_solo();
  const data::DecodedData data = decode(*comm, true);
  wait_for([&] { return data.filling->complete(); });
  const std::vector<std::string> flaws = data.filling->flaws();
  EXPECT_FALSE(flaws.empty()) << "all are of one colour";
  EXPECT_EQ(flaws, decode(*comm, false).flaws);
}

}  // namespace
}  // namespace cputrain::datasets
