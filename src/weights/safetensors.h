#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "system/files.h"
#include "weights/formats/tensor_file.h"

/// The safetensors format: 8 bytes with the header's length, a JSON header, one buffer. Files from
/// users are hostile until checked: every rule of the format is verified before a number is read.
namespace cputrain::weights::safetensors {

using weights::Metadata;

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

/// Opens a regular file and checks its header: at most 100 MB and 100,000 tensors, which are in the
/// order of the buffer. Error(data) names what is wrong.
TensorFile open(const std::filesystem::path&);

}  // namespace cputrain::weights::safetensors
