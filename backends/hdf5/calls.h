#pragma once

#include <hdf5.h>

#include "system/late_library.h"

/// Functions of libhdf5 that are called here.
// clang-format off
#define CPUTRAIN_HDF5_CALLS(call) \
  call(H5Aclose) call(H5Aget_space) call(H5Aget_type) call(H5Aiterate2) call(H5Aopen) \
  call(H5Aread) call(H5Dclose) call(H5Dget_create_plist) call(H5Dget_space) \
  call(H5Dget_storage_size) call(H5Dget_type) call(H5Dopen2) call(H5Dread) call(H5Eset_auto2) \
  call(H5Fclose) call(H5Fopen) call(H5Iget_type) call(H5Lvisit) call(H5Oclose) call(H5Oopen) \
  call(H5PLset_loading_state) call(H5Pclose) call(H5Pcreate) call(H5Pget_external_count) \
  call(H5Pget_layout) call(H5Pget_nfilters) call(H5Pset_fapl_core) call(H5Pset_file_image) \
  call(H5Pset_file_image_callbacks) call(H5Sclose) call(H5Sget_simple_extent_dims) \
  call(H5Sget_simple_extent_ndims) call(H5Sget_simple_extent_npoints) call(H5Tclose) \
  call(H5Tcopy) call(H5Tget_class) call(H5Tget_size) call(H5Tis_variable_str) \
  call(H5free_memory) call(H5open)
// clang-format on

namespace cputrain::hdf5 {

/// The library by a table of functions: with libcurl, Kerberos and thirty others behind it,
/// Debian's would double what every rank loads at its start.
struct Calls {
  CPUTRAIN_HDF5_CALLS(CPUTRAIN_LATE_MEMBER)
  // Identifiers that the library makes as it begins.
  hid_t native_float = H5I_INVALID_HID, native_double = H5I_INVALID_HID,
        file_access = H5I_INVALID_HID;
};

/// Error(usage) where it cannot be loaded.
Calls load_calls(const char* name, const char* file, const char* package);

/// That of this process, loaded with the first call.
const Calls& calls();

}  // namespace cputrain::hdf5
