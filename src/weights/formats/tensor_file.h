#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "system/bounded_file.h"

namespace cputrain::weights {

using Metadata = std::map<std::string, std::string>;

/// How many numbers an array of these extents has.
std::size_t product(std::span<const std::size_t> extents);

/// Where the numbers of an array lie in a file.
struct TensorInfo {
  std::string name, dtype;  ///< of safetensors' types: "F32", "I64"
  std::vector<std::size_t> extents;
  std::size_t begin = 0, end = 0;  ///< bytes in the buffer, from the first number to the last
  /// How many numbers apart the neighbours of each extent lie; empty: row by row without holes.
  std::vector<std::size_t> strides{};
  std::size_t count() const { return product(extents); }
};

/// An opened regular file of named arrays, whose reader has checked what it says of them: each lies
/// in the file and has no more numbers than that. It stays the same file where its name gets
/// another one. Copies share it.
class TensorFile {
 public:
  /// `buffer`: where in the file the bytes of tensors are counted from. `remedy`: what to do where
  /// the file is no use.
  TensorFile(std::filesystem::path path, std::shared_ptr<const system::RegularFile> file,
             std::string remedy, std::uint64_t buffer, Metadata metadata,
             std::vector<TensorInfo> tensors);

  const std::filesystem::path& path() const { return path_; }
  const Metadata& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  /// Null where there is none of that name.
  const TensorInfo* find(const std::string& name) const;
  /// The numbers of an F32, F64, F16 or BF16 tensor, row by row. Error(data).
  std::vector<double> read(const TensorInfo&) const;
  /// The same as float32: half the memory for large tensors.
  std::vector<float> read_floats(const TensorInfo&) const;

 private:
  template <class T>
  std::vector<T> read_as(const TensorInfo&) const;

  std::filesystem::path path_;
  std::shared_ptr<const system::RegularFile> file_;
  std::string remedy_;
  std::uint64_t buffer_;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string, std::size_t> places_;  ///< in tensors_, by name
};

/// The arrays of a file of torch.save (.pth, .pt, .bin, .pth.tar): the zip archive of PyTorch from
/// 1.6 on, or the pickles of older ones (the formats: torch/serialization.py). Nothing of it is
/// run, and numbers stay in the file until they are read. Of a checkpoint those are taken that it
/// calls "state_dict_ema", "model_ema", "state_dict" or "model", averages before the last step's as
/// timm does. Error(data) for what is no such file, holds a program, has an array that does not
/// lie in it, or whose numbers are not those of the archive's checksums.
TensorFile open_torch_file(const std::filesystem::path&);

/// Error(data): "weight file FILE WHAT (it cannot be loaded); REMEDY".
[[noreturn]] void unusable(const std::filesystem::path& file, const std::string& what,
                           const std::string& remedy);

}  // namespace cputrain::weights
