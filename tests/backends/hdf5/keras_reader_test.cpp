#include "backends/hdf5/keras_reader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "backends/hdf5/calls.h"
#include "backends/hdf5/written_apart.h"
#include "core/error.h"
#include "tests/backends/hdf5/made_hdf5.h"
#include "tests/support/forbidden_call.h"
#include "tests/support/in_a_child.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::hdf5 {
namespace {

class KerasReader : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name = "w.h5") const {
    return folder_.path() / name;
  }

  std::vector<float> numbers(const weights::KerasFile& file, const std::string& name) const {
    const auto* array = file.arrays.find(name);
    EXPECT_NE(array, nullptr) << name;
    return array ? file.arrays.read_floats(*array) : std::vector<float>();
  }
  std::string refusal() const {
    try {
      read_keras(path());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_NE(std::string(error.what()).find("it cannot be loaded"), std::string::npos);
      return error.what();
    }
    return "";
  }
  void expect_refused(const std::string& why) const {
    const std::string text = refusal();
    EXPECT_NE(text.find(why), std::string::npos) << text;
  }

 private:
  testing::TemporaryFolder folder_;
};

/// Files of some file systems in user space cannot be mapped (ENODEV).
TEST_F(KerasReader, ReadsWhatCannotBeMapped) {
  MadeFile(path()).array("layers/a/vars/0", {3}, {1.5f, -2, 0.25f});
  const int code = testing::in_a_child([&] {
    const testing::Argument of_a_file{3, MAP_PRIVATE | MAP_NORESERVE};
    if (!testing::forbid(SYS_mmap, ENODEV, of_a_file)) return testing::kNoSeccomp;
    const std::vector<float> read = numbers(read_keras(path()), "layers/a/vars/0");
    return read == std::vector<float>{1.5f, -2, 0.25f} ? 0 : 1;
  });
  if (code == testing::kNoSeccomp) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(code, 0);
}

TEST_F(KerasReader, ReadsNumbersOfAllWidths) {
  {
    MadeFile file(path());
    const std::vector<float> values{1.5f, -2, 0.25f};
    file.array("layers/a/vars/0", {3}, values);
    file.array("layers/a/vars/1", {1, 3}, values, H5T_IEEE_F32BE);
    file.array("layers/a/vars/2", {3}, values, H5T_IEEE_F64LE);
    const hid_t half = H5Tcopy(H5T_IEEE_F32LE);  // as h5py makes it
    H5Tset_fields(half, 15, 10, 5, 0, 10);
    H5Tset_size(half, 2);
    H5Tset_ebias(half, 15);
    file.array("layers/a/vars/3", {3}, values, half);
    const hid_t two_bytes = H5Tcreate(H5T_OPAQUE, 2);
    const std::uint16_t bits[]{0x3fc0, 0xc000, 0x3e80};
    file.raw("layers/a/vars/4", {3}, two_bytes, bits);
    file.text("layers/a/vars/4", "dtype", "bfloat16");
    file.raw("layers/b/vars/0", {3}, two_bytes, bits);  // says nothing
    const std::int64_t count = 7;
    file.raw("layers/b/vars/1", {}, H5T_STD_I64LE, &count);
    file.array("optimizer/vars/1", {3}, values);
    file.array("layers/c/vars/0", {}, {4});
  }
  const weights::KerasFile file = read_keras(path());
  for (const char* name : {"layers/a/vars/0", "layers/a/vars/1", "layers/a/vars/2",
                           "layers/a/vars/3", "layers/a/vars/4"}) {
    EXPECT_EQ(numbers(file, name), (std::vector<float>{1.5f, -2, 0.25f})) << name;
  }
  EXPECT_EQ(file.arrays.find("layers/a/vars/1")->extents, (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(file.arrays.find("layers/a/vars/2")->dtype, "F64");
  EXPECT_EQ(numbers(file, "layers/c/vars/0"), std::vector<float>{4});
  EXPECT_EQ(file.texts.unread,
            (std::vector<std::string>{"layers/b/vars/0", "layers/b/vars/1", "optimizer/vars/1"}));
  EXPECT_EQ(file.path, path());
}

TEST_F(KerasReader, ReadsTexts) {
  {
    MadeFile file(path());
    file.group("model_weights/conv");
    file.texts("model_weights", "layer_names0", {"conv", "norm_1"}, 6);
    file.texts("model_weights/conv", "weight_names", {"conv/kernel:0"}, 20);
    file.text("model_weights/conv", "name", "stem");
    file.text("/", "name", "root");
    file.text("/", "other", "not asked for");
    file.text("/", "model_config", R"({"config": {}})");
  }
  const auto texts = read_keras(path()).texts;
  EXPECT_EQ(texts.config, R"({"config": {}})");
  const auto& attributes = texts.attributes;
  using Texts = std::vector<std::string>;
  EXPECT_EQ(attributes.at("model_weights").at("layer_names0"), (Texts{"conv", "norm_1"}));
  EXPECT_EQ(attributes.at("model_weights/conv").at("weight_names"), Texts{"conv/kernel:0"});
  EXPECT_EQ(attributes.at("model_weights/conv").at("name"), Texts{"stem"});
  EXPECT_EQ(attributes.at("").at("name"), Texts{"root"});
  EXPECT_FALSE(attributes.at("").contains("other"));
  EXPECT_FALSE(attributes.at("").contains("model_config"));
}

/// A group that holds itself, and arrays that many names lead to.
TEST_F(KerasReader, LinksComeToAnEnd) {
  {
    MadeFile file(path());
    file.array("a/b/x", {2}, {1, 2});
    H5Lcreate_hard(file.id(), "a", file.id(), "a/b/again", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/a/b/x", file.id(), "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/x", file.id(), "outside", H5P_DEFAULT, H5P_DEFAULT);
  }
  const weights::KerasFile file = read_keras(path());
  ASSERT_EQ(file.arrays.tensors().size(), 1u);
  EXPECT_EQ(numbers(file, "a/b/x"), (std::vector<float>{1, 2}));
  {
    MadeFile again(path());
    again.array("x", {1000}, std::vector<float>(1000));
    for (int i = 0; i < 50; ++i) {
      H5Lcreate_hard(again.id(), "x", again.id(), ("y" + std::to_string(i)).c_str(), H5P_DEFAULT,
                     H5P_DEFAULT);
    }
  }
  expect_refused("larger than the file");
}

/// Many names of one group: its texts would be read again and again.
TEST_F(KerasReader, TextsHaveAnEnd) {
  {
    MadeFile file(path());
    file.group("a");
    file.texts("a", "weight_names", std::vector<std::string>(100, "x"), 600);
    for (int i = 0; i < 2000; ++i) {
      H5Lcreate_hard(file.id(), "a", file.id(), ("b" + std::to_string(i)).c_str(), H5P_DEFAULT,
                     H5P_DEFAULT);
    }
  }
  expect_refused("names and texts of over 16 MB");
  {
    MadeFile file(path());
    file.group(std::string(5000, 'a'));
  }
  expect_refused("or a name of over 4096 bytes");
}

/// The other kind of texts, whose lengths are known once they are read.
TEST_F(KerasReader, TextsOfVariableLengthHaveAnEnd) {
  {
    MadeFile file(path());
    file.group("a");
    const std::string longest(60'000, 'x');
    for (int i = 0; i < 300; ++i) {
      file.text("a", "weight_names" + std::to_string(i), longest);
    }
  }
  expect_refused("names and texts of over 16 MB");
}

TEST_F(KerasReader, NoOtherFileIsRead) {
  std::ofstream(path("secret")) << "12345678";
  {
    MadeFile file(path());
    const hid_t plan = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(plan, path("secret").c_str(), 0, 8);
    file.raw("x", {2}, H5T_IEEE_F32LE, nullptr, plan);
  }
  expect_refused("lies in another file");
  {
    MadeFile source(path("source.h5"));
    source.array("x", {2}, {1, 2});
  }
  {
    MadeFile file(path());
    const hsize_t two = 2;
    const hid_t space = H5Screate_simple(1, &two, nullptr), plan = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_virtual(plan, space, path("source.h5").c_str(), "x", space);
    file.raw("x", {2}, H5T_IEEE_F32LE, nullptr, plan);
  }
  expect_refused("is made of other arrays");
}

TEST_F(KerasReader, ArraysThatAreLargerThanTheyLook) {
  const hsize_t chunk = 1000;
  const hid_t packed = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(packed, 1, &chunk);
  {
    MadeFile file(path());
    file.array("y", {1000}, std::vector<float>(1000));  // else x is larger than the file
    file.raw("x", {1000}, H5T_IEEE_F32LE, nullptr, packed);
  }
  expect_refused("has no numbers for its array x");
  H5Pset_shuffle(packed);
  {
    MadeFile file(path());
    file.array("x", {1000}, std::vector<float>(1000), H5T_IEEE_F32LE, packed);
  }
  expect_refused("is compressed");
  {
    MadeFile file(path());
    file.raw("x", {hsize_t{1} << 40, hsize_t{1} << 20}, H5T_IEEE_F32LE, nullptr);
  }
  expect_refused("larger than the file");
}

TEST_F(KerasReader, OtherFilesAreRefused) {
  expect_refused("cannot be read");
  std::ofstream(path()) << "\x89HDF\r\n\x1a\n and nothing";
  expect_refused("is cut or damaged");
  std::ofstream(path()) << "PK\x03\x04";
  expect_refused("damaged zip archive");
}

/// Many bytes of the file's structure, one after the other: libhdf5 may refuse the file, crash or
/// run without end in its own process.
TEST_F(KerasReader, DamageIsSurvived) {
  {
    MadeFile file(path());
    file.array("layers/a/vars/0", {3}, {1, 2, 3});
    file.text("layers/a/vars", "name", "a");
    file.texts("layers/a", "weight_names", {"b", "c"}, 3);
  }
  const std::string whole = testing::text_of(path());
  int tried = 0, refused = 0;
  for (std::size_t place = 8; place < whole.size(); place += 7) {
    if (whole[place] == 0 && place % 3 != 0) continue;  // mostly room to grow
    std::string damaged = whole;
    damaged[place] = static_cast<char>(~damaged[place]);
    std::ofstream(path(), std::ios::binary) << damaged;
    ++tried;
    const std::string text = refusal();
    refused += !text.empty();
    EXPECT_EQ(text.find("/proc/"), std::string::npos) << text;
  }
  EXPECT_GT(tried, 100);
  EXPECT_GT(refused, tried / 20);  // most bytes are none of the structure's
  // Each of these is something that the file cannot do without.
  for (const char* word : {"HEAP", "TREE", "SNOD", "OHDR"}) {
    const std::size_t place = whole.find(word);
    if (place == std::string::npos) continue;  // another version of the format
    std::string damaged = whole;
    damaged[place] = 'X';
    std::ofstream(path(), std::ios::binary) << damaged;
    EXPECT_NE(refusal(), "") << word;
  }
}

TEST(Hdf5Calls, ALibraryThatIsNotThere) {
  const std::string text = testing::refused(ExitCode::usage, [] {
    load_calls("libno-such-hdf5.so.9", "/no/such/libhdf5.so", "libhdf5-dev");
  });
  EXPECT_NE(text.find("LD_LIBRARY_PATH"), std::string::npos);
  EXPECT_NE(text.find("safetensors.numpy"), std::string::npos);
  // Some other library: its functions are not those.
  EXPECT_THROW(load_calls("libc.so.6", "/no/such/libc.so", "libc6"), Error);
}

constexpr Limits kLittle{.cpu_seconds = 1, .seconds = 60, .memory = std::size_t{256} << 20};

std::string fault_of(const std::function<void(system::OutputFile&)>& write) {
  MemoryFile file;
  try {
    write_apart(file, kLittle, write);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(WrittenApart, EndsAloneWhateverHappensInIt) {
  EXPECT_NE(fault_of([](auto&) { std::abort(); }).find("signal 6"), std::string::npos);
  EXPECT_NE(fault_of([](auto&) { std::raise(SIGSEGV); }).find("signal 11"), std::string::npos);
  EXPECT_NE(fault_of([](auto&) { std::raise(SIGKILL); }).find("out of memory"), std::string::npos);
  EXPECT_NE(fault_of([](auto&) { std::_Exit(7); }).find("ended with 7"), std::string::npos);
  EXPECT_NE(fault_of([](auto&) {
              for (volatile bool forever = true; forever;) {
              }
            }).find("comes to no end"),
            std::string::npos);
  MemoryFile file;
  EXPECT_THROW(write_apart(file, kLittle, [](auto&) { fail(ExitCode::usage, "no library"); }),
               Error);
  EXPECT_EQ(fault_of([](auto& output) {
              output.write(std::string_view("half"));
              throw std::runtime_error("why");
            }),
            "why");
}

TEST(WrittenApart, WaitingAndMemoryHaveAnEnd) {
  const auto waits = [](auto&) {
    for (;;) ::pause();
  };
  MemoryFile file;
  EXPECT_THROW(write_apart(file, {.cpu_seconds = 1, .seconds = 1, .memory = 1 << 20}, waits),
               SystemFault);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end a program that gets no memory";
#endif
  const auto takes_all = [](auto& output) {
    const std::vector<std::byte> bytes(std::size_t{1} << 30, std::byte{1});
    output.write(bytes);
  };
  EXPECT_THROW(write_apart(file, kLittle, takes_all), SystemFault);
  EXPECT_NE(fault_of(takes_all).find("more memory"), std::string::npos);
}

/// nohup and some launchers start programs so.
TEST(WrittenApart, WhereChildrenAreIgnored) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  MemoryFile file;
  EXPECT_NO_THROW(write_apart(file, kLittle, [](auto&) {}));
  EXPECT_EQ(::signal(SIGCHLD, before), SIG_IGN);
}

TEST(WrittenApart, WhatWasWrittenIsThere) {
  MemoryFile file;
  write_apart(file, kLittle, [](auto& output) { output.write(std::string_view("all of it")); });
  EXPECT_EQ(testing::text_of(file.path()), "all of it");
}

}  // namespace
}  // namespace cputrain::hdf5
