#include "cli/flags/flags.h"

#include <algorithm>
#include <cassert>
#include <tuple>

#include "cli/flags/foreign_words.h"
#include "core/error.h"
#include "core/names.h"
#include "core/text.h"
#include "training/request/training_rows.h"

namespace cputrain::cli {
namespace {

/// "momentum [0.9]" -> "momentum", "0.9": brackets at the end, however many are inside them.
std::pair<std::string, std::string> split_default(const std::string& help) {
  if (!help.ends_with("]")) return {help, ""};
  int depth = 0;
  for (std::size_t i = help.size(); i-- > 0;) {
    depth += help[i] == ']' ? 1 : help[i] == '[' ? -1 : 0;
    const bool apart = i == 0 || help[i - 1] == ' ';  // not the end of "poly[:POWER]"
    if (depth > 0) continue;
    if (!apart) return {help, ""};
    return {help.substr(0, i == 0 ? 0 : i - 1), help.substr(i + 1, help.size() - i - 2)};
  }
  return {help, ""};
}

}  // namespace

void Flags::record(const std::string& name, const std::string& meta, const std::string& help) {
  FlagEntry entry;
  std::tie(entry.help, entry.standard) = split_default(help);
  entry.name = name;
  entry.meta = meta;
  entry.group = group_;
  entry.takes_value = !meta.empty();
  entries_.push_back(std::move(entry));
}

FlagEntry& Flags::entry(const std::string& name) {
  const auto found = std::ranges::find(entries_, name, &FlagEntry::name);
  assert(found != entries_.end());
  return *found;
}

void Flags::add(const std::string& name, const std::string& meta, const std::string& help,
                std::function<void(const std::string&)> set) {
  names_.insert(name);
  with_value_.insert(name);
  record(name, meta, help);
  setters_.emplace_back(name, std::move(set));
}

void Flags::add_switch(const std::string& name, std::function<void()> set) {
  names_.insert(name);
  setters_.emplace_back(name, [set = std::move(set)](const std::string&) { set(); });
}

std::vector<std::pair<std::string, std::string>> Flags::set(
    const std::map<std::string, std::string>& given) const {
  std::vector<std::pair<std::string, std::string>> done;
  for (const auto& [name, set] : setters_) {
    const auto found = given.find(name);
    if (found == given.end()) continue;
    set(found->second);
    done.emplace_back(*found);
  }
  return done;
}

void Flags::check_choice(const std::string& name, const std::string& text,
                         const std::vector<std::string>& choices) {
  if (std::ranges::find(choices, text) != choices.end()) return;
  refuse_word(name, text, choices, hint_for_value(name, text, choices));
}

void Flags::choice(const std::string& name, const std::vector<std::string>& choices,
                   const std::string& help, std::function<void(const std::string&)> set) {
  add(name, join(choices, "|"), help,
      [name, choices, set = std::move(set)](const std::string& text) {
        check_choice(name, text, choices);
        set(text);
      });
  suggest(name, choices);
}

void Flags::parsed(const std::string& name, const std::string& meta, const std::string& help,
                   std::function<void(const std::string&)> set) {
  add(name, meta, help, [this, name, set = std::move(set)](const std::string& text) {
    try {
      set(text);
    } catch (const Error& error) {
      const std::string what = error.what(), hint = hint_for_form(name, text, entry(name).choices);
      fail(error.code(), what.ends_with(hint) ? what : what + hint);
    }
  });
}

void Flags::yes(const std::string& name, bool& target, const std::string& help) {
  record(name, "", help);
  add_switch(name, [&target] { target = true; });
}

void Flags::word(const std::string& name, std::set<std::string>& words, const std::string& help) {
  record(name, "", help);
  add_switch(name, [name, &words] { words.insert(name); });
}

void Flags::row(const training::FlagRow& row, training::TrainingFlags& flags,
                const std::string& help) {
  using Kind = training::FlagRow::Kind;
  if (add_row_ && add_row_(row, flags, help)) return;
  const auto set = [&row, &flags](const std::string& text) { row.set(flags, text); };
  if (row.kind == Kind::value) {
    parsed(row.name, row.meta, help, [&row, set](const std::string& text) {
      if (row.only_words) check_choice(row.name, text, row.words);
      set(text);
    });
    suggest(row.name, row.words);
  } else {
    record(row.name, "", help);
    add_switch(row.name, [set] { set("true"); });
  }
  if (row.kind == Kind::yes_or_no) {
    entry(row.name).negatable = true;
    add_switch("no-" + row.name, [set] { set("false"); });
    exclusive(row.name, "no-" + row.name);
  }
  if (row.is_for_developers) for_developers(row.name);
  if (!row.alias.empty()) alias(row.alias, row.name);
  if (!row.rival.empty()) exclusive(row.name, row.rival);
}

void Flags::alias(const std::string& word, const std::string& name) {
  aliases_[word] = name;
  entry(name).aliases.push_back(word);
}

void Flags::suggest(const std::string& name, std::vector<std::string> words) {
  entry(name).choices = std::move(words);
}

void Flags::reword(const std::string& name, const std::string& help) {
  std::tie(entry(name).help, entry(name).standard) = split_default(help);
}

void Flags::for_developers(const std::string& name) {
  entry(name).group = CommandEntry::kDevelopers;
}

void Flags::default_is(const std::string& name, const std::string& standard) {
  entry(name).standard = standard;
}

void Flags::exclusive(const std::string& a, const std::string& b) {
  rivals_[a] = b;
  rivals_[b] = a;
}

}  // namespace cputrain::cli
