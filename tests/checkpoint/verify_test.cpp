#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "tests/checkpoint/made_up.h"
#include "tests/support/in_a_child.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::checkpoint {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kAll{kModelName, kOptimizerName, kRanksName, kStateName,
                                    kManifestName};

/// A whole checkpoint and a copy of it that may be damaged.
class Damaged : public ::testing::Test {
 protected:
  Damaged() : whole_(make(folder_.path(), 7, bytes_of(3000))) {
    for (const auto& name : kAll) texts_.push_back(text_of(whole_ / name));
  }

  /// The fault with this text in the place of the file's; the file is mended behind it.
  std::string with(std::size_t file, const std::string& text) const {
    put(whole_ / kAll[file], text);
    std::string fault = fault_of(whole_);
    put(whole_ / kAll[file], texts_[file]);
    return fault;
  }

  void expect_named(const std::string& fault, const std::string& name) const {
    EXPECT_TRUE(fault.starts_with(name + " ")) << name << ": " << fault;
  }

  testing::TemporaryFolder folder_;
  fs::path whole_;
  std::vector<std::string> texts_;
};

TEST_F(Damaged, NothingIsWrongWithAWholeOne) { EXPECT_EQ(fault_of(whole_), ""); }

TEST_F(Damaged, EveryFileThatIsMissingIsNamed) {
  for (const auto& name : kAll) {
    fs::rename(whole_ / name, folder_.path() / "away");
    EXPECT_EQ(fault_of(whole_), name + " is missing");
    fs::rename(folder_.path() / "away", whole_ / name);
  }
  EXPECT_EQ(fault_of(folder_.path() / "none"), "MANIFEST is missing");
}

TEST_F(Damaged, EveryCutIsFound) {
  for (std::size_t file = 0; file < kAll.size(); ++file) {
    const std::string& text = texts_[file];
    for (std::size_t i = 0; i < 64; ++i) {
      expect_named(with(file, text.substr(0, text.size() * i / 64)), kAll[file]);
    }
    expect_named(with(file, text + "x"), kAll[file]);
  }
  EXPECT_EQ(fault_of(whole_), "");
  EXPECT_EQ(with(1, ""), "optimizer.safetensors is 0 bytes long, not 5,000");
}

TEST_F(Damaged, AFlippedBitInEveryKilobyteIsFound) {
  for (std::size_t file = 0; file + 1 < kAll.size(); ++file) {
    for (std::size_t start = 0; start < texts_[file].size(); start += 1000) {
      const std::size_t place = std::min(start + start / 10 % 1000, texts_[file].size() - 1);
      std::string flipped = texts_[file];
      flipped[place] = static_cast<char>(flipped[place] ^ 1 << (start / 1000 % 8));
      const std::string fault = with(file, flipped);
      expect_named(fault, kAll[file]);
      EXPECT_NE(fault.find("checksum"), std::string::npos) << fault;
    }
  }
}

TEST_F(Damaged, EveryByteOfTheManifestCounts) {
  for (std::size_t place = 0; place < texts_.back().size(); ++place) {
    std::string flipped = texts_.back();
    flipped[place] = static_cast<char>(~flipped[place]);
    expect_named(with(kAll.size() - 1, flipped), kManifestName);
  }
}

// None of them is opened in a way that waits or does anything.
TEST_F(Damaged, WhatIsNoFileIsRefused) {
  const auto socket_at = [](const fs::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(descriptor);
  };
  const fs::path away = folder_.path() / "away";
  for (const auto& name : kAll) {
    const fs::path path = whole_ / name;
    const auto refused = [&] {
      EXPECT_EQ(fault_of(whole_), name + " is no regular file");
      fs::remove(path);
    };
    fs::rename(path, away);
    fs::create_symlink(away, path);  // of a file with the right bytes
    refused();
    fs::create_symlink("nowhere", path);
    refused();
    fs::create_symlink("/dev/zero", path);
    refused();
    fs::create_directory(path);
    refused();
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    refused();
    if (path.string().size() < sizeof(sockaddr_un::sun_path)) {
      socket_at(path);
      refused();
    }
    fs::create_hard_link(away, path);
    EXPECT_EQ(fault_of(whole_), "");
    fs::rename(away, path);  // of one file: nothing happens
    fs::remove(away);
  }
}

TEST_F(Damaged, FilesOfOthersAreNotLookedAt) {
  put(whole_ / "notes.txt", "mine");
  ASSERT_EQ(::mkfifo((whole_ / "pipe").c_str(), 0600), 0);
  fs::create_directory(whole_ / "folder");
  EXPECT_EQ(fault_of(whole_), "");
}

// Whoever reads a checkpoint would take them.
TEST_F(Damaged, FilesOfACheckpointMustBeInTheList) {
  put(whole_ / kBestName, "what nobody has checked");
  EXPECT_EQ(fault_of(whole_), "MANIFEST does not name best.safetensors");
  fs::remove(whole_ / kBestName);
  auto files = parse_manifest(texts_.back());
  std::erase_if(files, [](const ManifestFile& file) { return file.name == kStateName; });
  fs::remove(whole_ / kStateName);
  put(whole_ / kManifestName, manifest_text(files));
  EXPECT_EQ(fault_of(whole_), "MANIFEST does not name state.json");
}

TEST_F(Damaged, AFileThatMayNotBeReadIsNamed) {
  fs::permissions(whole_ / kStateName, fs::perms::none);
  fs::permissions(folder_.path(), fs::perms::all);
  const int code = testing::in_a_child([&] {  // root may read everything
    if (::geteuid() == 0 && ::seteuid(65534) != 0) return 3;
    return fault_of(whole_) == "state.json cannot be read: Permission denied" ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(Damaged, AHugeManifestIsNotRead) {
  fs::resize_file(whole_ / kManifestName, std::uintmax_t{1} << 40);
  EXPECT_TRUE(fault_of(whole_).starts_with("MANIFEST is larger than ")) << fault_of(whole_);
}

}  // namespace
}  // namespace cputrain::checkpoint
