#include "model/weights/foreign_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::model {
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
     "this is a zip archive of other files than Keras'; unpack it, and name the file of weights "
     "that lies in it"}};

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;  // what cannot be looked at is not there for us
  return fs::exists(path, ignored);
}

/// "model.ckpt.data-00000-of-00001".
bool is_shard(const std::string& name) {
  const std::size_t data = name.rfind(".data-");
  return data != std::string::npos && name.find("-of-", data) != std::string::npos;
}

fs::path with_ending(fs::path path, const char* ending) { return path += ending; }

}  // namespace

std::string foreign_file(const fs::path& path, std::string_view bytes) {
  const auto by_bytes = std::ranges::find_if(kForms, [&](const Form& form) {
    return !form.bytes.empty() && bytes.size() > form.at &&
           bytes.substr(form.at).starts_with(form.bytes);
  });
  if (by_bytes != std::end(kForms)) return std::string(by_bytes->text);
  const std::string name = in_small_letters(path.filename().string());
  if (is_shard(name)) return std::string(kCheckpoint);
  const auto by_name = std::ranges::find_if(kForms, [&](const Form& form) {
    return std::ranges::any_of(form.endings, [&](std::string_view ending) {
      return !ending.empty() && name.ends_with(ending);
    });
  });
  return by_name == std::end(kForms) ? "" : std::string(by_name->text);
}

std::string foreign_folder(const fs::path& path) {
  if (is_there(path / "saved_model.pb") || is_there(path / "saved_model.pbtxt")) {
    return std::string(kSavedModel);
  }
  const fs::path index = with_ending(path, ".index");
  if (!is_there(path) && is_there(index)) return std::string(kCheckpoint);
  std::error_code error;
  for (auto entry = fs::directory_iterator(path, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (is_shard(entry->path().filename().string())) return std::string(kCheckpoint);
  }
  return "";  // what cannot be looked at is told where it is read
}

void refuse_foreign(const fs::path& path, const std::string& what) {
  fail(ExitCode::data, fmt::format("--weights {}: {}", printable(path.string()), what));
}

}  // namespace cputrain::model
