#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/flags/entries.h"
#include "training/request/flag_grammars.h"

namespace cputrain::training {
struct FlagRow;
struct TrainingFlags;
}  // namespace cputrain::training

namespace cputrain::cli {

/// The flags of one command: every value arrives as text and is checked here, so that all messages
/// read alike: "--batch 0: must be a whole number from 1 to 16777216". A flag's help is a phrase,
/// and brackets at its end have what holds without the flag: "rate of the update [0.1]".
class Flags {
 public:
  void group(std::string name) { group_ = std::move(name); }

  template <class T>
  void whole(const std::string& name, T& target, std::int64_t min, std::int64_t max,
             const std::string& help) {
    add(name, "N", help, [name, &target, min, max](const std::string& text) {
      target = static_cast<std::int64_t>(training::parse_whole(name, text, min, max));
    });
  }

  template <class T>
  void real(const std::string& name, T& target, double min, double max, const std::string& help) {
    add(name, "X", help, [name, &target, min, max](const std::string& text) {
      target = training::parse_real(name, text, min, max);
    });
  }

  /// Whole numbers between commas, each once.
  template <class T>
  void wholes(const std::string& name, std::vector<T>& target, std::int64_t min, std::int64_t max,
              const std::string& help) {
    add(name, "N,...", help, [name, &target, min, max](const std::string& text) {
      target.clear();
      for (const std::int64_t value : training::parse_wholes(name, text, min, max)) {
        target.push_back(static_cast<T>(value));
      }
    });
  }

  void text(const std::string& name, std::string& target, const std::string& meta,
            const std::string& help) {
    add(name, meta, help, [&target](const std::string& text) { target = text; });
  }

  void choice(const std::string& name, const std::vector<std::string>& choices,
              const std::string& help, std::function<void(const std::string&)> set);
  /// Error(usage) where the text is none of them.
  static void check_choice(const std::string& name, const std::string& text,
                           const std::vector<std::string>& choices);

  /// A value that `set` reads, or refuses with Error(usage).
  void parsed(const std::string& name, const std::string& meta, const std::string& help,
              std::function<void(const std::string&)> set);

  void yes(const std::string& name, bool& target, const std::string& help);
  /// A flag without a value that puts its name among the words.
  void word(const std::string& name, std::set<std::string>& words, const std::string& help);
  /// A flag of a training.
  void row(const training::FlagRow&, training::TrainingFlags&, const std::string& help);
  /// Adds such a flag in a way of its own; false where it is to be added as usual.
  using AddRow = std::function<bool(const training::FlagRow&, training::TrainingFlags&,
                                    const std::string& help)>;
  /// From here on row() asks it first.
  void add_rows_by(AddRow add_row) { add_row_ = std::move(add_row); }

  /// Two flags that cannot both be given; one that is given keeps the other out of the environment
  /// and of configuration files.
  void exclusive(const std::string& a, const std::string& b);
  /// Another word for a flag that was added.
  void alias(const std::string& word, const std::string& name);
  /// Words that the value of a flag that was added may be, or begin with; for completions.
  void suggest(const std::string& name, std::vector<std::string> words);
  /// Another help for a flag that was added: what it means to this command.
  void reword(const std::string& name, const std::string& help);
  /// Puts a flag that was added among those that only work on the program needs.
  void for_developers(const std::string& name);
  /// Another word for what holds without it.
  void default_is(const std::string& name, const std::string& standard);

  const std::set<std::string>& names() const { return names_; }
  /// Words for the flags' names, and what they stand for.
  const std::map<std::string, std::string>& aliases() const { return aliases_; }
  /// The flag's name, where the word is an alias.
  std::string resolved(const std::string& word) const {
    const auto found = aliases_.find(word);
    return found == aliases_.end() ? word : found->second;
  }
  /// The flag that excludes this one, or "".
  std::string rival(const std::string& name) const {
    const auto found = rivals_.find(name);
    return found == rivals_.end() ? "" : found->second;
  }
  bool takes_value(const std::string& name) const { return with_value_.contains(name); }
  /// What help says of them, in the order in which they were added.
  const std::vector<FlagEntry>& entries() const { return entries_; }
  /// Sets what was given, name and value, in the order in which flags were added, which it returns.
  std::vector<std::pair<std::string, std::string>> set(
      const std::map<std::string, std::string>& given) const;

 private:
  void add(const std::string& name, const std::string& meta, const std::string& help,
           std::function<void(const std::string&)> set);
  /// A flag without a value.
  void add_switch(const std::string& name, std::function<void()> set);
  void record(const std::string& name, const std::string& meta, const std::string& help);
  FlagEntry& entry(const std::string& name);
  std::string group_ = "Options";
  AddRow add_row_;
  std::set<std::string> names_, with_value_;
  std::map<std::string, std::string> aliases_, rivals_;
  std::vector<FlagEntry> entries_;
  std::vector<std::pair<std::string, std::function<void(const std::string&)>>> setters_;
};

}  // namespace cputrain::cli
