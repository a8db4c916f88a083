#include "cli/commands/export_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "core/error.h"
#include "core/text.h"
#include "data/classes/class_names.h"
#include "system/bounded_file.h"

namespace cputrain::commands {
namespace {

struct Ending {
  std::string_view ending, of, hint = {};
};

constexpr std::string_view kKerasHint =
    "; to take the weights into Keras, write safetensors and see src/zoo/README.md, \"Back into "
    "Keras\"";
constexpr std::string_view kTorchHint =
    "; to take the weights into PyTorch, write safetensors with --export-layout torch and see "
    "src/zoo/README.md";

constexpr Ending kEndings[] = {{".safetensors", "safetensors"},
                               {".onnx", "ONNX"},
                               {".json", "a model file"},
                               {".keras", "Keras", kKerasHint},
                               {".h5", "Keras' HDF5", kKerasHint},
                               {".hdf5", "Keras' HDF5", kKerasHint},
                               {".pth", "PyTorch's pickles", kTorchHint},
                               {".pt", "PyTorch's pickles", kTorchHint},
                               {".bin", "PyTorch's pickles", kTorchHint},
                               {".ckpt", "checkpoints of other programs"},
                               {".pb", "TensorFlow's graphs"},
                               {".tflite", "TensorFlow Lite"},
                               {".npz", "NumPy"},
                               {".npy", "NumPy"},
                               {".msgpack", "Flax"}};

/// A name a line; an empty one behind the last does not count.
std::vector<std::string> names_in_file(const std::string& path) {
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{16} << 20;
  std::error_code none;
  if (!std::filesystem::exists(path, none)) {
    fail(ExitCode::usage,
         fmt::format("--class-names {}: there is no such file, and one name is too few (a network "
                     "has two classes or more); write NAME,NAME,... or name a file with a name a "
                     "line",
                     printable(path)));
  }
  try {
    std::vector<std::string> names = split(system::read_bounded(path, kMostBytes), '\n');
    for (std::string& name : names) {
      if (name.ends_with('\r')) name.pop_back();
    }
    while (!names.empty() && names.back().empty()) names.pop_back();
    return names;
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, fmt::format("--class-names {} {} (its names cannot be read); check the "
                                     "path",
                                     printable(path), error.what()));
  }
}

/// A clause such as "class name 'cat' stands for two classes"; empty where nothing is wrong.
std::string mistake_of(const std::vector<std::string>& names) {
  if (names.empty()) return "the file has no name";
  const std::string mistake = data::class_names_mistake(names);
  if (!mistake.empty()) return mistake;
  const auto strange =
      std::ranges::find_if(names, [](const std::string& name) { return escaped(name) != name; });
  if (strange == names.end()) return "";
  return fmt::format("class name '{}' has characters that cannot be printed", printable(*strange));
}

}  // namespace

void check_ending(const std::string& flag, const std::string& file, const std::string& ending) {
  const std::string name = small_letters(file);
  const auto other =
      std::ranges::find_if(kEndings, [&](const Ending& one) { return name.ends_with(one.ending); });
  if (other == std::end(kEndings) || other->ending == ending) return;
  fail(ExitCode::usage,
       fmt::format("--{} {}: {} is the ending of {} (the flag writes another format, and programs "
                   "go by the name); name a file that ends with {}{}",
                   flag, printable(file), other->ending, other->of, ending,
                   flag == "safetensors" ? other->hint : ""));
}

std::vector<std::string> parse_names_of_classes(const std::string& text) {
  const bool is_list = text.find(',') != std::string::npos;
  std::vector<std::string> names = is_list ? split(text, ',') : names_in_file(text);
  const std::string mistake = mistake_of(names);
  if (mistake.empty()) return names;
  fail(ExitCode::usage, fmt::format("--class-names: {} (a class is known by its name); write one "
                                    "name for each class, as cat,dog",
                                    mistake));
}

}  // namespace cputrain::commands
