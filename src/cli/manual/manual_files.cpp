#include "cli/manual/manual_files.h"

#include <cctype>

#include "core/text.h"

namespace cputrain::cli {
namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

FlagValues::Paths paths_of_meta(const std::string& meta) {
  for (const char* word : {"FILE", "DATA", "IMAGE"}) {
    if (contains(meta, word)) return FlagValues::Paths::files;
  }
  for (const char* word : {"DIR", "FOLDER"}) {
    if (contains(meta, word)) return FlagValues::Paths::folders;
  }
  return FlagValues::Paths::none;
}

/// "none|six" -> none, six: words in small letters are typed as they are.
std::vector<std::string> literal_words(const std::string& meta) {
  std::vector<std::string> words;
  for (const std::string& word : split(meta, '|')) {
    if (!word.empty() && std::islower(static_cast<unsigned char>(word.front()))) {
      words.push_back(word);
    }
  }
  return words;
}

}  // namespace

FlagValues values_of(const FlagEntry& flag) {
  if (!flag.takes_value) return {};
  FlagValues values;
  values.words = flag.choices.empty() ? literal_words(flag.meta) : flag.choices;
  values.paths = paths_of_meta(flag.meta);
  if (flag.name == "model") values.paths = FlagValues::Paths::files;     // a network's
  if (flag.name == "resume") values.paths = FlagValues::Paths::folders;  // a run's
  values.list = flag.meta.ends_with(",...") || flag.meta == "LIST";
  return values;
}

FlagValues::Paths paths_of(const CommandEntry& command) { return paths_of_meta(command.words); }

std::vector<std::string> spellings_of(const FlagEntry& flag) {
  std::vector<std::string> words{"--" + flag.name};
  if (flag.negatable) words.push_back("--no-" + flag.name);
  return words;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string in_quotes(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

}  // namespace cputrain::cli
