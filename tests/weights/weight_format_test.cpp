#include "weights/weight_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/text.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "weights/safetensors.h"

namespace cputrain::weights {
namespace {

using namespace std::string_literals;

TEST(WeightFormat, IsKnownByTheFirstBytes) {
  const testing::TemporaryFolder folder;
  const auto format_of = [&](const std::string& bytes) {
    const auto path = folder.path() / "file";
    std::ofstream(path, std::ios::binary) << bytes;
    return weight_format(path);
  };
  EXPECT_EQ(format_of("\x89HDF\r\n\x1a\n...."s), WeightFormat::hdf5);
  // A local header of a zip archive: 26 bytes, the length of the name, that of more, the name.
  const std::string header = "PK\x03\x04"s + std::string(22, '\0');
  EXPECT_EQ(format_of(header + "\x10\0\0\0archive/data.pkl"s), WeightFormat::pickle);
  EXPECT_EQ(format_of(header + "\x0d\0\0\0metadata.json"s), WeightFormat::keras);
  EXPECT_EQ(format_of(header.substr(0, 10)), WeightFormat::keras);
  EXPECT_EQ(format_of("PK\x05\x06"s + std::string(18, '\0')), WeightFormat::keras) << "empty";
  EXPECT_EQ(format_of("\x80\x02\x8a\nl\xfc\x9c\x46\xf9"s), WeightFormat::pickle);
  EXPECT_EQ(format_of("\x80\x02\0\0\0\0\0\0{\"a\": 1}"s), WeightFormat::safetensors);
  EXPECT_EQ(format_of(""), WeightFormat::safetensors);
  safetensors::write(folder.path() / "file", {}, {});
  EXPECT_EQ(weight_format(folder.path() / "file"), WeightFormat::safetensors);
}

TEST(WeightFormat, NamesOfKerasAreTaken) {
  const testing::TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& bytes) -> std::string {
    std::ofstream(folder.path() / name, std::ios::binary) << bytes;
    return testing::refusal_of(ExitCode::data, [&] { weight_format(folder.path() / name); });
  };
  for (const char* name : {"w.h5", "w.hdf5", "w.keras"}) {
    EXPECT_NE(refusal(name, "").find("is empty"), std::string::npos) << name;
    const std::string what = name == "w.keras"s ? "is no .keras archive" : "is no HDF5 file";
    EXPECT_NE(refusal(name, "not found").find(what), std::string::npos) << name;
    EXPECT_EQ(refusal(name, "\x02\0\0\0\0\0\0\0{}"s), "") << "safetensors";
    EXPECT_EQ(refusal(name, "PK\x05\x06"), "");
  }
  EXPECT_EQ(refusal("w.safetensors", "not found"), "") << "its reader says what is wrong";
}

/// The lines work as they stand, whatever is in the name, which is said once.
TEST(WeightFormat, APickleIsRefusedWithWhatToDo) {
  const auto refusal = [](const char* path) -> std::string {
    try {
      refuse_pickle(path);
    } catch (const ErrorWithLines& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_LT(std::string(error.what()).size(), 300u);
      return join(error.lines(), "\n");
    }
  };
  const std::string text = refusal("my model.pth");
  EXPECT_NE(text.find("torch.load('my model.pth', map_location='cpu', weights_only=True)"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("my model.pth"), text.rfind("my model.pth"));
  for (const char* word : {"state_dict_ema", "'state_dict'", "safetensors.torch.save_file"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word;
  }
  EXPECT_NE(refusal("Ann's.pth").find(R"(torch.load('Ann\'s.pth')"), std::string::npos);
}

}  // namespace
}  // namespace cputrain::weights
