// Where the images of a training lie: in closed forms of what memory has left, and of what disks
// have.
#include "training/plan/image_place.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "comm/communicator.h"
#include "core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::training {
namespace {

constexpr ImageForm kSmallForm{{100, 100, 3}};
constexpr std::size_t kSmallImage = 30'000;
/// Images that no disk has room for: 1,000 of 3.3 TB each.
constexpr ImageForm kHugeForm{{1 << 20, 1 << 20, 3}};
constexpr std::size_t kHuge = std::size_t{3} << 40;

data::CacheSize cache_for(std::size_t each) {
  return {.bytes = 64 + 1000 * (each + 96), .images = 1000, .beside_pixels = 96};
}

class Places : public ::testing::Test {
 protected:
  Places() : session_{.services = services_, .communicator = comm::make_solo(), .quiet = true} {
    session_.plan.ranks.push_back({.rank = 0, .host = "here"});
    if (const char* now = ::getenv("TMPDIR")) before_ = now;
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
  }
  ~Places() override { before_ ? ::setenv("TMPDIR", before_->c_str(), 1) : ::unsetenv("TMPDIR"); }

  /// A host whose rank needs 1,000 bytes.
  static TrainingMemory memory_with(std::size_t available) {
    return {.capacities = {{.host = "here", .ranks = {0}, .available = available}},
            .ranks = {{.weights = 1000}},
            .shared = {}};
  }
  ImagePlace place(ImageCache cache, const ImageForm& form, TrainingMemory& memory,
                   bool all_needed = false) const {
    TrainingFlags flags;
    flags.cache = cache;
    return place_images(session_, flags, form, cache_for(form.shape.size()), all_needed, memory);
  }
  std::string refusal(ImageCache cache, bool all_needed) const {
    TrainingMemory memory = memory_with(1'000'000);
    return testing::refusal_of(ExitCode::usage,
                               [&] { place(cache, kHugeForm, memory, all_needed); });
  }

  testing::TemporaryFolder folder_;

 private:
  const Services services_{};
  std::optional<std::string> before_;
  Session session_;
};

TEST_F(Places, ADiskWithRoomComesFirst) {
  for (const ImageCache cache : {ImageCache::automatic, ImageCache::disk}) {
    TrainingMemory memory = memory_with(1'000'000);
    const ImagePlace chosen = place(cache, kSmallForm, memory);
    EXPECT_EQ(chosen.folders, std::vector<std::string>{folder_.path().string()});
    EXPECT_FALSE(chosen.keep);
    EXPECT_EQ(memory.shared.file, cache_for(kSmallImage).bytes);
    EXPECT_EQ(memory.shared.cache, 0u);
  }
}

TEST_F(Places, NoneIsNone) {
  TrainingMemory memory = memory_with(std::size_t{1} << 40);
  const ImagePlace chosen = place(ImageCache::none, kSmallForm, memory);
  EXPECT_EQ(chosen.keep, 0u);
  EXPECT_TRUE(chosen.folders.empty());
  EXPECT_EQ(memory.shared.cache, 64 + 1000 * 96u) << "what is known of each image";
}

/// 40 images fit beside the training, so 30 are kept, but for what is known of each.
TEST_F(Places, WithoutADiskThreeQuartersOfWhatIsLeftAreFilled) {
  TrainingMemory memory = memory_with(1000 + 40 * kHuge + 4 * 96'000 / 3);
  const ImagePlace chosen = place(ImageCache::automatic, kHugeForm, memory);
  EXPECT_EQ(chosen.keep, 30u);
  EXPECT_TRUE(chosen.folders.empty());
  EXPECT_EQ(memory.shared.cache, 64 + 1000 * 96 + 30 * kHuge);
  EXPECT_EQ(memory.shared.file, 0u);
}

TEST_F(Places, TheTightestHostCounts) {
  TrainingMemory memory = memory_with(1000 + 100 * kHuge);
  memory.capacities.push_back({.host = "small", .ranks = {1}, .available = 1000 + 9 * kHuge});
  memory.ranks.push_back({.weights = 1000});
  EXPECT_EQ(place(ImageCache::automatic, kHugeForm, memory).keep, 6u);  // 6.75, less 96 kB
  memory.capacities.back().available = 999;
  EXPECT_EQ(place(ImageCache::automatic, kHugeForm, memory).keep, 0u);
}

TEST_F(Places, ADiskThatIsNeededAndHasNoRoomIsRefusedWithTheReason) {
  const std::string text = refusal(ImageCache::disk, false);
  EXPECT_NE(
      text.find("no room for 3.3e+03 TB of decoded images on disk (--cache disk; host here: " +
                folder_.path().string() + " has "),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("TMPDIR"), std::string::npos) << text;
  EXPECT_NE(refusal(ImageCache::automatic, true), "") << "a device is to have all of them";
  EXPECT_EQ(refusal(ImageCache::automatic, false), "");
}

}  // namespace
}  // namespace cputrain::training
