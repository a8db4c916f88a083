#include "weights/formats/torch_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "tests/weights/made_torch.h"

namespace cputrain::weights {
namespace {

using testing::MadeTensor;
using testing::pickled_state;

/// 0, 1, 2, ... as F32.
std::string counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  std::string bytes(count * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class TorchFile : public ::testing::TestWithParam<bool> {
 protected:
  /// One whose only storage holds 24 bytes, which are so many numbers.
  std::string made(const std::vector<MadeTensor>& tensors, std::int64_t count = 6) const {
    const std::string pickle = pickled_state(tensors, GetParam());
    const std::string bytes = counting(6);
    return GetParam() ? testing::torch_pickles(pickle, count, bytes)
                      : testing::torch_archive(pickle, bytes);
  }
  TensorFile opened(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return open_torch_file(path_);
  }
  void expect_refused(const std::string& bytes, const std::string& says) {
    const std::string text = testing::refused(ExitCode::data, [&] { opened(bytes); });
    EXPECT_NE(text.find(says), std::string::npos) << text;
    EXPECT_NE(text.find("(it cannot be loaded); save the arrays alone"), std::string::npos) << text;
  }
  void expect_array_refused(const MadeTensor& tensor, const std::string& says) {
    expect_refused(made({tensor}), says);
  }

 private:
  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "w.pth";
};

INSTANTIATE_TEST_SUITE_P(BothForms, TorchFile, ::testing::Bool(),
                         [](const auto& form) { return form.param ? "Pickles" : "Archive"; });

TEST_P(TorchFile, ArraysAreReadRowByRow) {
  const auto file = opened(made({{.name = "whole"},
                                 {.name = "part", .offset = 2, .extents = {3}, .strides = {1}},
                                 {.name = "turned", .extents = {3, 2}, .strides = {1, 3}},
                                 {.name = "spread", .extents = {3}, .strides = {2}},
                                 {.name = "one", .offset = 5, .extents = {}, .strides = {}},
                                 {.name = "row", .extents = {1, 6}, .strides = {77, 1}},
                                 {.name = "none", .extents = {0, 9}, .strides = {9, 1}}}));
  const auto numbers = [&](const char* name) { return file.read_floats(*file.find(name)); };
  using Numbers = std::vector<float>;
  EXPECT_EQ(numbers("whole"), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers("part"), (Numbers{2, 3, 4}));
  EXPECT_EQ(numbers("turned"), (Numbers{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(numbers("spread"), (Numbers{0, 2, 4}));
  EXPECT_EQ(numbers("one"), (Numbers{5}));
  EXPECT_EQ(numbers("row"), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers("none"), Numbers{});
  EXPECT_EQ(file.find("whole")->extents, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(file.find("other"), nullptr);
  EXPECT_EQ(file.read(*file.find("turned")), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST_P(TorchFile, WholeNumbersAreNamedAndNotRead) {
  const auto file =
      opened(made({{.kind = "LongStorage", .stored = 3, .extents = {}, .strides = {}}}, 3));
  EXPECT_EQ(file.tensors().front().dtype, "I64");
  EXPECT_NE(
      testing::refused(ExitCode::data, [&] { file.read(file.tensors().front()); }).find("I64"),
      std::string::npos);
}

TEST_P(TorchFile, NothingLeadsOutOfItsStorage) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  expect_array_refused({.offset = 7}, "begins behind its storage");
  expect_array_refused({.offset = 1}, "ends behind its storage");
  expect_array_refused({.offset = kHuge}, "begins behind its storage");
  expect_array_refused({.strides = {4, 1}}, "ends behind its storage");
  expect_array_refused({.strides = {kHuge, kHuge}}, "ends behind its storage");
  expect_array_refused({.extents = {7}, .strides = {0}}, "of more numbers than its storage has");
  expect_array_refused({.extents = {kHuge, kHuge, kHuge}, .strides = {0, 0, 0}}, "of more numbers");
  expect_array_refused({.extents = {1 << 16, 1 << 16, 1 << 16, 1 << 16}, .strides = {0, 0, 0, 0}},
                       "of more numbers");
  expect_array_refused({.offset = -1}, "a size that is no whole number");
  expect_array_refused({.extents = {-2, -3}}, "a size that is no whole number");
  expect_array_refused({.strides = {-3, 1}}, "a size that is no whole number");
  expect_array_refused({.strides = {3}}, "of so many extents and other strides");
  expect_array_refused(
      {.extents = std::vector<std::int64_t>(65, 1), .strides = std::vector<std::int64_t>(65, 1)},
      "over 64 extents");
  expect_array_refused({.stored = 7}, "of 7 numbers in 24 bytes");
  expect_array_refused({.kind = "DoubleStorage"}, GetParam() ? "is cut off" : "in 24 bytes");
  expect_array_refused({.stored = kHuge}, "numbers in 24 bytes");
  expect_array_refused({.stored = -1}, "a size that is no whole number");
  expect_array_refused({.key = "1"}, GetParam() ? "of no kind" : "lacks the numbers 1");
  expect_array_refused({.key = "../data.pkl"}, GetParam() ? "of no kind" : "lacks the numbers");
  expect_array_refused({.kind = "ListStorage"}, "names torch.ListStorage");
  expect_array_refused({.more = "}" + testing::pickled_text("neg") + "\x88s"}, "another sign");
}

/// Numbers that are read often do not make more of them than the file has.
TEST_P(TorchFile, RepeatedNumbersAreBoundByTheStorage) {
  const auto file = opened(made(
      {{.extents = {2, 3}, .strides = {1, 1}}, {.name = "b", .extents = {6}, .strides = {0}}}));
  EXPECT_EQ(file.read_floats(*file.find("a")), (std::vector<float>{0, 1, 2, 1, 2, 3}));
  EXPECT_EQ(file.read_floats(*file.find("b")), std::vector<float>(6));
}

TEST_P(TorchFile, OfOneNameTheLastCounts) {
  const auto file = opened(made({{.offset = 0, .extents = {1}, .strides = {1}},
                                 {.offset = 4, .extents = {1}, .strides = {1}}}));
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.read_floats(file.tensors().front()), std::vector<float>{4});
}

TEST_P(TorchFile, EveryCutIsSeen) {
  const std::string whole = made({{}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(testing::refusal_of(ExitCode::data, [&] { opened(whole.substr(0, size)); }), "")
        << size << " of " << whole.size();
  }
}

/// Programs that are no pickle of data, and ones that mistake their own stack.
TEST_P(TorchFile, WrongProgramsAreRefused) {
  const auto refused = [&](const std::string& program, const char* says) {
    const std::string pickle = testing::kProtocol + program;
    expect_refused(GetParam() ? testing::torch_pickles(pickle, 6, counting(6))
                              : testing::torch_archive(pickle, counting(6)),
                   says);
  };
  for (const char* code :
       {"0", "1", "2", "i", "o", "l", "d", "p0\n", "g0\n", "F1\n", "I1\n", "P"}) {
    refused(code, "is a pickle with the instruction");
  }
  for (const char* code : {"\x82\x01", "\x92", "\x97", "\x98", "\x91", "\x8b"}) {
    refused(code, "is a pickle with the instruction");
  }
  for (const char* code : {".", "a", "Na", "R", "NR", "b", "Nb", "Q", "\x85", "NN\x87", "(.", "N(.",
                           "NN(b.", "u", "t", "e", "q1", "\x94"}) {
    refused(code, "is a damaged pickle");
  }
  refused("h7.", "takes a value that it did not keep");
  refused("NNR.", "calls what is no function");
  refused("NN\x81.", "calls what is no function");
  refused("}Na.", "added to what is no list");
  refused("]NNs.", "added to what is no list");
  refused("}(Nu.", "added to what is no list");
  refused("]NQ.", GetParam() ? "names something beside arrays" : "holds no arrays by name");
  refused("cos\nsystem\n.", "names os.system");
  refused(testing::pickled_text("os") + testing::pickled_text("system") + "\x93.",
          "names os.system");
  refused("NN\x93.", "a wrong name");
  refused("c", "it ends too early");
}

}  // namespace
}  // namespace cputrain::weights
