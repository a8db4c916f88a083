#include "system/files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace cputrain::system {
namespace {

/// The folder above a link is not the one above what the link names.
TEST(AbsolutePath, FollowsLinksBeforeItGoesUp) {
  const testing::TemporaryFolder folder;
  const auto root = std::filesystem::canonical(folder.path());
  std::filesystem::create_directories(root / "far/away");
  std::filesystem::create_directory_symlink(root / "far/away", root / "link");
  std::filesystem::create_directory_symlink("loop", root / "loop");
  EXPECT_EQ(absolute_path((root / "link/../x").string()), (root / "far/x").string());
  EXPECT_EQ(absolute_path((root / "link").string()), (root / "far/away").string());
  EXPECT_EQ(absolute_path((root / "none/../x").string()), (root / "x").string());
  EXPECT_EQ(absolute_path((root / "loop/x").string()), (root / "loop/x").string());
  EXPECT_EQ(absolute_path(""), "");
}

}  // namespace
}  // namespace cputrain::system
