#pragma once

#include <string>
#include <vector>

#include "cli/help/reference.h"

namespace cputrain::cli {

/// What a shell may offer as a value.
struct FlagValues {
  enum class Paths { none, files, folders };
  std::vector<std::string> words{};
  Paths paths = Paths::none;
  bool list = false;  ///< several words, with a comma between each two

  bool operator==(const FlagValues&) const = default;
};

FlagValues values_of(const FlagEntry&);

/// What a command takes beside flags: files, folders or nothing.
FlagValues::Paths paths_of(const CommandEntry&);

/// The words that a shell offers: "--shuffle", "--no-shuffle".
std::vector<std::string> spellings_of(const FlagEntry&);

/// The text with every `from` replaced.
std::string replaced(std::string text, const std::string& from, const std::string& to);

/// As one word of a shell's script: 'none'.
std::string in_quotes(const std::string& text);

}  // namespace cputrain::cli
