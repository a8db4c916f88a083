#pragma once

#include <string>
#include <vector>

#include "cli/help/reference.h"

/// Files about the command line that are installed beside the program.
namespace cputrain::cli {

std::string man_page(const std::vector<CommandEntry>&);
/// A script for bash, with or without the package bash-completion.
std::string bash_completion(const std::vector<CommandEntry>&);
/// A function for zsh's compinit: _cputrain.
std::string zsh_completion(const std::vector<CommandEntry>&);

/// A file below a folder, and what is in it.
struct ManualFile {
  std::string path;  ///< "man/cputrain.1"
  std::string text;
};

/// What the program cputrain_manual writes.
std::vector<ManualFile> manual_files(const std::vector<CommandEntry>&);

}  // namespace cputrain::cli
