// Where libraries that are loaded with their first use are not there: files are refused by name,
// and what needs none is read.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "datasets/archives/archive_entry.h"
#include "datasets/datasets.h"
#include "datasets/decode/decode.h"
#include "tests/datasets/archives/made_archives.h"
#include "tests/datasets/decode/image_files.h"
#include "tests/datasets/open_fixture.h"

/// In the place of the loader's own: it finds no library.
void* dlopen(const char*, int) noexcept { return nullptr; }
char* dlerror() noexcept {
  static char words[] = "none in this test";
  return words;
}

namespace cputrain::datasets {
namespace {

class MissingLibraries : public OpenTest {};

TEST_F(MissingLibraries, HeicAndAvifAreRefusedAndOthersAreRead) {
  if (!is_built(image_file("heic"))) GTEST_SKIP() << "no libheif in this build";
  for (const auto& [file, format] : {std::pair{"heic", "HEIC"}, {"avif", "AVIF"}}) {
    const Decoded decoded = decode(image_file(file).bytes);
    EXPECT_EQ(decoded.result.status, data::ReadStatus::unsupported);
    const std::string& detail = decoded.result.detail;
    EXPECT_TRUE(detail.starts_with(std::string(format) + " needs libheif.so.")) << detail;
    EXPECT_NE(detail.find("cannot be loaded (none in this test)"), std::string::npos) << detail;
    EXPECT_NE(detail.find("Debian's libheif-dev"), std::string::npos) << detail;
    EXPECT_TRUE(detail.ends_with("or convert the image to JPEG")) << detail;
  }
  EXPECT_EQ(decode(image_).result.status, data::ReadStatus::ok);
}

TEST_F(MissingLibraries, TarArchivesAreRefusedAndZipArchivesAreRead) {
  if (archive_library().empty()) GTEST_SKIP() << "no libarchive in this build";
  const std::vector<ArchivedFile> files{{"x/cat/1.png", image_}, {"x/dog/1.png", image_}};
  write_bytes(folder_.path() / "a.tar", tar_of(files));
  write_bytes(folder_.path() / "a.zip", zip_of(files));
  const std::string text = error(path("a.tar"));
  EXPECT_NE(text.find("a.tar' is no zip archive, and any other needs libarchive.so."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("cannot be loaded (none in this test)"), std::string::npos) << text;
  EXPECT_NE(text.find("Debian's libarchive-dev"), std::string::npos) << text;
  EXPECT_NE(text.find("tar -xf " + path("a.tar")), std::string::npos) << text;
  EXPECT_EQ(open(path("a.zip"), 0).train.size(), 2u);
}

TEST_F(MissingLibraries, AreNamedAllTheSame) {
  std::string all;
  for (const std::string& name : data_libraries()) all += name + "\n";
  const bool reads_heif = is_built(image_file("heic"));
  EXPECT_EQ(all.find("libheif 1.") != std::string::npos, reads_heif) << all;
  EXPECT_EQ(all.find(" with libde265 1.") != std::string::npos, reads_heif) << all;
  EXPECT_EQ(all.find(" and dav1d 1.") != std::string::npos, reads_heif) << all;
  EXPECT_EQ(all.find("libarchive 3.") != std::string::npos, !archive_library().empty()) << all;
}

}  // namespace
}  // namespace cputrain::datasets
