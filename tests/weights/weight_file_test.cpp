#include "weights/weight_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "weights/safetensors.h"

namespace cputrain::weights {
namespace {

using namespace std::string_literals;

const std::string kZip = "PK\x03\x04"s + std::string(22, '\0');

TEST(WeightFormat, IsKnownByTheFirstBytes) {
  const testing::TemporaryFolder folder;
  const auto format_of = [&](const std::string& bytes) {
    const auto path = folder.path() / "file";
    std::ofstream(path, std::ios::binary) << bytes;
    return weight_format(path);
  };
  EXPECT_EQ(format_of("\x89HDF\r\n\x1a\n...."s), WeightFormat::hdf5);
  // A local header of a zip archive: 26 bytes, the length of the name, that of more, the name.
  EXPECT_EQ(format_of(kZip + "\x10\0\0\0archive/data.pkl"s), WeightFormat::torch);
  EXPECT_EQ(format_of(kZip + "\x0d\0\0\0metadata.json"s), WeightFormat::keras);
  EXPECT_EQ(format_of(kZip.substr(0, 10)), WeightFormat::keras);
  EXPECT_EQ(format_of("PK\x05\x06"s + std::string(18, '\0')), WeightFormat::keras) << "empty";
  EXPECT_EQ(format_of("\x80\x02\x8a\nl\xfc\x9c\x46\xf9"s), WeightFormat::torch);
  EXPECT_EQ(format_of("\x80\x02\0\0\0\0\0\0{\"a\": 1}"s), WeightFormat::safetensors);
  EXPECT_EQ(format_of(""), WeightFormat::safetensors);
  safetensors::write(folder.path() / "file", {}, {});
  EXPECT_EQ(weight_format(folder.path() / "file"), WeightFormat::safetensors);
}

TEST(WeightFormat, NamesOfOtherProgramsAreTaken) {
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
  for (const char* name : {"w.pth", "w.pt", "w.bin", "w.pth.tar"}) {
    EXPECT_NE(refusal(name, "").find("is empty"), std::string::npos) << name;
    EXPECT_NE(refusal(name, "PK\x03").find("is no file of torch.save(), though"), std::string::npos)
        << name;
    EXPECT_EQ(refusal(name, "\x02\0\0\0\0\0\0\0{}"s), "") << "safetensors";
    EXPECT_EQ(weight_format(folder.path() / name), WeightFormat::safetensors);
    EXPECT_EQ(refusal(name, kZip + "\x10\0\0\0bytes are damaged"s), "");
    EXPECT_EQ(weight_format(folder.path() / name), WeightFormat::torch);
  }
  EXPECT_EQ(refusal("w.safetensors", "not found"), "") << "its reader says what is wrong";
}

struct Case {
  const char* name;
  std::string bytes;
  const char* says;
};

class ForeignFiles : public ::testing::Test {
 protected:
  std::filesystem::path put(const std::string& name, const std::string& bytes) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string refusal(const std::filesystem::path& path) {
    return testing::refusal_of(ExitCode::data, [&] { weight_format(path); });
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(ForeignFiles, AreNamedWithWhatToDo) {
  const Case cases[] = {
      {"m.onnx", "\x08\x07\x12\x07pytorch"s, "ONNX"},
      {"m.ONNX", "\x08\x07\x12\x07pytorch"s, "ONNX"},
      {"m.tflite", "\x1c\0\0\0TFL3"s, "TensorFlow Lite"},
      {"renamed", "\x20\0\0\0TFL3"s, "TensorFlow Lite"},
      {"saved_model.pb", "\x08\x01\x12\x02"s, "graph of TensorFlow"},
      {"m.ckpt.index", "\0\0\x0d"s, "checkpoint of TensorFlow"},
      {"m.ckpt.meta", "\x0a\x10"s, "checkpoint of TensorFlow"},
      {"m.ckpt.data-00000-of-00001", "\x01\x02"s, "checkpoint of TensorFlow"},
      {"checkpoint", "model_checkpoint_path: \"m.ckpt\""s, "checkpoint of TensorFlow"},
      {"m.npz", kZip + "\x05\0\0\0a.npy"s, "NumPy"},
      {"renamed", kZip + "\x05\0\0\0a.npy"s, "NumPy"},
      {"m.npy", "\x93NUMPY\x01\0"s, "NumPy"},
      {"m.msgpack", "\x81\xa6params"s, "Flax"},
      {"m.zip", kZip + "\x05\0\0\0a.pth"s, "unpack it"},
      {"empty.zip", "PK\x05\x06"s, "unpack it"},
      {"m.pth.tar", std::string(257, '.') + "ustar", "tar archive"},
      {"m.safetensors", "<!DOCTYPE html>"s, "page of HTML"},
      {"m.safetensors", "version https://git-lfs.github.com/spec/v1\n"s, "git lfs pull"},
      {"m.safetensors", "{\"error\": \"none\"}"s, "this is JSON"}};
  for (const Case& one : cases) {
    const std::string text = refusal(put(one.name, one.bytes));
    EXPECT_NE(text.find(one.says), std::string::npos) << one.name << ": " << text;
    EXPECT_NE(text.find(one.name), std::string::npos) << text;
  }
}

TEST_F(ForeignFiles, ContentsGoBeforeNames) {
  EXPECT_EQ(weight_format(put("m.onnx", "\x02\0\0\0\0\0\0\0{}"s)), WeightFormat::safetensors);
  EXPECT_EQ(weight_format(put("m.pb", "\x89HDF\r\n\x1a\n...."s)), WeightFormat::hdf5);
  EXPECT_EQ(weight_format(put("m.zip", kZip + "\x0d\0\0\0metadata.json"s)), WeightFormat::keras);
  EXPECT_EQ(weight_format(put("m.zip", kZip + "\x10\0\0\0archive/data.pkl"s)), WeightFormat::torch);
  EXPECT_EQ(weight_format(put("m.index", "\x80\x02\x8a\nl\xfc"s)), WeightFormat::torch);
}

TEST_F(ForeignFiles, FoldersAndNamesOfSeveralFiles) {
  put("saved/saved_model.pb", "");
  put("saved/variables/variables.index", "");
  put("saved/variables/variables.data-00000-of-00001", "");
  EXPECT_NE(foreign_folder(folder() / "saved").find("SavedModel"), std::string::npos);
  EXPECT_NE(foreign_folder(folder() / "saved/variables").find("checkpoint"), std::string::npos);
  EXPECT_NE(foreign_folder(folder() / "saved/variables/variables").find("checkpoint"),
            std::string::npos);
  put("other/weights.safetensors", "");
  EXPECT_EQ(foreign_folder(folder() / "other"), "");
  EXPECT_EQ(foreign_folder(folder() / "none"), "");
}

}  // namespace
}  // namespace cputrain::weights
