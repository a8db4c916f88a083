// Mixed images and weights of classes: the same at any number of ranks, and what is asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "datasets/loader/batch_loader.h"
#include "datasets/pixels/mix.h"
#include "tests/datasets/loader/made_set.h"

namespace cputrain::datasets {
namespace {

constexpr Shape kImage{4, 4, 3};
const std::vector<double> kWeights{1, 2, 0.5, 3, 1.25};  // by label

/// What an image of a step is given as.
struct Given {
  std::vector<std::uint8_t> pixels;
  std::int32_t label;
  compute::MixedLabel mixed;
  bool operator==(const Given&) const = default;
};
using Step = std::map<std::size_t, Given>;  ///< by index in the set

std::vector<Step> steps_of(const MadeSet& made, const data::BatchRequest& request, int epoch,
                           int ranks, int micro_batch, const data::PlanOptions& options = {}) {
  std::vector<Step> steps;
  for (int rank = 0; rank < ranks; ++rank) {
    const data::BatchPlan plan(made.set().size(), 10, micro_batch, rank, ranks, options);
    const auto source = make_batch_loader(made.set(), plan, request);
    source->seek(epoch, 0);
    steps.resize(plan.steps());
    for (std::size_t step = 0; step < plan.steps(); ++step) {
      for (int k = 0; k < plan.micro_batches(step); ++k) {
        const compute::MicroBatch& batch = source->next();
        EXPECT_EQ(batch.mixed.size(), batch.images.size());
        for (std::size_t i = 0; i < batch.images.size(); ++i) {
          const std::uint8_t* pixels = batch.images[i];
          steps[step][MadeSet::index_of(batch.samples[i])] = {
              {pixels, pixels + kImage.size()}, batch.labels[i], batch.mixed[i]};
        }
      }
    }
  }
  return steps;
}

data::BatchRequest asked(const std::string& augment, std::vector<double> weights = {}) {
  return {.seed = 6, .augment = data::parse_augment(augment), .class_weights = std::move(weights)};
}

TEST(Mixing, IsTheSameAtAnyNumberOfRanksAndThreads) {
  const MadeSet made(37, kImage);
  for (const char* augment : {"mixup:0.4", "cutmix:1", "flip,mixup:0.4,cutmix:1"}) {
    data::BatchRequest request = asked(augment, kWeights);
    const auto base = steps_of(made, request, 2, 1, 16);
    EXPECT_EQ(steps_of(made, request, 2, 2, 16), base) << augment;
    EXPECT_EQ(steps_of(made, request, 2, 3, 2), base) << augment;
    EXPECT_EQ(steps_of(made, request, 2, 7, 1), base) << augment;
    EXPECT_EQ(steps_of(made, request, 2, 3, 2, {.sharding = data::Sharding::dealt}), base);
    EXPECT_EQ(steps_of(made, request, 2, 1, 16, {.sharding = data::Sharding::strided}), base);
    request.threads = 3;
    request.prefetch = 0;
    EXPECT_EQ(steps_of(made, request, 2, 1, 4), base) << augment;
    EXPECT_NE(steps_of(made, request, 3, 1, 16), base) << augment;
  }
}

/// As by hand, from the order of the epoch.
TEST(Mixing, TakesThePartnerAsItIsChangedItself) {
  const MadeSet made(80, kImage);
  const int epoch = 1;
  const auto flipped = steps_of(made, asked("flip", std::vector<double>(5, 1)), epoch, 1, 4);
  std::map<std::size_t, std::vector<std::uint8_t>> alone;
  for (const Step& step : flipped) {
    for (const auto& [index, given] : step) alone[index] = given.pixels;
  }
  const auto order = data::epoch_order(80, 6, epoch);
  for (const data::Augment& mixes : {data::Augment{.mixup = 0.7}, data::Augment{.cutmix = 0.3}}) {
    std::size_t place = 0;
    int swapped = 0, halves = 0;
    for (const Step& step : steps_of(made, asked("flip," + data::to_text(mixes)), epoch, 1, 4)) {
      for (std::size_t i = 0; i < step.size(); ++i, ++place) {
        const std::size_t own = order[place], other = order[partner_place(place, 80, 6, epoch)];
        const Given& given = step.at(own);
        const Mix mix = choose_mix(mixes, kImage, 6, epoch, made.set().samples[own]);
        std::vector<std::uint8_t> expected(kImage.size());
        mix_images(alone[own].data(), alone[other].data(), kImage, mix, expected);
        EXPECT_EQ(given.pixels, expected);
        const double share = mix.partner_share(kImage);
        const bool swaps = share > 0.5;  // of halves, the image's own label stays
        swapped += swaps;
        halves += share == 0.5 && made.set().labels[own] != made.set().labels[other];
        EXPECT_EQ(given.label, made.set().labels[swaps ? other : own]);
        EXPECT_EQ(given.mixed.other, made.set().labels[swaps ? own : other]);
        EXPECT_FLOAT_EQ(given.mixed.own, static_cast<float>(std::max(share, 1 - share)));
        EXPECT_FLOAT_EQ(given.mixed.others, static_cast<float>(std::min(share, 1 - share)));
      }
    }
    EXPECT_GT(swapped, 3);
    if (mixes.cutmix > 0) {
      EXPECT_GT(halves, 0);
    }
  }
}

/// PyTorch's CrossEntropyLoss(weight): the sum of w * loss over the sum of w, while a step divides
/// by its images.
TEST(ClassWeights, AreOverTheirMeanInTheStep) {
  const MadeSet made(37, kImage);
  for (const Step& step : steps_of(made, asked("none", kWeights), 0, 2, 3)) {
    double sum = 0;
    for (const auto& [index, given] : step) sum += kWeights[index % 5];
    for (const auto& [index, given] : step) {
      EXPECT_FLOAT_EQ(given.mixed.own, static_cast<float>(kWeights[index % 5] *
                                                          static_cast<double>(step.size()) / sum));
      EXPECT_EQ(given.mixed.others, 0);
    }
  }
}

TEST(ClassWeights, OfMixedImagesAreThoseOfTheirShares) {
  const MadeSet made(37, kImage);
  const auto plain = steps_of(made, asked("cutmix:1"), 0, 1, 10);
  const auto weighed = steps_of(made, asked("cutmix:1", kWeights), 0, 1, 10);
  for (std::size_t step = 0; step < plain.size(); ++step) {
    double sum = 0, all = 0;
    for (const auto& [index, given] : plain[step]) {
      sum += given.mixed.own * kWeights[static_cast<std::size_t>(given.label)] +
             given.mixed.others * kWeights[static_cast<std::size_t>(given.mixed.other)];
    }
    for (const auto& [index, given] : weighed[step]) {
      const compute::MixedLabel& before = plain[step].at(index).mixed;
      const double scale = static_cast<double>(plain[step].size()) / sum;
      EXPECT_NEAR(given.mixed.own,
                  before.own * kWeights[static_cast<std::size_t>(given.label)] * scale, 1e-6);
      all += given.mixed.own + given.mixed.others;
    }
    EXPECT_NEAR(all, static_cast<double>(plain[step].size()), 1e-5);
  }
}

/// Ranks that draw the same images are weighed by what all of them draw.
TEST(ClassWeights, OfAllRanksWhereTheyReadTheSameOrder) {
  const MadeSet made(40, kImage);
  double sum = 0;
  std::size_t images = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const data::BatchPlan plan(40, 10, 5, rank, 2, {.sharding = data::Sharding::generator});
    const auto source = make_batch_loader(made.set(), plan, asked("none", kWeights));
    const compute::MicroBatch& batch = source->next();
    for (const compute::MixedLabel& label : batch.mixed) sum += static_cast<double>(label.own);
    images += batch.images.size();
  }
  EXPECT_NEAR(sum, static_cast<double>(images), 1e-5);
}

}  // namespace
}  // namespace cputrain::datasets
