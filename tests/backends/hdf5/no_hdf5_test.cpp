#include <gtest/gtest.h>

#include "backends/hdf5/keras_reader.h"
#include "core/error.h"

namespace cputrain::hdf5 {
namespace {

TEST(NoHdf5, SaysWhatToDo) {
  EXPECT_EQ(hdf5_library(), "no HDF5");
  try {
    read_keras("model.keras");
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    const std::string text = error.what();
    EXPECT_NE(text.find("CPUTRAIN_HDF5=ON"), std::string::npos) << text;
    EXPECT_NE(text.find("safetensors.numpy.save_file({'/'.join(w.path"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace cputrain::hdf5
