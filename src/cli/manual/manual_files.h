#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/help_text.h"

/// Files about the command line that are installed beside the program.
namespace cputrain::cli {

/// What the program cputrain_manual writes: texts of files below a folder, by path.
std::map<std::string, std::string> manual_files(const std::vector<CommandEntry>&);

std::string man_page(const std::vector<CommandEntry>&);
/// A script for bash, with or without the package bash-completion.
std::string bash_completion(const std::vector<CommandEntry>&);
/// A function for zsh's compinit: _cputrain.
std::string zsh_completion(const std::vector<CommandEntry>&);

/// Texts of man(7) between the table's parts, and what bash does with the table of flags.
extern const char *const kManDescription, *const kManSurroundings, *const kBashFunction;

/// What a shell may offer as a value.
struct FlagValues {
  static constexpr const char *kFiles = "files", *kFolders = "folders";

  std::vector<std::string> words{};
  std::string paths{};  ///< kFiles, kFolders, or "" for none
  bool list = false;    ///< several words, with a comma between each two

  bool operator==(const FlagValues&) const = default;
};

FlagValues values_of(const FlagEntry&);

/// The words that a shell offers: "--shuffle", "--no-shuffle".
std::vector<std::string> spellings_of(const FlagEntry&);

}  // namespace cputrain::cli
