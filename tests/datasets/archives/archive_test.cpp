// Archives give the data set that the same files give in a folder.
#include <gtest/gtest.h>

#include <fstream>

#include "datasets/archives/archive_entry.h"
#include "datasets/archives/archive_spec.h"
#include "tests/datasets/archives/made_archives.h"
#include "tests/datasets/open_fixture.h"
#include "tests/support/refusal.h"

namespace cputrain::datasets {
namespace {

using Names = std::vector<std::string>;

class Archives : public OpenTest {
 protected:
  /// A tree with much that is not read, and a name that sorts otherwise with its folder's '/'.
  static std::vector<ArchivedFile> photos() {
    std::vector<ArchivedFile> files;
    for (const char* name :
         {"photos/dog/b.PNG", "photos/dog/a.png", "photos/cat/deep/1.png", "photos/cat/9.png",
          "photos/cat/notes.txt", "photos/cat/.2.png", "photos/cat/._9.png", "photos/cat-2/1.png",
          "photos/cat-2/2.png", "photos/cat/\xC3\xA9.png", "photos/readme.md", "photos/.git/1.png",
          "__MACOSX/photos/dog/1.png", "licence.txt"}) {
      const int side = 4 + static_cast<int>(files.size());
      files.push_back({name, png_of(smooth_image(side, 5))});
    }
    return files;
  }

  static std::vector<ArchivedFile> deflated(std::vector<ArchivedFile> files) {
    for (ArchivedFile& file : files) file.deflated = true;
    return files;
  }

  void write(const std::string& name, const Bytes& bytes) const {
    write_bytes(folder_.path() / name, bytes);
  }

  /// The same files below a folder of the disk.
  void lay_out(const std::string& folder, const std::vector<ArchivedFile>& files) const {
    for (const ArchivedFile& file : files) write(folder + "/" + file.name, file.content);
  }

  static void expect_same(const data::DataSource& a, const data::DataSource& b) {
    ASSERT_EQ(a.dataset->size(), b.dataset->size());
    EXPECT_EQ(a.dataset->classes(), b.dataset->classes());
    EXPECT_EQ(a.dataset->fingerprint(), b.dataset->fingerprint());
    EXPECT_EQ(a.train, b.train);
    EXPECT_EQ(a.validation, b.validation);
    const Shape shape{8, 8, 3};
    for (std::size_t i = 0; i < a.dataset->size(); ++i) {
      EXPECT_EQ(a.dataset->label(i), b.dataset->label(i));
      EXPECT_EQ(a.dataset->content(i), b.dataset->content(i)) << a.dataset->name(i);
      EXPECT_TRUE(a.dataset->content(i).has_value()) << a.dataset->name(i);
      EXPECT_EQ(a.dataset->file(i), b.dataset->file(i));
      Bytes left(shape.size()), right(shape.size(), 1);
      const auto status = a.dataset->read(i, shape, data::Resize::bilinear, left).status;
      EXPECT_EQ(status, b.dataset->read(i, shape, data::Resize::bilinear, right).status);
      EXPECT_EQ(status, data::ReadStatus::ok);
      EXPECT_EQ(left, right);
    }
  }
};

bool reads_tar() { return !archive_library().empty(); }

TEST_F(Archives, AreTheFolderThatTheyHold) {
  lay_out("disk", photos());
  const data::DataSource folder = open(path("disk/photos"), 0.3);
  ASSERT_EQ(folder.dataset->size(), 7u);
  std::vector<std::pair<std::string, Bytes>> archives{{"a.zip", zip_of(photos())},
                                                      {"b.ZIP", zip_of(deflated(photos()))},
                                                      {"c.zip", zip64_of(photos())}};
  if (reads_tar()) {
    archives.emplace_back("d.tar", tar_of(photos()));
    archives.emplace_back("e.tar.gz", gzip_of(tar_of(photos())));
    archives.emplace_back("f.tgz", gzip_of(tar_of(photos())));
  }
  for (const auto& [name, bytes] : archives) {
    SCOPED_TRACE(name);
    write(name, bytes);
    const data::DataSource source = open(path(name), 0.3);
    expect_same(source, folder);
    Names left_out = unread(folder);
    left_out.push_back("licence.txt: text");
    std::ranges::sort(left_out);
    EXPECT_EQ(unread(source), left_out);
    EXPECT_EQ(below(source.dataset->name(0)), name + "/photos/cat/9.png");
    expect_same(open(path(name + "/photos"), 0.3), folder);
    expect_same(open(path(name + "/photos/"), 0.3), folder);
  }
}

TEST_F(Archives, WithoutAFolderAroundAndWithDotsBefore) {
  std::vector<ArchivedFile> files;
  for (const char* name : {"./", "./cat/", "./cat/1.png", "./dog//2.png", "dog/./3.png", "cow/"}) {
    files.push_back({name, std::string_view(name).ends_with('/') ? Bytes{} : image_});
  }
  write("a.zip", zip_of(files));
  EXPECT_NE(error(path("a.zip")).find("class 'cow' (its folder holds nothing)"), std::string::npos)
      << error(path("a.zip"));
  files.pop_back();
  write("a.zip", zip_of(files));
  EXPECT_EQ(names(open(path("a.zip"), 0)),
            (Names{"a.zip/cat/1.png cat", "a.zip/dog/2.png dog", "a.zip/dog/3.png dog"}));
}

TEST_F(Archives, PartsAndLabelsInNamesAsInFolders) {
  write("a.zip", zip_of({{"x/train/cat/1.png", image_},
                         {"x/train/dog/2.png", image_},
                         {"x/val/dog/3.png", image_}}));
  const data::DataSource parts = open(path("a.zip"));
  EXPECT_EQ(part(parts, parts.validation), Names{"a.zip/x/val/dog/3.png"});
  write("b.zip", zip_of({{"train/cat.1.png", image_}, {"train/dog.1.png", image_}}));
  EXPECT_EQ(open(path("b.zip")).dataset->classes(), (Names{"cat", "dog"}));
}

TEST_F(Archives, AClassWithImagesIsNoFolderAround) {
  write("a.zip", zip_of({{"cat/1.png", image_}, {"cat/2.png", image_}}));
  const data::DataSource source =
      open_data({.spec = path("a.zip"), .validation_split = 0, .to_evaluate = true});
  EXPECT_EQ(source.dataset->classes(), Names{"cat"});
}

TEST_F(Archives, FoldersThatAreNotThereAreRefused) {
  write("a.zip", zip_of({{"x/cat/1.png", image_}, {"x/dog/1.png", image_}}));
  EXPECT_NE(error(path("a.zip/y")).find("has no folder 'y' (beside it are: 'x')"),
            std::string::npos);
  EXPECT_NE(error(path("b.zip")).find("does not exist"), std::string::npos);
}

TEST_F(Archives, ShardsAreOneTree) {
  lay_out("disk", photos());
  const auto files = photos();
  const auto pieces = [&](std::size_t first) {
    std::vector<ArchivedFile> some{{"photos/", {}}};  // in both
    for (std::size_t i = first; i < files.size(); i += 2) some.push_back(files[i]);
    return some;
  };
  write("s-09.zip", zip_of(pieces(0)));
  write("s-10.zip", zip_of(deflated(pieces(1))));
  const data::DataSource source = open(path("s-{09..10}.zip"), 0.3);
  expect_same(source, open(path("disk/photos"), 0.3));
  EXPECT_EQ(below(source.dataset->name(0)), "s-10.zip/photos/cat/9.png");
  const std::string text = error(path("s-{09..11}.zip"));
  EXPECT_NE(text.find("s-11.zip' cannot be read: No such file"), std::string::npos) << text;
}

TEST_F(Archives, RangesAreWrittenAsInTheShell) {
  const auto archives = [](const std::string& text) {
    const auto spec = parse_archive_spec(text);
    return spec ? spec->archives : Names{};
  };
  EXPECT_EQ(archives("a/s-{008..011}.tar"),
            (Names{"a/s-008.tar", "a/s-009.tar", "a/s-010.tar", "a/s-011.tar"}));
  EXPECT_EQ(archives("s{9..10}.tar.gz/x"), (Names{"s9.tar.gz", "s10.tar.gz"}));
  EXPECT_EQ(parse_archive_spec("s{9..10}.tar.gz/x")->inner, "x");
  EXPECT_EQ(archives("{0..0}.zip"), Names{"0.zip"});
  for (const char* other : {"s-{a..b}.tar", "s-{1..2}.csv", "s-{1.2}.tar", "s-}1..2{.tar",
                            "s-{1..}.tar", "s-{12345678901..2}.tar", "none.tar", ""}) {
    EXPECT_EQ(archives(other), Names{}) << other;
  }
  for (const char* wrong : {"s-{2..1}.tar", "s-{0..100000}.tar"}) {
    testing::refused(ExitCode::data, [&] { parse_archive_spec(wrong); });
  }
}

TEST_F(Archives, LabelsOfWebDataset) {
  const std::vector<ArchivedFile> one{{"a.png", image_},           {"a.cls", bytes_of("10")},
                                      {"a.json", bytes_of("{}")},  {"b.png", image_},
                                      {"b.cls", bytes_of(" 2\n")}, {"b.seg.png", image_}};
  const std::vector<ArchivedFile> other{{"x/a.png", image_},
                                        {"x/a.cls", bytes_of("02")},
                                        {"a.png", image_},
                                        {"a.cls", bytes_of("0")}};
  write("s-0.zip", zip_of(one));
  write("s-1.zip", zip_of(deflated(other)));
  const data::DataSource alone = open(path("s-0.zip"), 0);
  EXPECT_EQ(names(alone), (Names{"s-0.zip/a.png 10", "s-0.zip/b.png 2"}));
  EXPECT_EQ(unread(alone), (Names{"a.json: text", "b.seg.png: no label"}));
  const data::DataSource both = open(path("s-{0..1}.zip"), 0);
  EXPECT_EQ(names(both),
            (Names{"s-1.zip/a.png 0", "s-0.zip/a.png 10", "s-0.zip/b.png 2", "s-1.zip/x/a.png 2"}));
  Bytes pixels(48);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(both.dataset->read(i, {4, 4, 3}, data::Resize::bilinear, pixels).status,
              data::ReadStatus::ok);
  }
  for (const char* wrong : {"", "cat", "-1", "1 2", "99999999999"}) {
    write("w.zip", zip_of({{"a.png", image_}, {"a.cls", bytes_of(wrong)}}));
    const std::string text = error(path("w.zip"));
    EXPECT_NE(text.find("w.zip/a.cls' "), std::string::npos) << text;
    EXPECT_NE(text.find("where the number of a class belongs"), std::string::npos) << wrong;
  }
}

/// Programs of Windows write '\\' between names, and say that they are of there.
TEST_F(Archives, FoldersAreKnownHoweverTheirNamesAreJoined) {
  std::vector<ArchivedFile> files;
  for (const char* name : {"set\\", "set\\cat\\", "set\\cat\\1.png", "set\\dog\\2.png"}) {
    files.push_back({name, std::string_view(name).ends_with('\\') ? Bytes{} : image_});
  }
  for (const int system : {0, 6, 10, 11, 14}) {
    for (ArchivedFile& file : files) file.system = static_cast<std::uint8_t>(system);
    write("a.zip", zip_of(files));
    EXPECT_EQ(names(open(path("a.zip"), 0)),
              (Names{"a.zip/set/cat/1.png cat", "a.zip/set/dog/2.png dog"}))
        << system;
  }
  // Elsewhere it is a letter of a name.
  for (const char* name : {"cat/a\\b.png", "dog/2.png"}) files.push_back({name, image_});
  files.erase(files.begin(), files.end() - 2);
  write("a.zip", zip_of(files));
  EXPECT_EQ(names(open(path("a.zip"), 0)),
            (Names{"a.zip/cat/a\\b.png cat", "a.zip/dog/2.png dog"}));
}

TEST_F(Archives, AFileOfLabelsWithoutAnImageIsNone) {
  write("a.zip",
        zip_of({{"cat/1.png", image_}, {"dog/1.png", image_}, {"cat/article.cls", image_}}));
  EXPECT_EQ(open(path("a.zip")).dataset->classes(), (Names{"cat", "dog"}));
}

TEST_F(Archives, FilesThatAreNoImagesAreCounted) {
  ArchivedFile link{"dog/link.png", bytes_of("1.png")}, device{"dog/device.png"};
  link.mode = 0120777;
  device.mode = 020644;
  link.type = '2';
  device.type = '3';
  const std::vector<ArchivedFile> files{{"cat/1.png", image_}, {"dog/1.png", image_}, link, device};
  write("a.zip", zip_of(files));
  const Names expected{"dog/device.png: no file", "dog/link.png: link in an archive"};
  EXPECT_EQ(unread(open(path("a.zip"))), expected);
  if (!reads_tar()) return;
  write("a.tar", tar_of(files));
  EXPECT_EQ(unread(open(path("a.tar"))), expected);
}

TEST_F(Archives, ThatChangeAreNoticed) {
  std::vector<std::pair<std::string, Bytes>> archives{
      {"a.zip", zip_of({{"cat/1.png", image_}, {"dog/1.png", image_}})}};
  if (reads_tar()) {
    archives.emplace_back("a.tar", tar_of({{"cat/1.png", image_}, {"dog/1.png", image_}}));
  }
  for (const auto& [name, bytes] : archives) {
    write(name, bytes);
    const data::DataSource source = open(path(name));
    Bytes pixels(48);
    const auto read = [&] {
      return source.dataset->read(0, {4, 4, 3}, data::Resize::bilinear, pixels).status;
    };
    EXPECT_EQ(read(), data::ReadStatus::ok);
    std::fstream(path(name), std::ios::in | std::ios::out | std::ios::binary).put('P');
    std::filesystem::last_write_time(
        path(name), std::filesystem::file_time_type::clock::now() + std::chrono::seconds(2));
    const std::string text = testing::refused(ExitCode::data, read);
    EXPECT_NE(text.find("has changed since it was opened"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace cputrain::datasets
