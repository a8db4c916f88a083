#include "weights/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <fstream>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::weights::safetensors {
namespace {

using testing::text_of;

// Bytes written by hand from the format's description: metadata {"format":"cputrain"}, one tensor
// b = {1, -2}, five spaces of padding.
const std::string kGolden =
    std::string("\x60\0\0\0\0\0\0\0", 8) +
    R"({"__metadata__":{"format":"cputrain"},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})" +
    "     " + std::string("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);

TEST(Safetensors, WritesTheGoldenBytes) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "w.safetensors";
  write(path, {{"format", "cputrain"}}, {{"b", {2}, [] { return std::vector{1.0f, -2.0f}; }}});
  EXPECT_EQ(text_of(path), kGolden);
}

/// Doubles come first, so that they are aligned, whatever the names.
TEST(Safetensors, WritesDoublesAsTheyAre) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "w.safetensors";
  const std::vector<double> doubles{1.0 / 3, -5e-324, 1e308};
  write(path, {},
        {{"a", {1}, [] { return std::vector{0.5f}; }}, {"b", {3, 1}, {}, [&] { return doubles; }}});
  const TensorFile file = open(path);
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].name, "b");
  EXPECT_EQ(file.tensors()[0].dtype, "F64");
  EXPECT_EQ(file.tensors()[0].extents, (std::vector<std::size_t>{3, 1}));
  EXPECT_EQ(file.read(file.tensors()[0]), doubles);
  EXPECT_EQ(file.read_floats(file.tensors()[1]), std::vector{0.5f});
}

// As the format's own library reads it.
TEST(Safetensors, MetadataThatAreNullAreNone) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "w.safetensors";
  std::ofstream(path, std::ios::binary)
      << std::string("\x18\0\0\0\0\0\0\0", 8) << R"({"__metadata__":null}   )";
  const TensorFile file = open(path);
  EXPECT_TRUE(file.metadata().empty());
  EXPECT_TRUE(file.tensors().empty());
}

/// Opens a file of these bytes; returns the message of its refusal, or "" where it was accepted.
std::string refusal(const std::string& bytes) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "w.safetensors";
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    const TensorFile file = open(path);
    for (const auto& tensor : file.tensors()) file.read(tensor);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find("w.safetensors"), std::string::npos);
    return error.what();
  }
  return "";
}

std::string file_of(const std::string& header, std::size_t buffer) {
  const std::uint64_t length = header.size();
  const std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  return bytes + header + std::string(buffer, '\0');
}

TEST(Safetensors, ReadsTheGoldenBytes) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "w.safetensors";
  std::ofstream(path, std::ios::binary) << kGolden;
  const TensorFile file = open(path);
  EXPECT_EQ(file.metadata().at("format"), "cputrain");
  ASSERT_NE(file.find("b"), nullptr);
  EXPECT_EQ(file.read(*file.find("b")), (std::vector{1.0, -2.0}));
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(Safetensors, AcceptsScalarsAndEmptyTensors) {
  EXPECT_EQ(refusal(file_of(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                            R"("e":{"dtype":"F64","shape":[0,7],"data_offsets":[4,4]}})",
                            4)),
            "");
}

TEST(Safetensors, RefusesEveryPrefixOfAFile) {
  for (std::size_t size = 0; size < kGolden.size(); ++size) {
    EXPECT_NE(refusal(kGolden.substr(0, size)), "") << size << " bytes";
  }
  EXPECT_NE(refusal(kGolden + "x"), "");
}

TEST(Safetensors, RefusesHostileHeaders) {
  const auto tensor = [](const char* rest) { return std::string("{\"a\":{") + rest + "}}"; };
  const std::vector<std::pair<std::string, std::size_t>> cases{
      {"[]", 0},
      {" {}", 0},
      {"{", 0},
      {R"({"a":7})", 0},
      {R"({"__metadata__":{"x":1}})", 0},
      {tensor(R"("dtype":"F99","shape":[1],"data_offsets":[0,4])"), 4},
      {tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4},
      {tensor(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])"), 4},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])"), 8},  // shape and bytes differ
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), 8},  // a hole at the start
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), 8},  // bytes nobody owns
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), 0},  // offsets beyond the file
      {tensor(R"("dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,4])"), 4},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8},  // a key twice
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
       8},  // over one another
      {"{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}", 0},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])"), 0},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), 4},  // ends before it begins
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), 4},
      {tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551616])"), 4},
      {tensor(R"("dtype":"F32","shape":1,"data_offsets":[0,4])"), 4},
      {tensor(R"("dtype":7,"shape":[1],"data_offsets":[0,4])"), 4},
      {tensor(R"("shape":[1],"data_offsets":[0,4])"), 4},
      {tensor(R"("dtype":"F4","shape":[3],"data_offsets":[0,1])"), 1},  // a byte and a half
      {R"({"__metadata__":[]})", 0},
      {R"({"__metadata__":0})", 0},
      {R"({"__metadata__":{"x":"1","x":"2"}})", 0},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
       12},  // a hole between
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12},                                   // half over one another
      {std::string("{}\0{\"a\":7}", 10), 0},  // a second header behind a zero byte
      {"{}x", 0},
      {"\xef\xbb\xbf{}", 0},  // a byte order mark
      {"{\"\xed\xa0\x80\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
       4},  // half a pair
      {"{\"\xc0\x80\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4},  // overlong
      {"{\"__metadata__\":{\"x\":\"\xf4\x90\x80\x80\"}}", 0},                      // beyond Unicode
      {"{\"\xff\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4},  // not UTF-8
  };
  for (const auto& [header, buffer] : cases)
    EXPECT_NE(refusal(file_of(header, buffer)), "") << header;
  EXPECT_NE(refusal(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)), "");
}

// Many tensors over one buffer, and more values than anybody needs: refused without much memory.
TEST(Safetensors, RefusesHeadersThatOnlyCost) {
  std::string many = "{";
  for (int i = 0; i < 1000; ++i) {
    many += "\"t" + std::to_string(i) + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)";
  }
  many.back() = '}';
  EXPECT_NE(refusal(file_of(many, 4)).find("overlap"), std::string::npos);
  std::string lists = "{\"a\":[";
  for (int i = 0; i < 6'000'000; ++i) lists += "[],";
  lists += "0]}";
  EXPECT_NE(refusal(file_of(lists, 0)).find("10 million"), std::string::npos);
}

// Any single changed byte either is refused or still describes a whole tensor; never a crash.
// 100,000 empty tensors are read at once and found by name; one more is too many.
TEST(Safetensors, HasALimitOfTensorsAndIsQuickUpToIt) {
  const auto header_of = [](int tensors) {
    std::string header = "{";
    for (int i = 0; i < tensors; ++i) {
      header += (i ? "," : "") + ("\"t" + std::to_string(i)) +
                R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
    }
    return header + "}";
  };
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "many.safetensors";
  std::ofstream(path, std::ios::binary) << file_of(header_of(100'000), 0);
  const TensorFile file = open(path);
  EXPECT_EQ(file.tensors().size(), 100'000u);
  for (int i = 0; i < 100'000; ++i) ASSERT_NE(file.find("t" + std::to_string(i)), nullptr);
  EXPECT_EQ(file.find("t100000"), nullptr);
  EXPECT_NE(refusal(file_of(header_of(100'001), 0)).find("100001 tensors"), std::string::npos);
}

TEST(Safetensors, ReadsTheFileThatItOpened) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "w.safetensors";
  std::ofstream(path, std::ios::binary) << kGolden;
  const TensorFile file = open(path);
  write(path, {}, {{"b", {2}, [] { return std::vector{7.0f, 7.0f}; }}});  // renamed over it
  EXPECT_EQ(file.read(*file.find("b")), (std::vector<double>{1, -2}));
}

TEST(Safetensors, WaitsForNoPipe) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(open(path), Error);
  EXPECT_THROW(open(folder.path()), Error);
  EXPECT_THROW(open("/dev/zero"), Error);
}

TEST(Safetensors, SurvivesAnyChangedByte) {
  for (std::size_t i = 0; i < kGolden.size() - 8; ++i) {
    for (const char change : {'\x01', '\x80', '\x7f'}) {
      std::string bytes = kGolden;
      bytes[i] = static_cast<char>(bytes[i] ^ change);
      refusal(bytes);
    }
  }
}

}  // namespace
}  // namespace cputrain::weights::safetensors
