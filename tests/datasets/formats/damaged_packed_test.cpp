#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "datasets/formats/packed_format.h"
#include "tests/datasets/formats/packed_files.h"
#include "tests/support/refusal.h"

/// Packed files that are not what was written, or not any more.
namespace cputrain::datasets {
namespace {

TEST_F(Packed, AChangedPixelIsFound) {
  pack(source());
  Bytes bytes = content_of(file());
  bytes[bytes.size() - 1] ^= 1;  // of the last image
  write_bytes(file(), bytes);
  const data::DataSource packed = pipeline_.open({.spec = file()});
  const data::DecodedData data = decode(packed);
  ASSERT_EQ(data.bad.size(), 1u);
  EXPECT_EQ(data.bad[0].name, packed.dataset->name(9));
  EXPECT_EQ(pipeline_.check(packed, 1, {}).bad.size(), 1u);
}

/// What an open file is changed into, in place, and what is then said of an image.
class ChangedPacked : public Packed {
 protected:
  ChangedPacked() {
    pack(source());
    packed_ = pipeline_.open({.spec = file()});
    data_ = decode(packed_);
  }
  std::string said(std::size_t image) const {
    std::vector<std::uint8_t> space(kImage.size());
    return testing::refusal_of(ExitCode::data, [&] { data_.train.pixels_of(image, space); });
  }
  void expect_failure(const std::string& says) const {
    const data::BatchPlan plan(data_.train.size(), data_.train.size(), 4, 0, 1);
    const auto batches = pipeline_.batches(data_.train, plan, {});
    EXPECT_TRUE(batches->may_fail());
    batches->seek(0, 0);
    std::size_t images = 0;
    for (int k = 0; k < plan.micro_batches(0); ++k) images += batches->next().images.size();
    EXPECT_EQ(images, data_.train.size()) << "ranks stay together";
    EXPECT_NE(batches->failure().find(says), std::string::npos) << batches->failure();
    EXPECT_NE(batches->failure().find(file()), std::string::npos) << batches->failure();
  }

  data::DataSource packed_;
  data::DecodedData data_;
};

TEST_F(ChangedPacked, CutIsAnError) {
  EXPECT_EQ(said(7), "");
  std::filesystem::resize_file(file(), std::filesystem::file_size(file()) - kImage.size() * 4);
  EXPECT_NE(said(7).find("has become shorter"), std::string::npos) << said(7);
  expect_failure("has become shorter");
  std::filesystem::resize_file(file(), 0);
  EXPECT_NE(said(0).find("has become shorter"), std::string::npos);
}

TEST_F(ChangedPacked, OtherPixelsAreAnError) {
  const auto before = std::filesystem::last_write_time(file());
  std::fstream open(file(), std::ios::in | std::ios::out | std::ios::binary);
  open.seekp(-1, std::ios::end);
  open.put('x').flush();
  std::filesystem::last_write_time(file(), before);  // which tells nothing
  expect_failure("wrong checksum");
}

TEST_F(ChangedPacked, ANewFileOfTheNameIsNotTheOneThatIsOpen) {
  std::filesystem::rename(file(), folder_.path() / "old.ctpack");
  write_bytes(file(), bytes_of("new"));
  const data::BatchPlan plan(8, 8, 8, 0, 1);
  const auto batches = pipeline_.batches(data_.train, plan, {});
  batches->seek(0, 0);
  batches->next();
  EXPECT_EQ(batches->failure(), "");
}

/// Every byte before the pixels counts.
TEST_F(Packed, AChangedByteBeforeThePixelsIsFound) {
  pack(source());
  const Bytes good = content_of(file());
  for (std::size_t at = 0; at < kPackedAlign; at += at < 400 ? 1 : 61) {
    Bytes bytes = good;
    bytes[at] ^= 0x41;
    write_bytes(file(), bytes);
    error();
  }
  for (const std::size_t size : {0u, 7u, 79u, 80u, 4095u}) {
    write_bytes(file(), prefix(good, size));
    error();
  }
  write_bytes(file(), prefix(good, good.size() - 1));
  EXPECT_NE(error().find("bytes where"), std::string::npos);
  Bytes longer = good;
  longer.push_back(0);
  write_bytes(file(), longer);
  error();
}

/// Headers whose checksum is right: what a hostile hand would write.
TEST_F(Packed, ImpossibleHeadersAreRefused) {
  pack(source());
  const Bytes good = content_of(file());
  const auto refused = [&](std::size_t at, std::uint64_t value, std::size_t size,
                           const std::string& says) {
    Bytes bytes = good;
    for (std::size_t i = 0; i < size; ++i) {
      bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
    write_bytes(file(), with_packed_checksum(bytes));
    const std::string message = error();
    EXPECT_NE(message.find(says), std::string::npos) << at << " " << value << ": " << message;
  };
  refused(0, 0x4B, 1, "does not begin");
  for (const std::uint64_t version : {0u, 4u}) {
    refused(8, version, 4, fmt::format("version {}", version));
  }
  for (const std::uint64_t side : {0u, 13u, 16385u, 0xFFFFFFFFu}) refused(16, side, 4, "claims");
  refused(20, 0, 4, "claims");
  refused(24, 4, 4, "claims");
  refused(28, 6, 4, "claims");
  // 2^32 more images would be the same product in 32 bits, 2^64 / 432 wraps in 64.
  for (const std::uint64_t count :
       {std::uint64_t{0}, std::uint64_t{9}, std::uint64_t{11}, (std::uint64_t{1} << 32) + 10,
        ~std::uint64_t{0}, ~std::uint64_t{0} / 432}) {
    refused(32, count, 8, "claims");
  }
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    refused(40, count, 8, count > 1 ? "claims" : "");
  }
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{5000}, ~std::uint64_t{0}}) {
    refused(48, bytes, 8, "claim");
  }
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{80}, std::uint64_t{4095},
                                 std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    refused(56, at, 8, "claims");
  }
  refused(64, 0, 8, "written in it");
  refused(80, 2, 4, "label 2");
  refused(84, 7, 4, "part 7");
}

TEST_F(Packed, NamesAreAsManyAsClaimed) {
  pack(source());
  Bytes bytes = content_of(file());
  const std::size_t dog = position_of(bytes, std::string_view("\0dog\0", 5));
  bytes[dog] = 'x';  // "cat" and "dog" run together
  write_bytes(file(), with_packed_checksum(bytes));
  EXPECT_NE(error().find("names"), std::string::npos);
  bytes[dog] = 0, bytes[dog + 1] = 'c', bytes[dog + 2] = 'a', bytes[dog + 3] = 't';
  write_bytes(file(), with_packed_checksum(bytes));
  EXPECT_NE(error().find("class twice"), std::string::npos);
}

}  // namespace
}  // namespace cputrain::datasets
