#include "data/dataset.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace cputrain::data {
namespace {

TEST(DataSpec, PathsBeginAtTheRootAndWordsStay) {
  const std::string here = std::filesystem::current_path().string();
  for (const auto& [spec, absolute] : std::vector<std::pair<std::string, std::string>>{
           {"synthetic", "synthetic"},
           {"synthetic:60", "synthetic:60"},
           {"d", here + "/d"},
           {"./d/../e", here + "/e"},
           {"/a/b", "/a/b"},
           {"list.csv", here + "/list.csv"},
           {"f.ctpack", here + "/f.ctpack"},
           {"cifar10:c", "cifar10:" + here + "/c"},
           {"cifar100:/c", "cifar100:/c"},
           {"idx:i", "idx:" + here + "/i"},
           {"inat:i", "inat:" + here + "/i"},
           {"coco:a.json", "coco:" + here + "/a.json"},
           {"coco:a.json,/b.json", "coco:" + here + "/a.json,/b.json"},
           {"other:d", here + "/other:d"},  // no word of ours: a folder's name
           {"a,b", here + "/a,b"}}) {
    EXPECT_EQ(absolute_data_spec(spec), absolute);
    EXPECT_EQ(absolute_data_spec(absolute), absolute) << "nothing to do a second time";
  }
}

/// As in system/files.h, for every file of a list.
TEST(DataSpec, PathsOfAListFollowLinksBeforeTheyGoUp) {
  const testing::TemporaryFolder folder;
  const auto root = std::filesystem::canonical(folder.path());
  std::filesystem::create_directories(root / "far/away");
  std::filesystem::create_directory_symlink(root / "far/away", root / "link");
  EXPECT_EQ(absolute_data_spec("coco:" + (root / "link/../a.json").string() + "," +
                               (root / "link/b.json").string()),
            "coco:" + (root / "far/a.json").string() + "," + (root / "far/away/b.json").string());
}

}  // namespace
}  // namespace cputrain::data
