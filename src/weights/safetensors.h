#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "system/bounded_file.h"
#include "system/files.h"

/// The safetensors format: 8 bytes with the header's length, a JSON header, one buffer. Files from
/// users are hostile until checked: every rule of the format is verified before a number is read.
namespace cputrain::weights::safetensors {

using Metadata = std::map<std::string, std::string>;

/// A tensor to write, F32 or, where `doubles` is given instead of `values`, F64. That is called
/// once, when its turn comes.
struct OutTensor {
  std::string name;
  std::vector<std::size_t> extents;
  std::function<std::vector<float>()> values;
  std::function<std::vector<double>()> doubles{};
};

/// Writes tensors, those of F64 first, so that all are aligned, then by name, behind a header that
/// is padded with spaces to 8 bytes. Names are unique. Error(output).
void write(system::OutputFile&, const Metadata&, std::vector<OutTensor> tensors);
/// The same into a file of ours, which is whole or absent.
void write(const std::filesystem::path&, const Metadata&, std::vector<OutTensor> tensors,
           system::Durability = system::Durability::disk);

struct TensorInfo {
  std::string name, dtype;
  std::vector<std::size_t> extents;
  std::size_t begin = 0, end = 0;  ///< bytes in the buffer
  std::size_t count() const;
};

/// An opened regular file whose header was checked: at most 100 MB and 100,000 tensors. It stays
/// the same file where its name gets another one. Error(data) names what is wrong.
class File {
 public:
  explicit File(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  /// Null where there is none of that name.
  const TensorInfo* find(const std::string& name) const;
  /// The numbers of an F32, F64, F16 or BF16 tensor.
  std::vector<double> read(const TensorInfo&) const;
  /// The same as float32: half the memory for large tensors.
  std::vector<float> read_floats(const TensorInfo&) const;

 private:
  [[noreturn]] void wrong(const std::string& what) const;
  void read_all();
  /// Fills metadata_ and tensors_ from the header's text.
  void read_header(const std::string& header);
  /// The tensors cover the buffer without a hole or an overlap.
  void check_buffer(std::size_t buffer_bytes) const;
  std::size_t checked_bytes(const TensorInfo&) const;
  template <class T>
  std::vector<T> read_as(const TensorInfo&) const;

  std::filesystem::path path_;
  std::shared_ptr<const system::RegularFile> file_;
  std::size_t buffer_start_ = 0;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;                      ///< in the order of the buffer
  std::unordered_map<std::string, std::size_t> places_;  ///< in tensors_, by name
};

}  // namespace cputrain::weights::safetensors
