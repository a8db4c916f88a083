#pragma once

#include <hdf5.h>

#include <filesystem>
#include <string>
#include <vector>

namespace cputrain::hdf5 {

/// An HDF5 file that a test writes.
class MadeFile {
 public:
  explicit MadeFile(const std::filesystem::path&);
  ~MadeFile();
  MadeFile(const MadeFile&) = delete;
  MadeFile& operator=(const MadeFile&) = delete;

  hid_t id() const { return id_; }
  /// With all groups on its way.
  void group(const std::string& path);
  /// Numbers are kept as `type`; `plan` says how they are stored.
  void array(const std::string& path, const std::vector<hsize_t>& extents,
             const std::vector<float>& values, hid_t type = H5T_IEEE_F32LE,
             hid_t plan = H5P_DEFAULT);
  void raw(const std::string& path, const std::vector<hsize_t>& extents, hid_t type,
           const void* values, hid_t plan = H5P_DEFAULT);
  /// As Keras 3 writes texts (of variable length) and as older versions do (of one length).
  void text(const std::string& path, const std::string& name, const std::string& value);
  void texts(const std::string& path, const std::string& name,
             const std::vector<std::string>& values, std::size_t length);

 private:
  hid_t id_;
};

}  // namespace cputrain::hdf5
