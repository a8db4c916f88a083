// Six samples of each image, as the potato chips program makes them.
#include "datasets/pixels/expand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "comm/communicator.h"
#include "datasets/datasets.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::datasets {
namespace {

using Pixels = std::vector<std::uint8_t>;

/// Rows of an image of side n as lists, turned in the words of the post: written with loops over
/// rows and columns, without the formulas of the code under test.
Pixels by_hand(const Pixels& src, std::size_t n, std::size_t kind) {
  Pixels dst;
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      std::size_t from_row = row, from_column = column;
      if (kind == 1) from_row = n - 1 - row;                        // top to bottom
      if (kind == 2) from_column = n - 1 - column;                  // left to right
      if (kind == 3) from_row = column, from_column = n - 1 - row;  // by 90 degrees
      if (kind == 4) from_row = n - 1 - row, from_column = n - 1 - column;
      if (kind == 5) from_row = n - 1 - column, from_column = row;
      for (std::size_t c = 0; c < 3; ++c) dst.push_back(src[(from_row * n + from_column) * 3 + c]);
    }
  }
  return dst;
}

/// Chips as published: names with spaces, Train beside Test.
class Chips : public ::testing::Test {
 protected:
  static constexpr int kSide = 10;
  Chips() {
    for (const std::string part : {"Train", "Test"}) {
      const int count = part == "Train" ? 10 : 4;
      for (const std::string kind : {"Defective", "Non-Defective"}) {
        for (int i = 0; i < count; ++i) {
          Image image = smooth_image(20, 20);
          for (auto& value : image.rgb) value = static_cast<std::uint8_t>(value - made_);
          ++made_;
          write_bytes(folder_.path() / kRoot / part / kind / (std::to_string(i) + " a.png"),
                      png_of(image));
        }
      }
    }
  }
  data::DataSource open(data::Expand expand, const std::string& below = "",
                        double split = 0.2) const {
    return pipeline_.open({.spec = (folder_.path() / kRoot / below).string(),
                           .validation_split = split,
                           .seed = 3,
                           .expand = expand});
  }

  static constexpr const char* kRoot = "Pepsico RnD Potato Lab Dataset";
  testing::TemporaryFolder folder_;
  data::DataPipeline pipeline_ = make_data_pipeline();
  int made_ = 0;
};

TEST_F(Chips, SixExactImagesOfEachOriginal) {
  const data::DataSource plain = open(data::Expand::none), source = open(data::Expand::six);
  EXPECT_EQ(plain.train.size(), 20u);
  ASSERT_EQ(source.train.size(), 120u);
  ASSERT_EQ(source.validation.size(), 48u) << "the Test folder is expanded, too";
  const Shape image{kSide, kSide, 3};
  const auto comm = comm::make_solo();
  const data::DecodedData data = pipeline_.decode(source, {image, 1, {}}, comm->node_memory());
  EXPECT_EQ(data.bytes, 28 * image.size()) << "each original is decoded and kept once";
  // Through the loader, as training sees them.
  const data::BatchPlan plan(120, 7, 7, 0, 1);
  const auto batches = pipeline_.batches(data.train, plan, {.seed = 9});
  std::map<std::uint32_t, Pixels> seen;
  for (std::size_t step = 0; step < plan.steps(); ++step) {
    const compute::MicroBatch& batch = batches->next();
    for (std::size_t i = 0; i < batch.images.size(); ++i) {
      seen[batch.samples[i]] = {batch.images[i], batch.images[i] + image.size()};
      EXPECT_EQ(batch.labels[i], plain.dataset->label(batch.samples[i] / 6));
    }
  }
  ASSERT_EQ(seen.size(), 120u);
  Pixels original(image.size());
  for (const std::uint32_t sample : plain.train) {
    plain.dataset->read(sample, image, data::Resize::bilinear, original);
    std::set<std::string> different;
    for (std::uint32_t kind = 0; kind < 6; ++kind) {
      EXPECT_EQ(seen[sample * 6 + kind], by_hand(original, kSide, kind)) << sample << " " << kind;
      const Pixels& one = seen[sample * 6 + kind];
      different.emplace(one.begin(), one.end());
    }
    EXPECT_EQ(different.size(), 6u);
  }
}

TEST_F(Chips, ReadGivesTheSameAsTheLoader) {
  const data::DataSource plain = open(data::Expand::none), source = open(data::Expand::six);
  const Shape image{kSide, kSide, 3};
  Pixels original(image.size()), turned(image.size());
  plain.dataset->read(4, image, data::Resize::nearest, original);
  for (std::uint32_t kind = 0; kind < 6; ++kind) {
    source.dataset->read(24 + kind, image, data::Resize::nearest, turned);
    EXPECT_EQ(turned, by_hand(original, kSide, kind));
    EXPECT_EQ(source.dataset->view(24 + kind).image, 24u);
    EXPECT_EQ(static_cast<std::uint32_t>(source.dataset->view(24 + kind).turn), kind);
  }
  EXPECT_TRUE(source.dataset->name(26).ends_with("4 a.png (flipped left to right)"));
  EXPECT_NE(source.dataset->fingerprint(), plain.dataset->fingerprint());
}

std::set<std::uint32_t> originals(const std::vector<std::uint32_t>& samples) {
  std::set<std::uint32_t> result;
  for (const std::uint32_t sample : samples) result.insert(sample / 6);
  return result;
}

TEST_F(Chips, NoOriginalIsInBothPartsUnlessAskedFor) {
  const auto both = [](const data::DataSource& source) {
    const auto train = originals(source.train), validation = originals(source.validation);
    std::vector<std::uint32_t> common;
    std::ranges::set_intersection(train, validation, std::back_inserter(common));
    return common.size();
  };
  const data::DataSource clean = open(data::Expand::six, "Train"),
                         leaky = open(data::Expand::six_leaky, "Train");
  EXPECT_EQ(clean.train.size() + clean.validation.size(), 120u);
  EXPECT_EQ(clean.validation.size(), 24u);
  EXPECT_EQ(leaky.validation.size(), 24u);
  EXPECT_EQ(both(clean), 0u);
  EXPECT_GT(both(leaky), 5u);
  EXPECT_EQ(leaky.warnings.size(), 1u);
  EXPECT_TRUE(clean.warnings.empty());
  EXPECT_EQ(clean.description.find("Warning"), std::string::npos);
  EXPECT_EQ(pipeline_.check(clean, 1, {}).leaks.size(), 0u);
  EXPECT_EQ(pipeline_.check(leaky, 1, {}).leaks.size(), both(leaky));
  EXPECT_EQ(pipeline_.check(leaky, 1, {}).samples, 20u) << "each image is looked at once";
  EXPECT_EQ(both(open(data::Expand::six_leaky)), 0u) << "a part of its own cannot leak";
  EXPECT_EQ(originals(clean.validation), [&] {
    const data::DataSource plain = open(data::Expand::none, "Train");
    return std::set(plain.validation.begin(), plain.validation.end());
  }());
}

TEST_F(Chips, LimitsCountSamples) {
  const data::DataSource source = pipeline_.open({.spec = (folder_.path() / kRoot).string(),
                                                  .limit_train = 50,
                                                  .limit_validation = 6,
                                                  .expand = data::Expand::six});
  EXPECT_EQ(source.train.size(), 50u);
  EXPECT_EQ(source.validation.size(), 6u);
}

TEST_F(Chips, ADamagedOriginalIsNamedOnceAndAllSixAreLeftOut) {
  write_bytes(folder_.path() / kRoot / "Train/Defective/3 a.png", bytes_of("x"));
  const data::DataSource source = open(data::Expand::six);
  const auto comm = comm::make_solo();
  const data::DecodedData data =
      pipeline_.decode(source, {{kSide, kSide, 3}, 1, {}}, comm->node_memory());
  EXPECT_EQ(data.train.size(), 114u);
  ASSERT_EQ(data.bad.size(), 1u);
  EXPECT_TRUE(data.bad[0].name.ends_with("3 a.png"));
}

}  // namespace
}  // namespace cputrain::datasets
