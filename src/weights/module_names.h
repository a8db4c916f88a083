#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Names that other programs have for the layers of a network, by rules and not by lists.
namespace cputrain::weights {

/// A layer of this program and a module of the other one: text, in which `{x}` stands for a whole
/// number. In `theirs`, `{x-1}` and `{x+1}` are its neighbours: "conv{s}_block{b}_1_conv" is
/// "layer{s-1}.{b-1}.conv1".
struct NameRule {
  std::string ours, theirs;
};

/// The names that one program has for the layers of a network.
struct ModuleNames {
  std::string source;  ///< "torchvision"
  std::vector<NameRule> rules;

  /// By the first rule that fits; nothing where none does.
  std::optional<std::string> module(std::string_view layer) const;
};

}  // namespace cputrain::weights
