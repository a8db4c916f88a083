#include "weights/weight_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "core/text.h"
#include "system/bounded_file.h"
#include "system/file_system.h"
#include "weights/formats/tensor_file.h"
#include "weights/keras_arrays.h"
#include "weights/torch_arrays.h"

namespace cputrain::weights {
namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

/// A form of weights, known by the end of its name or by bytes.
struct Form {
  std::string_view bytes{};  ///< empty: the name alone tells
  std::size_t at = 0;        ///< where the bytes begin
  std::array<std::string_view, 2> endings{};
  std::string_view text;
};

constexpr std::string_view kSavedModel =
    "this is TensorFlow's SavedModel (a program as a graph, whose arrays have no names of layers); "
    "load it in the Keras 2 that made it (tf_keras.models.load_model) and save it with "
    "model.save('x.keras') or model.save_weights('x.weights.h5')";
constexpr std::string_view kCheckpoint =
    "this is a checkpoint of TensorFlow (a table of objects in several files); make the network in "
    "the Keras 2 that wrote it, model.load_weights() it without .index or .data in its name, and "
    "save it with model.save('x.keras') or model.save_weights('x.weights.h5')";
constexpr std::string_view kNumpy =
    "this is a file of NumPy (its arrays are those of any program); where they have the names that "
    "layers have here, safetensors.numpy.save_file(dict(numpy.load('x.npz')), 'x.safetensors') "
    "makes a file that is read";

constexpr std::string_view kTar =
    "this is a tar archive (of files, or what PyTorch before 0.1.10 wrote); unpack it and name the "
    "file of weights, or save it again in PyTorch: torch.save(torch.load('x.pth'), 'y.pth')";

constexpr std::string_view kPage =
    "this is a page of HTML (what a server sends in place of a file that it has not, or wants a "
    "login for); download the file itself";

/// In this order; what is told by bytes comes first.
constexpr Form kForms[] = {
    {"<!DOCTYPE"sv, 0, {}, kPage},
    {"<!doctype"sv, 0, {}, kPage},
    {"<html"sv, 0, {}, kPage},
    {"version https://git-lfs"sv,
     0,
     {},
     "this is a pointer of Git LFS (three lines in place of the file); git lfs pull fetches the "
     "file itself"},
    {"{"sv,
     0,
     {},
     "this is JSON (a model file, or what a server sends in place of a file); name the file of "
     "weights"},
    {"ustar"sv, 257, {}, kTar},
    {"TFL3"sv,
     4,
     {".tflite"},
     "this is a model of TensorFlow Lite (for inference: its arrays are renamed, and mostly "
     "rounded to bytes); use the file that it was made from: in Keras, model.save('x.keras') or "
     "model.save_weights('x.weights.h5')"},
    {"\x93NUMPY"sv, 0, {".npy", ".npz"}, kNumpy},
    {"model_checkpoint_path:"sv, 0, {".index", ".meta"}, kCheckpoint},
    {"",
     0,
     {".onnx"},
     "this is an ONNX graph (cputrain writes such files and reads none: programs that make them "
     "rename arrays and merge layers); use the weights that it was made from, as safetensors of "
     "PyTorch or as model.save('x.keras') of Keras"},
    {"",
     0,
     {".pb", ".pbtxt"},
     "this is a graph of TensorFlow, frozen or of a SavedModel (its arrays have no names of "
     "layers); load what it was made from in Keras and save it with model.save('x.keras') or "
     "model.save_weights('x.weights.h5')"},
    {"",
     0,
     {".msgpack"},
     "this is a file of Flax (its arrays have other names than layers have here); in Python, read "
     "it with flax.serialization.msgpack_restore and write the arrays under the names that layers "
     "have here (cputrain info --model NAME) with safetensors.numpy.save_file"},
    {"",
     0,
     {".zip"},
     "this is a zip archive of other files than Keras' and PyTorch's; unpack it, and name the file "
     "of weights "
     "that lies in it"}};

/// "model.ckpt.data-00000-of-00001".
bool is_shard(const std::string& name) {
  const std::size_t data = name.rfind(".data-");
  return data != std::string::npos && name.find("-of-", data) != std::string::npos;
}

fs::path with_ending(fs::path path, const char* ending) { return path += ending; }

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
    fail(ExitCode::data, "weight file {} {} (it cannot be loaded); check --weights", path.string(),
         error.what());
  }
}

/// What a file is by its name alone: safetensors where that says nothing.
WeightFormat called_format(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const auto ends = [&](const char* ending) { return name.ends_with(ending); };
  if (ends(".keras")) return WeightFormat::keras;
  if (ends(".h5") || ends(".hdf5")) return WeightFormat::hdf5;
  const bool torch = ends(".pth") || ends(".pt") || ends(".bin") || ends(".pth.tar");
  return torch ? WeightFormat::torch : WeightFormat::safetensors;
}

/// A file that begins with nothing known, and is called as those of other programs are.
void refuse_wrong_name(const std::filesystem::path& path, std::string_view text) {
  const WeightFormat called = called_format(path);
  if (called == WeightFormat::safetensors) return;
  const char* what = called == WeightFormat::keras  ? "no .keras archive"
                     : called == WeightFormat::hdf5 ? "no HDF5 file"
                                                    : "no file of torch.save()";
  fail(ExitCode::data,
       "weight file {} is {} (it cannot be loaded); check --weights, or copy or fetch the file "
       "again",
       path.string(), text.empty() ? "empty" : fmt::format("{}, though it is called one", what));
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
  if (first.ends_with("/data.pkl")) return WeightFormat::torch;
  constexpr std::string_view kKeras[] = {"metadata.json", "config.json", "model.weights.h5"};
  if (std::ranges::find(kKeras, first) != std::end(kKeras)) return WeightFormat::keras;
  const std::string what = foreign_file(first.ends_with(".npy") ? "arrays.npz" : path, zip);
  if (!what.empty()) refuse_foreign(path, what);
  return called_format(path) == WeightFormat::torch ? WeightFormat::torch : WeightFormat::keras;
}

}  // namespace

std::vector<double> StoredArray::read() const {
  if (doubles) return doubles();
  const std::vector<float> values = floats();
  return {values.begin(), values.end()};
}

StoredArray unread_array(const TensorInfo& tensor) {
  return {.name = tensor.name,
          .extents = tensor.extents,
          .file_name = tensor.name,
          .file_extents = tensor.extents,
          .floats = {}};
}

WeightArrays::WeightArrays(const TensorFile& file) : path(file.path()), metadata(file.metadata()) {
  const auto shared = std::make_shared<const TensorFile>(file);
  for (const TensorInfo& tensor : shared->tensors()) {
    StoredArray& array = arrays.emplace_back(unread_array(tensor));
    array.floats = [shared, &tensor] { return shared->read_floats(tensor); };
    array.doubles = [shared, &tensor] { return shared->read(tensor); };
  }
}

std::unordered_map<std::string_view, const StoredArray*> WeightArrays::by_name() const {
  std::unordered_map<std::string_view, const StoredArray*> found;
  for (const StoredArray& array : arrays) {
    if (array.floats) found[array.name] = &array;
  }
  return found;
}

const StoredArray* WeightArrays::find(std::string_view name) const {
  const auto is_it = [&](const StoredArray& array) { return array.floats && array.name == name; };
  const auto found = std::find_if(arrays.rbegin(), arrays.rend(), is_it);
  return found == arrays.rend() ? nullptr : &*found;
}

std::string foreign_file(const fs::path& path, std::string_view bytes) {
  const auto by_bytes = std::ranges::find_if(kForms, [&](const Form& form) {
    return !form.bytes.empty() && bytes.size() > form.at &&
           bytes.substr(form.at).starts_with(form.bytes);
  });
  if (by_bytes != std::end(kForms)) return std::string(by_bytes->text);
  const std::string name = small_letters(path.filename().string());
  if (is_shard(name)) return std::string(kCheckpoint);
  const auto by_name = std::ranges::find_if(kForms, [&](const Form& form) {
    return std::ranges::any_of(form.endings, [&](std::string_view ending) {
      return !ending.empty() && name.ends_with(ending);
    });
  });
  return by_name == std::end(kForms) ? "" : std::string(by_name->text);
}

std::string foreign_folder(const fs::path& path) {
  if (system::is_present(path / "saved_model.pb") ||
      system::is_present(path / "saved_model.pbtxt")) {
    return std::string(kSavedModel);
  }
  const fs::path index = with_ending(path, ".index");
  if (!system::is_present(path) && system::is_present(index)) return std::string(kCheckpoint);
  // What cannot be looked at is told where it is read.
  const bool shards = std::ranges::any_of(system::names_in(path), is_shard);
  return shards ? std::string(kCheckpoint) : "";
}

void refuse_foreign(const fs::path& path, const std::string& what) {
  fail(ExitCode::data, "--weights {}: {}", printable(path.string()), what);
}

WeightFormat weight_format(const std::filesystem::path& path) {
  const std::string bytes = first_bytes(path);
  const std::string_view text = bytes;
  if (text.starts_with(kHdf5)) return WeightFormat::hdf5;
  if (text.starts_with(kZip) || text.starts_with(kEmptyZip)) return form_of_archive(path, text);
  // Protocol 2 and later, which PyTorch has always written; behind it a header of safetensors would
  // be one of at least 32 KB that begins otherwise.
  const bool safetensors = text.size() > 8 && text[8] == '{';  // behind its header's length
  const bool pickle = text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
  if (pickle && !safetensors) return WeightFormat::torch;
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

TensorFile open_tensors(const std::filesystem::path& path) {
  if (weight_format(path) == WeightFormat::torch) return open_torch_file(path);
  return safetensors::open(path);
}

void check_weights(const std::filesystem::path& path, const ReadKeras& read_keras) {
  if (is_of_keras(path)) {
    read_keras(path);
  } else {
    open_tensors(path);
  }
}

WeightArrays open_arrays(const std::filesystem::path& path, const model::Graph& graph,
                         std::span<const ModuleNames> names, const ReadKeras& read_keras,
                         bool may_differ) {
  if (is_of_keras(path)) return keras_arrays(read_keras(path), graph, names, may_differ);
  return arrays_for(open_tensors(path), graph, names);
}

}  // namespace cputrain::weights
