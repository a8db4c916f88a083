// Images as the set's samples turn them and the request changes them, the same on any rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "compute/image_feed.h"
#include "core/error.h"
#include "datasets/loader/batch_loader.h"
#include "datasets/pixels/change.h"
#include "tests/datasets/loader/made_set.h"

namespace cputrain::datasets {
namespace {

constexpr const char* kEverything =
    "six,flip,vflip,rotate:20,shift:0.2,shear:10,zoom:0.2,crop:1,rand:2:9,colour:0.3,cutout:1";

TEST(Loader, AugmentationIsAFunctionOfSeedEpochAndSample) {
  const MadeSet made(40, {4, 4, 3});
  // What every sample looks like in an epoch, by sample.
  const auto images = [&](int ranks, std::size_t batch, int epoch, std::uint64_t seed,
                          int threads = 1) {
    std::vector<std::vector<std::uint8_t>> seen(40);
    for (int rank = 0; rank < ranks; ++rank) {
      const data::BatchPlan plan(40, batch, 3, rank, ranks);
      const auto source = make_batch_loader(
          made.set(), plan,
          {.seed = seed, .augment = data::parse_augment(kEverything), .threads = threads});
      source->seek(epoch, 0);
      for (std::size_t step = 0; step < plan.steps(); ++step) {
        for (int k = 0; k < plan.micro_batches(step); ++k) {
          const compute::MicroBatch& one = source->next();
          for (std::size_t i = 0; i < one.images.size(); ++i) {
            seen[MadeSet::index_of(one.samples[i])] = {one.images[i], one.images[i] + 48};
          }
        }
      }
    }
    return seen;
  };
  const auto base = images(1, 40, 2, 6);
  EXPECT_EQ(images(1, 40, 2, 6, 4), base);
  EXPECT_EQ(images(3, 7, 2, 6, 2), base);
  EXPECT_EQ(images(7, 40, 2, 6), base);
  EXPECT_NE(images(1, 40, 3, 6), base);
  EXPECT_NE(images(1, 40, 2, 7), base);
}

TEST(Loader, AMirroredSetIsThatOfItsAugmentationMirrored) {
  const MadeSet made(20, {4, 6, 3});
  data::BatchRequest request{.seed = 3, .augment = data::parse_augment("flip,crop:1")};
  const data::BatchPlan plan(20, 20, 20, 0, 1);
  const auto plain = make_batch_loader(made.set(), plan, request);
  request.mirror = true;
  const auto mirrored = make_batch_loader(made.set(), plan, request);
  const compute::MicroBatch &a = plain->next(), &b = mirrored->next();
  int flipped = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    Change change = choose_change(request.augment, made.set().image, 3, 0, a.samples[i]);
    flipped += change.flip;
    change.flip = !change.flip;
    std::vector<std::uint8_t> expected(made.set().image.size());
    change_image(made.set().pixels[MadeSet::index_of(a.samples[i])], made.set().image,
                 data::Turn::none, change, expected);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), b.images[i])) << i;
  }
  EXPECT_TRUE(flipped > 3 && flipped < 17);
}

TEST(Loader, CropsAreCutFromLargerImages) {
  const MadeSet made(9, {8, 8, 3});
  data::ImageSet set = made.set();
  set.image = {4, 4, 3};
  set.larger = 2;
  const data::BatchPlan plan(9, 9, 4, 0, 1);
  const data::BatchRequest request{.seed = 5,
                                   .augment = data::parse_augment("crop,flip"),
                                   .resize = data::Resize::bicubic,
                                   .threads = 1};
  const auto batches = make_batch_loader(set, plan, request);
  batches->seek(2, 0);
  const KeptImages images(set.image, 2, data::Resize::bicubic);
  std::vector<std::uint8_t> expected(set.image.size());
  std::size_t seen = 0;
  for (int k = 0; k < plan.micro_batches(0); ++k) {
    const compute::MicroBatch& batch = batches->next();
    for (std::size_t i = 0; i < batch.images.size(); ++i, ++seen) {
      const Change change = choose_change(request.augment, images, 5, 2, batch.samples[i]);
      change_image(set.pixels[MadeSet::index_of(batch.samples[i])], images, data::Turn::none,
                   change, expected);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), batch.images[i]));
    }
  }
  EXPECT_EQ(seen, 9u);
}

TEST(Loader, WithoutPrefetchingBatchesAreTheSame) {
  const MadeSet made(23, {4, 4, 3});
  const data::BatchPlan plan(23, 6, 4, 0, 1);
  data::BatchRequest request{.seed = 6, .augment = data::parse_augment(kEverything)};
  const auto ahead = make_batch_loader(made.set(), plan, request);
  request.prefetch = 0;
  const auto direct = make_batch_loader(made.set(), plan, request);
  const auto expect_same = [&](int batches) {
    for (int k = 0; k < batches; ++k) {
      const compute::MicroBatch &a = ahead->next(), &b = direct->next();
      ASSERT_TRUE(std::ranges::equal(a.labels, b.labels));
      ASSERT_TRUE(std::ranges::equal(a.samples, b.samples));
      for (std::size_t i = 0; i < a.samples.size(); ++i) {
        ASSERT_TRUE(std::equal(a.images[i], a.images[i] + 48, b.images[i])) << k << " " << i;
      }
    }
  };
  expect_same(20);  // two epochs and a part
  for (const auto& source : {&ahead, &direct}) (*source)->seek(5, 2);
  expect_same(9);
}

TEST(Loader, SamplesComeAsTheSetTurnsThem) {
  const MadeSet made(6, {2, 2, 3});
  data::ImageSet set = made.set();
  set.pixels.assign(6, made.set().pixels[0]);  // one image, six samples
  for (std::uint8_t turn = 0; turn < 6; ++turn) set.turns.push_back(static_cast<data::Turn>(turn));
  const auto source =
      make_batch_loader(set, data::BatchPlan(6, 6, 6, 0, 1), {.seed = 1, .shuffle = false});
  // The pixels of the image, row by row, in the order in which each sample shows them.
  const std::vector<std::vector<std::size_t>> order{{0, 1, 2, 3}, {2, 3, 0, 1}, {1, 0, 3, 2},
                                                    {1, 3, 0, 2}, {3, 2, 1, 0}, {2, 0, 3, 1}};
  const compute::MicroBatch& batch = source->next();
  EXPECT_EQ(batch.images[0], set.pixels[0]) << "no copy of what is not turned";
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t k = 0; k < 12; ++k) {
      EXPECT_EQ(batch.images[i][k], set.pixels[0][order[i][k / 3] * 3 + k % 3]) << i << " " << k;
    }
  }
}

TEST(Loader, RefusesWhatImagesOfThisShapeCannotHave) {
  const MadeSet made(4, {4, 6, 3});
  const auto make = [&](const char* augment) {
    make_batch_loader(made.set(), data::BatchPlan(4, 4, 4, 0, 1),
                      {.augment = data::parse_augment(augment)});
  };
  for (const char* augment : {"six", "cutout:4", "crop:4"}) {
    try {
      make(augment);
      ADD_FAILURE() << augment;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(std::string(error.what()).find("4x6"), std::string::npos);
    }
  }
  for (const char* augment : {"flip", "cutout:3", "crop:3"}) EXPECT_NO_THROW(make(augment));
}

/// A device, whose feed keeps what it was sent. It may fail once, as without memory for the moment.
struct Device final : compute::ImageFeeder {
  struct Feed final : compute::ImageFeed {
    explicit Feed(Device& of) : device(of) {}
    void keep(const std::function<const std::uint8_t*(std::size_t)>& bytes_of) override {
      for (std::size_t i = 0; i < device.size.kept; ++i) device.kept.push_back(bytes_of(i));
    }
    compute::StagedImages* stage(std::size_t slot, const compute::MicroBatch& batch,
                                 std::span<const compute::ImageMove> moves) override {
      if (std::exchange(device.fails, false)) fail(ExitCode::internal, "no room");
      EXPECT_LT(slot, device.size.slots);
      EXPECT_LE(batch.images.size(), device.size.images);
      device.moves.assign(moves.begin(), moves.end());
      return nullptr;
    }
    Device& device;
  };
  std::unique_ptr<compute::ImageFeed> make_feed(const compute::FeedSize& wanted) override {
    size = wanted;
    return std::make_unique<Feed>(*this);
  }
  compute::FeedBytes feed_bytes(const compute::FeedSize&) const override { return {}; }

  bool fails = false;
  compute::FeedSize size;
  std::vector<const std::uint8_t*> kept;  ///< once
  std::vector<compute::ImageMove> moves;  ///< of the last micro-batch
};

TEST(Loader, GoesOnBehindAFailure) {
  const MadeSet made(8, {2, 2, 3});
  Device device;
  device.fails = true;
  const auto source = make_batch_loader(made.set(), data::BatchPlan(8, 2, 2, 0, 1),
                                        {.shuffle = false, .feeder = &device});
  EXPECT_THROW(source->next(), Error);
  source->seek(0, 1);  // what lies behind the one that failed
  EXPECT_EQ(source->next().samples[0], made.set().samples[2]);
}

/// Samples 1 and 3 show one image in two ways.
TEST(Loader, ADeviceIsSentEachImageOnceAndItsMoves) {
  const MadeSet made(40, {4, 4, 3});
  data::ImageSet set = made.set();
  set.pixels[3] = set.pixels[1];
  set.turns.assign(40, data::Turn::none);
  set.turns[3] = data::Turn::by_90;
  std::vector<std::uint32_t> number{0, 1, 2, 1};  // of images
  for (std::uint32_t i = 3; i < 39; ++i) number.push_back(i);
  for (const bool on_device : {true, false}) {
    Device device;
    const data::BatchRequest request{.seed = 8,
                                     .augment = data::parse_augment("six,flip,crop:1"),
                                     .prefetch = 0,
                                     .feeder = &device,
                                     .on_device = on_device};
    const auto source = make_batch_loader(set, data::BatchPlan(40, 40, 18, 0, 1), request);
    EXPECT_EQ(device.size.images, 18u);
    EXPECT_EQ(device.size.kept, on_device ? 39u : 0u);
    ASSERT_EQ(device.kept.size(), device.size.kept);
    for (std::size_t i = 0; on_device && i < 40; ++i) {
      EXPECT_EQ(device.kept[number[i]], set.pixels[i]) << i;
    }
    for (int k = 0; k < 3; ++k) {
      const compute::MicroBatch& batch = source->next();
      ASSERT_EQ(device.moves.size(), batch.samples.size());
      for (std::uint32_t i = 0; i < batch.samples.size(); ++i) {
        const std::size_t index = MadeSet::index_of(batch.samples[i]);
        const Change change = choose_change(request.augment, set.image, 8, 0, batch.samples[i]);
        std::vector<std::uint8_t> expected(set.image.size()), moved(set.image.size());
        change_image(set.pixels[index], set.image, set.turns[index], change, expected);
        const compute::ImageMove& m = device.moves[i];
        EXPECT_EQ(m.source, on_device ? number[index] : i);
        for (int y = m.top; y < m.bottom; ++y) {
          for (int x = m.left; x < m.right; ++x) {
            const int from = m.first + y * m.down + x * m.across;
            std::copy_n(set.pixels[index] + 3 * from, 3, &moved[(y * 4u + x) * 3u]);
          }
        }
        EXPECT_EQ(moved, expected) << batch.samples[i];
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::datasets
