#include "training/plan/image_place.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/refusal.h"

namespace cputrain::training {
namespace {

/// 1,000 images of 100x100 pixels, each with 96 bytes beside them, behind a head of 64 bytes.
constexpr ImageForm kForm{{100, 100, 3}};
constexpr std::size_t kEach = 30'000 + 96;
constexpr data::CacheSize kCache{.bytes = 64 + 1000 * kEach, .images = 1000, .beside_pixels = 96};

data::DataSource source_of(std::size_t train, std::size_t validation) {
  data::DataSource source;
  source.train.resize(train);
  source.validation.resize(validation);
  return source;
}

/// The message of a refusal; empty where there is none.
std::string refusal(const TrainingFlags& flags, std::size_t available) {
  return testing::refusal_of(ExitCode::usage, [&] {
    check_images_fit(flags, kForm, source_of(900, 100), kCache, available);
  });
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ImageMemory, WhatFitsIsNotRefused) {
  EXPECT_EQ(refusal({}, kCache.bytes), "");
  EXPECT_NO_THROW(check_images_fit({}, kForm, source_of(900, 100), kCache, std::nullopt));
}

TEST(ImageMemory, ARefusalNamesWhatWouldFit) {
  const std::string message = refusal({}, 64 + 500 * kEach);
  EXPECT_TRUE(holds(message, "1,000 images at 100x100 need 30.1 MB")) << message;
  EXPECT_TRUE(holds(message, "--limit-train 400 or --image-size 70")) << message;  // 100 / sqrt(2)
  EXPECT_FALSE(holds(refusal({}, 64 + 100 * kEach), "--limit-train")) << "none would be left";
}

TEST(ImageMemory, ATrainingCanReadAPackedFileInstead) {
  TrainingFlags flags;
  flags.program = "./cputrain";
  flags.data = "my photos/";
  flags.given = {{"data", "my photos/"}, {"lr", "0.1"}, {"exif", "ignore"}, {"balanced", "true"}};
  flags.switches = {"balanced"};
  const std::string message = refusal(flags, 1'000'000);
  EXPECT_TRUE(holds(message,
                    "./cputrain data pack 'my photos/' 'my photos.ctpack' --image-size 100 "
                    "--resize bilinear --exif ignore --balanced"))
      << message;
}

/// A packed file has no images to cut from.
TEST(ImageMemory, LargerImagesForCropsCountAndAreNotPacked) {
  const ImageForm form{.shape = {50, 50, 3}, .larger = 2};
  TrainingFlags flags;
  flags.data = "photos";
  try {
    check_images_fit(flags, form, source_of(900, 100), kCache, 64 + 500 * kEach);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_TRUE(holds(error.what(), "--limit-train 400 or --image-size 35")) << error.what();
    EXPECT_FALSE(holds(error.what(), "data pack")) << error.what();
  }
}

TEST(ImageMemory, AnEvaluationMayLookAtFewer) {
  TrainingFlags flags;
  flags.task = {.trains = false, .evaluates = true};
  const std::string message = refusal(flags, 64 + 500 * kEach);
  EXPECT_TRUE(holds(message, "--limit-val 500")) << message;
  for (const char* no : {"--image-size", "--limit-train", "data pack"}) {
    EXPECT_FALSE(holds(message, no)) << message;
  }
}

}  // namespace
}  // namespace cputrain::training
