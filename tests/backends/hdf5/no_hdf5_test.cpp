#include <gtest/gtest.h>

#include "backends/hdf5/keras_reader.h"
#include "core/error.h"
#include "tests/support/refusal.h"

namespace cputrain::hdf5 {
namespace {

TEST(NoHdf5, SaysWhatToDo) {
  EXPECT_EQ(hdf5_library(), "no HDF5");
  const std::string text = testing::refused(ExitCode::usage, [&] { read_keras("model.keras"); });
  EXPECT_NE(text.find("CPUTRAIN_HDF5=ON"), std::string::npos) << text;
  EXPECT_NE(text.find("safetensors.numpy.save_file({'/'.join(w.path"), std::string::npos) << text;
}

}  // namespace
}  // namespace cputrain::hdf5
