#include "backends/hdf5/calls.h"

#include <fmt/format.h>

#include <stdexcept>

#include "backends/hdf5/keras_reader.h"
#include "core/error.h"

namespace cputrain::hdf5 {
namespace {

/// One that the library has made.
hid_t identifier_in(const system::LateLibrary& library, const char* name) {
  const hid_t* id = nullptr;
  library.find(name, id);
  if (*id <= 0) library.refuse(fmt::format("it does not set {}", name));
  return *id;
}

Calls calls_of(const system::LateLibrary& library) {
  Calls table;
  CPUTRAIN_HDF5_CALLS(CPUTRAIN_LATE_FIND)
  if (table.H5open() < 0) library.refuse("it does not begin");
  table.native_float = identifier_in(library, "H5T_NATIVE_FLOAT_g");
  table.native_double = identifier_in(library, "H5T_NATIVE_DOUBLE_g");
  table.file_access = identifier_in(library, "H5P_CLS_FILE_ACCESS_ID_g");
  return table;
}

}  // namespace

Calls load_calls(const char* name, const char* file, const char* package) {
  try {
    return calls_of(system::LateLibrary(name, file, package));
  } catch (const std::runtime_error& error) {
    fail(ExitCode::usage,
         fmt::format("files of Keras need {}, or {}", error.what(), kHowToMakeSafetensors));
  }
}

const Calls& calls() {
  static const Calls loaded = load_calls(CPUTRAIN_HDF5_FILES);
  return loaded;
}

}  // namespace cputrain::hdf5
