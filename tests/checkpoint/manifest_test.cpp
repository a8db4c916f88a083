#include "checkpoint/manifest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "core/hash.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::checkpoint {
namespace {

const std::vector<ManifestFile> kFiles{{"model.safetensors", 52871940, 0x0f3a99c2},
                                       {"state.json", 0, 0},
                                       {"a-b_c.1", UINT64_MAX, UINT32_MAX}};

/// These lines with their checksum, as somebody writes it who knows the format.
std::string sealed(const std::string& lines) {
  return lines + fmt::format("checksum {:08x}\n", crc32c(lines));
}

/// What is wrong with a text; empty where it is taken.
std::string wrong(const std::string& text) {
  try {
    parse_manifest(text);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
}

TEST(Manifest, IsTextAndComesBack) {
  const std::string text = manifest_text(kFiles);
  EXPECT_EQ(text, sealed("cputrain checkpoint 1\n"
                         "0f3a99c2 52871940 model.safetensors\n"
                         "00000000 0 state.json\n"
                         "ffffffff 18446744073709551615 a-b_c.1\n"));
  const auto files = parse_manifest(text);
  ASSERT_EQ(files.size(), kFiles.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(files[i].name, kFiles[i].name);
    EXPECT_EQ(files[i].size, kFiles[i].size);
    EXPECT_EQ(files[i].checksum, kFiles[i].checksum);
  }
  EXPECT_TRUE(parse_manifest(manifest_text({})).empty());
}

TEST(Manifest, ChecksumIsOfAllOfALargeFile) {
  const testing::TemporaryFolder folder;
  const std::string text(3'000'001, 'x');
  std::ofstream(folder.path() / "large") << text;
  EXPECT_EQ(checksum_of(system::RegularFile(folder.path() / "large")), crc32c(text));
}

TEST(Manifest, EveryFlippedBitAndEveryCutIsFound) {
  const std::string text = manifest_text(kFiles);
  for (std::size_t place = 0; place < text.size(); ++place) {
    EXPECT_NE(wrong(text.substr(0, place)), "") << place;
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = text;
      flipped[place] = static_cast<char>(flipped[place] ^ 1 << bit);
      EXPECT_NE(wrong(flipped), "") << place << " " << bit;
    }
  }
  EXPECT_NE(wrong(text + "\n"), "");
  EXPECT_NE(wrong(text + text), "");
}

TEST(Manifest, NamesAreThoseOfFilesInTheFolder) {
  for (const char* name : {"", ".", "..", ".hidden", "../x", "/etc/passwd", "a/b", "a b", "-x",
                           "_x", "x\t", "\xc3\xa4", "a\\b"}) {
    EXPECT_FALSE(is_manifest_name(name)) << name;
    const std::string line = fmt::format("00000000 1 {}\n", name);
    EXPECT_NE(wrong(sealed("cputrain checkpoint 1\n" + line)), "") << name;
  }
  EXPECT_TRUE(is_manifest_name(std::string(kMostNameBytes, 'x')));
  EXPECT_FALSE(is_manifest_name(std::string(kMostNameBytes + 1, 'x')));
  EXPECT_FALSE(is_manifest_name(std::string_view("a\0b", 3)));
}

TEST(Manifest, SaysWhatIsWrong) {
  const std::string first = "cputrain checkpoint 1\n", file = "00000000 1 a\n";
  const auto says = [](const std::string& text, const std::string& words) {
    EXPECT_NE(wrong(text).find(words), std::string::npos) << wrong(text) << " | " << words;
  };
  says("", "cut");
  says(first + file, "cut");
  says(first + file + "checksum 00000000\n", "checksum that it says");
  says(sealed("cputrain checkpoint 2\n" + file), "another version");
  says(sealed("something else\n"), "not that of a checkpoint");
  says(sealed(first + file + file), "names a twice");
  says(sealed(first + "00000000 1\n"), "line 2 is not");
  says(sealed(first + file + "\n"), "line 3 is not");
  says(sealed(first + "00000000 -1 a\n"), "line 2 is not");
  says(sealed(first + "00000000 18446744073709551616 a\n"), "line 2 is not");
  says(sealed(first + "100000000 1 a\n"), "line 2 is not");
  says(sealed(first + "0000000g 1 a\n"), "line 2 is not");
  says(sealed(first + "00000000 01 a\n"), "as this program writes it");
  says(sealed(first + "0 1 a\n"), "as this program writes it");
  says(sealed(first + "0000000A 1 a\n"), "as this program writes it");
  says(sealed(first + "00000000 1 a"), "as this program writes it");
  std::string many = first;
  for (std::size_t i = 0; i <= kMostFiles; ++i) many += fmt::format("00000000 1 f{}\n", i);
  says(sealed(many), "too many");
  says(sealed(first + std::string(kMostManifestBytes, 'x')), "longer");
}

}  // namespace
}  // namespace cputrain::checkpoint
