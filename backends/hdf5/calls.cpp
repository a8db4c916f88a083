#include "backends/hdf5/calls.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "backends/hdf5/keras_reader.h"
#include "core/error.h"
#include "core/text.h"

namespace cputrain::hdf5 {
namespace {

[[noreturn]] void no_library(const std::string& why) {
  fail(ExitCode::usage,
       fmt::format("files of Keras need {}, which cannot be loaded ({}); install it (Debian's "
                   "libhdf5-dev brings it), name its folder in LD_LIBRARY_PATH, or {}",
                   CPUTRAIN_HDF5_SONAME, printable(why), kHowToMakeSafetensors));
}

void* open_library(std::span<const char* const> files) {
  for (const char* file : files) {
    if (void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  const char* const error = ::dlerror();
  no_library(error ? error : "the loader says no reason");
}

template <class Symbol>
Symbol found_in(void* library, const char* name) {
  void* const symbol = ::dlsym(library, name);
  if (!symbol) no_library(fmt::format("it has no {}", name));
  return reinterpret_cast<Symbol>(symbol);
}

/// One that the library has made.
hid_t identifier_in(void* library, const char* name) {
  const hid_t id = *found_in<const hid_t*>(library, name);
  if (id <= 0) no_library(fmt::format("it does not set {}", name));
  return id;
}

#define CPUTRAIN_HDF5_TEXT_OF(name) #name
#define CPUTRAIN_HDF5_TEXT(name) CPUTRAIN_HDF5_TEXT_OF(name)

}  // namespace

Calls load_calls(std::span<const char* const> files) {
  void* const library = open_library(files);
  Calls table;
#define CPUTRAIN_HDF5_FIND(name) \
  table.name = found_in<decltype(table.name)>(library, CPUTRAIN_HDF5_TEXT(name));
  CPUTRAIN_HDF5_CALLS(CPUTRAIN_HDF5_FIND)
#undef CPUTRAIN_HDF5_FIND
  if (table.H5open() < 0) no_library("it does not begin");
  table.native_float = identifier_in(library, "H5T_NATIVE_FLOAT_g");
  table.native_double = identifier_in(library, "H5T_NATIVE_DOUBLE_g");
  table.file_access = identifier_in(library, "H5P_CLS_FILE_ACCESS_ID_g");
  return table;
}

/// As the system's loader finds it, or where it was as this program was built.
const Calls& calls() {
  static constexpr const char* kFiles[]{CPUTRAIN_HDF5_SONAME, CPUTRAIN_HDF5_FILE};
  static const Calls loaded = load_calls(kFiles);
  return loaded;
}

}  // namespace cputrain::hdf5
