#include "model/weights/weight_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/text.h"
#include "model/weights/foreign_files.h"
#include "model/weights/torch_arrays.h"
#include "model/weights/weight_arrays.h"
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
  if (!(archive || hdf5)) return;
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

/// The form of a zip archive. NumPy's, and those that are called as others are, are refused, where
/// they do not begin as Keras' do.
WeightFormat form_of_archive(const std::filesystem::path& path, std::string_view zip) {
  const std::string_view first = first_name(zip);
  if (first.ends_with("/data.pkl")) return WeightFormat::pickle;
  constexpr std::string_view kKeras[] = {"metadata.json", "config.json", "model.weights.h5"};
  if (std::ranges::find(kKeras, first) != std::end(kKeras)) return WeightFormat::keras;
  const std::string what = foreign_file(first.ends_with(".npy") ? "arrays.npz" : path, zip);
  if (!what.empty()) refuse_foreign(path, what);
  return WeightFormat::keras;
}

/// A text of Python.
std::string python_text(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') result += '\\';
    result += c;
  }
  return result + "'";
}

}  // namespace

WeightFormat weight_format(const std::filesystem::path& path) {
  const std::string bytes = first_bytes(path);
  const std::string_view text = bytes;
  if (text.starts_with(kHdf5)) return WeightFormat::hdf5;
  if (text.starts_with(kZip) || text.starts_with(kEmptyZip)) return form_of_archive(path, text);
  // Protocol 2 and later, which PyTorch has always written; behind it a header of safetensors would
  // be one of at least 32 KB that begins otherwise.
  const bool safetensors = text.size() > 8 && text[8] == '{';  // behind its header's length
  const bool pickle = text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
  if (pickle && !safetensors) return WeightFormat::pickle;
  if (safetensors) return WeightFormat::safetensors;
  const std::string what = foreign_file(path, text);
  if (!what.empty()) refuse_foreign(path, what);
  refuse_wrong_name(path, text);
  return WeightFormat::safetensors;
}

bool is_of_keras(const std::filesystem::path& path) {
  const WeightFormat format = weight_format(path);
  return format == WeightFormat::hdf5 || format == WeightFormat::keras;
}

void refuse_pickle(const std::filesystem::path& path) {
  throw ErrorWithLines(
      ExitCode::data,
      fmt::format(
          "--weights {}: this is a pickle of PyTorch (a program that runs as it is read, "
          "which a file from elsewhere must not); these lines of Python make safetensors "
          "of it (pip install torch safetensors; src/model/weights/README.md explains them):",
          printable(path.string())),
      {"import argparse, torch, safetensors.torch",
       "torch.serialization.add_safe_globals([argparse.Namespace])",
       fmt::format("file = torch.load({}, map_location='cpu', weights_only=True)",
                   python_text(path.string())),
       "names = ['state_dict_ema', 'model_ema', 'state_dict', 'model']  # averages (EMA) first",
       "state = next((file[n] for n in names if isinstance(file.get(n), dict)), file)",
       "state = {k: v.clone().contiguous() for k, v in state.items() if torch.is_tensor(v) and "
       "v.dim()}",
       "safetensors.torch.save_file(state, 'weights.safetensors')"});
}

WeightArrays open_arrays(const std::filesystem::path& path, const Graph& graph,
                         std::span<const ModuleNames> names, const ReadKeras& read_keras,
                         Otherwise otherwise) {
  switch (weight_format(path)) {
    case WeightFormat::pickle:
      refuse_pickle(path);
    case WeightFormat::hdf5:
    case WeightFormat::keras:
      return keras_arrays(read_keras(path), graph, names, otherwise);
    case WeightFormat::safetensors:
      break;
  }
  return arrays_for(safetensors::File(path), graph, names);
}

}  // namespace cputrain::model
