#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "comm/communicator.h"
#include "core/error.h"
#include "datasets/datasets.h"
#include "datasets/formats/packed.h"
#include "tests/datasets/made_files.h"
#include "tests/support/temporary_folder.h"

/// A data set that tests pack, and the packed file.
namespace cputrain::datasets {

inline constexpr Shape kImage{12, 12, 3};

inline Bytes content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Ten images of two classes, packed with a validation part of two.
class Packed : public ::testing::Test {
 protected:
  Packed() {
    for (int i = 0; i < 10; ++i) {
      Image image = smooth_image(20, 16);
      for (auto& value : image.rgb) value = static_cast<std::uint8_t>(value - i);
      write_bytes(folder_.path() / "p" / (i % 2 ? "dog" : "cat") / (std::to_string(i) + ".png"),
                  png_of(image));
    }
  }
  data::DataSource source(double split = 0.2) const {
    return pipeline_.open(
        {.spec = (folder_.path() / "p").string(), .validation_split = split, .seed = 4});
  }
  std::string file() const { return (folder_.path() / "p.ctpack").string(); }
  data::PackReport pack(const data::DataSource& from,
                        data::Resizing resize = data::Resize::bilinear) const {
    return pipeline_.pack(from, file(), {kImage, 2, {}, resize});
  }
  data::DecodedData decode(const data::DataSource& from,
                           data::Resizing resize = data::Resize::bilinear) const {
    const auto comm = comm::make_solo();
    return pipeline_.decode(from, {kImage, 1, {}, resize}, comm->node_memory());
  }
  std::string error() const {
    try {
      open_packed(file());
    } catch (const Error& caught) {
      EXPECT_EQ(caught.code(), ExitCode::data);
      EXPECT_NE(std::string(caught.what()).find(file()), std::string::npos);
      return caught.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  testing::TemporaryFolder folder_;
  data::DataPipeline pipeline_ = make_data_pipeline();
};

}  // namespace cputrain::datasets
