#include "model/weights/weight_format.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>

#include "core/error.h"
#include "system/bounded_file.h"

namespace cputrain::model {
namespace {

constexpr std::string_view kHdf5 = "\x89HDF\r\n\x1a\n", kZip = "PK\x03\x04",
                           kEmptyZip = "PK\x05\x06";

/// Enough for the name of an archive's first file.
std::string first_bytes(const std::filesystem::path& path) {
  try {
    const system::RegularFile file(path);
    std::string bytes(512, '\0');
    bytes.resize(file.read_some(0, std::as_writable_bytes(std::span(bytes))));
    return bytes;
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, fmt::format("weight file {} {} (it cannot be loaded); check --weights",
                                     path.string(), error.what()));
  }
}

/// A file that is called as Keras' are, and begins with none of what these begin with.
void refuse_wrong_name(const std::filesystem::path& path, std::string_view text) {
  const std::string ending = path.extension().string();
  const bool archive = ending == ".keras", hdf5 = ending == ".h5" || ending == ".hdf5";
  const bool safetensors = text.size() > 8 && text[8] == '{';  // behind the header's length
  if (!(archive || hdf5) || safetensors) return;
  const char* what = text.empty() ? "is empty"
                     : archive    ? "is no .keras archive, though it is called one"
                                  : "is no HDF5 file, though it is called one";
  fail(ExitCode::data, fmt::format("weight file {} {} (it cannot be loaded); check --weights",
                                   path.string(), what));
}

/// The name of an archive's first file: 26 bytes behind its beginning is its length.
std::string_view first_name(std::string_view zip) {
  if (zip.size() < 30) return {};
  const auto length = static_cast<unsigned char>(zip[26]) | static_cast<unsigned char>(zip[27])
                                                                << 8;
  return zip.substr(30, static_cast<std::size_t>(length));
}

}  // namespace

WeightFormat weight_format(const std::filesystem::path& path) {
  const std::string bytes = first_bytes(path);
  const std::string_view text = bytes;
  if (text.starts_with(kHdf5)) return WeightFormat::hdf5;
  if (text.starts_with(kEmptyZip)) return WeightFormat::keras;
  if (text.starts_with(kZip)) {
    return first_name(text).ends_with("/data.pkl") ? WeightFormat::pickle : WeightFormat::keras;
  }
  // Protocol 2 and later, which PyTorch has always written; behind it a header of safetensors would
  // be one of at least 32 KB that begins otherwise.
  const bool pickle = text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
  if (pickle && text.substr(8, 1) != "{") return WeightFormat::pickle;
  refuse_wrong_name(path, text);
  return WeightFormat::safetensors;
}

bool is_of_keras(const std::filesystem::path& path) {
  const WeightFormat format = weight_format(path);
  return format == WeightFormat::hdf5 || format == WeightFormat::keras;
}

void refuse_pickle(const std::filesystem::path& path) {
  fail(ExitCode::data,
       fmt::format("--weights {0}: this is a pickle of PyTorch (a program that runs as it is read, "
                   "which a file from elsewhere must not); make safetensors of it in Python: "
                   "import torch, safetensors.torch; "
                   "safetensors.torch.save_file({{k: v.contiguous() for k, v in "
                   "torch.load('{0}', weights_only=True).items()}}, 'weights.safetensors')",
                   path.string()));
}

}  // namespace cputrain::model
