#include "tests/backends/hdf5/made_hdf5.h"

#include <gtest/gtest.h>

namespace cputrain::hdf5 {
namespace {

hid_t good(hid_t id) {
  EXPECT_GE(id, 0);
  return id;
}

}  // namespace

MadeFile::MadeFile(const std::filesystem::path& path)
    : id_(good(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT))) {}

MadeFile::~MadeFile() { H5Fclose(id_); }

void MadeFile::group(const std::string& path) {
  const hid_t links = good(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links, 1);
  H5Gclose(good(H5Gcreate2(id_, path.c_str(), links, H5P_DEFAULT, H5P_DEFAULT)));
  H5Pclose(links);
}

void MadeFile::raw(const std::string& path, const std::vector<hsize_t>& extents, hid_t type,
                   const void* values, hid_t plan) {
  const hid_t links = good(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links, 1);
  const hid_t space = good(extents.empty() ? H5Screate(H5S_SCALAR)
                                           : H5Screate_simple(static_cast<int>(extents.size()),
                                                              extents.data(), nullptr));
  const hid_t set = good(H5Dcreate2(id_, path.c_str(), type, space, links, plan, H5P_DEFAULT));
  if (values) {
    EXPECT_GE(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), 0);
  }
  H5Dclose(set);
  H5Sclose(space);
  H5Pclose(links);
}

void MadeFile::array(const std::string& path, const std::vector<hsize_t>& extents,
                     const std::vector<float>& values, hid_t type, hid_t plan) {
  raw(path, extents, type, nullptr, plan);
  const hid_t set = good(H5Dopen2(id_, path.c_str(), H5P_DEFAULT));
  EXPECT_GE(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(set);
}

void MadeFile::text(const std::string& path, const std::string& name, const std::string& value) {
  const hid_t object = good(H5Oopen(id_, path.c_str(), H5P_DEFAULT));
  const hid_t type = good(H5Tcopy(H5T_C_S1)), space = good(H5Screate(H5S_SCALAR));
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  const hid_t attribute =
      good(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
  const char* words = value.c_str();
  EXPECT_GE(H5Awrite(attribute, type, &words), 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Oclose(object);
}

void MadeFile::texts(const std::string& path, const std::string& name,
                     const std::vector<std::string>& values, std::size_t length) {
  const hid_t object = good(H5Oopen(id_, path.c_str(), H5P_DEFAULT));
  const hid_t type = good(H5Tcopy(H5T_C_S1));
  H5Tset_size(type, length);
  H5Tset_strpad(type, H5T_STR_NULLPAD);
  const hsize_t count = values.size();
  const hid_t space = good(H5Screate_simple(1, &count, nullptr));
  const hid_t attribute =
      good(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT));
  std::string all;
  for (std::string value : values) {
    value.resize(length, '\0');
    all += value;
  }
  EXPECT_GE(H5Awrite(attribute, type, all.data()), 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Tclose(type);
  H5Oclose(object);
}

}  // namespace cputrain::hdf5
