#pragma once

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/names.h"
#include "training/request/choose_training.h"
#include "training/request/flag_grammars.h"
#include "training/request/training_flags.h"

namespace cputrain::training {

/// A flag of a training: its name, its member and all else that is known of it. Command line, help,
/// config.json, the identity of a training and start-up lines come from these rows.
struct FlagRow {
  enum class Kind { value, yes, yes_or_no };  ///< --NAME X; --NAME; --NAME and --no-NAME

  std::string name;
  std::string part;  ///< which flags it goes with: commands take them part by part
  std::string meta;  ///< what its value is: "N", "FILE", "none|six"
  std::string help;  ///< a phrase, with what holds without the flag in brackets
  Kind kind = Kind::value;
  std::vector<std::string> words{};  ///< that a value is one of, or begins with
  bool only_words = false;
  std::string alias{}, rival{};    ///< another word for it; a flag that excludes it
  bool is_identity = false;        ///< a training that goes on may not change it
  bool is_for_developers = false;  ///< for measurements, and for work on the program
  std::string line{};              ///< of start-up, where it changes something: "clipped to {:g}"

  /// Error(usage). A switch has "true" or "false".
  std::function<void(TrainingFlags&, const std::string& text)> set{};
  /// Null where nothing was asked for, and always of a grammar that is only read.
  std::function<nlohmann::ordered_json(const TrainingFlags&)> get{};
  std::function<void(TrainingFlags& to, const TrainingFlags& from)> copy{};
  /// What holds, asked for or not; null for nothing. Without it config.json has what was given.
  std::function<nlohmann::ordered_json(const TrainingSpec&)> holds{};

  /// The member's value as it is typed: "0.1", "ring".
  std::string spelling(const TrainingFlags&) const;

  FlagRow& identity(bool is = true) { return is_identity = is, *this; }
  FlagRow& recorded(std::function<nlohmann::ordered_json(const TrainingSpec&)> value) {
    return holds = std::move(value), *this;
  }
  /// The member itself is what holds.
  FlagRow& recorded();
  FlagRow& for_developers() { return is_for_developers = true, *this; }
  FlagRow& starts_line(std::string text) { return line = std::move(text), *this; }
  FlagRow& also(std::string word) { return alias = std::move(word), *this; }
  FlagRow& excludes(std::string flag) { return rival = std::move(flag), *this; }
  FlagRow& suggests(std::vector<std::string> list) { return words = std::move(list), *this; }
};

/// Rows as they are added. A member is a pointer to one, or a function from flags to it.
class FlagRows {
 public:
  /// What follows goes together, and is part of a training's identity or not.
  void part(std::string name, bool identity = false) {
    part_ = std::move(name);
    identity_ = identity;
  }
  const std::deque<FlagRow>& all() const { return rows_; }

  template <class Member>
  FlagRow& whole(const std::string& name, Member member, std::int64_t min, std::int64_t max,
                 std::string help) {
    return add(name, "N", std::move(help), member, [=](const std::string& text) {
      return static_cast<Value<Member>>(parse_whole(name, text, min, max));
    });
  }

  template <class Member>
  FlagRow& real(const std::string& name, Member member, double min, double max, std::string help) {
    return add(name, "X", std::move(help), member,
               [=](const std::string& text) { return parse_real(name, text, min, max); });
  }

  template <class Member>
  FlagRow& text(const std::string& name, Member member, std::string meta, std::string help) {
    return add(name, std::move(meta), std::move(help), member,
               [](const std::string& text) { return text; });
  }

  /// One of the words of an enumeration.
  template <class Member>
  FlagRow& choice(const std::string& name, Member member, std::string help) {
    std::vector<std::string> words = all_words<Value<Member>>();
    FlagRow& row =
        add(name, join_words(words), std::move(help), member,
            [=](const std::string& text) { return parse_word<Value<Member>>(name, text); });
    row.only_words = true;
    return row.suggests(std::move(words));
  }

  /// A value with a grammar of its own, which `parse` reads.
  template <class Member, class Parse>
  FlagRow& parsed(const std::string& name, Member member, std::string meta, std::string help,
                  Parse parse) {
    FlagRow& row = add(name, std::move(meta), std::move(help), member, parse);
    row.get = [](const TrainingFlags&) { return nullptr; };
    return row;
  }
  /// The same where `show` writes it.
  template <class Member, class Parse, class Show>
  FlagRow& parsed(const std::string& name, Member member, std::string meta, std::string help,
                  Parse parse, Show show) {
    FlagRow& row = add(name, std::move(meta), std::move(help), member, parse);
    row.get = [=](const TrainingFlags& flags) { return show(std::invoke(member, flags)); };
    return row;
  }

  /// A switch that turns something on, or, where its member may be open, on or off.
  template <class Member>
  FlagRow& yes(const std::string& name, Member member, std::string help) {
    FlagRow& row = add(name, "", std::move(help), member,
                       [](const std::string& text) { return text == "true"; });
    row.kind = is_optional<Target<Member>> ? FlagRow::Kind::yes_or_no : FlagRow::Kind::yes;
    return row;
  }

 private:
  template <class Member>
  using Target = std::remove_cvref_t<std::invoke_result_t<Member, TrainingFlags&>>;
  template <class T>
  static constexpr bool is_optional = requires(T value) {
    value.has_value();
  };
  /// Types alone: T of a T and of one that may be open.
  template <class T>
  static T plain(const T&);
  template <class T>
  static T plain(const std::optional<T>&);
  template <class Member>
  using Value = decltype(plain(std::declval<Target<Member>>()));

  static std::string join_words(const std::vector<std::string>& words);

  template <class T>
  static nlohmann::ordered_json json_of(const T& value) {
    if constexpr (is_optional<T>) {
      return value ? json_of(*value) : nlohmann::ordered_json();
    } else if constexpr (Named<T>) {
      return word_of(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return value.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value);
    } else if constexpr (requires { nlohmann::ordered_json(value); }) {
      return value;
    } else {
      return nullptr;
    }
  }

  template <class Member, class Parse>
  FlagRow& add(const std::string& name, std::string meta, std::string help, Member member,
               Parse parse) {
    FlagRow row{.name = name, .part = part_, .meta = std::move(meta), .help = std::move(help)};
    row.is_identity = identity_;
    row.set = [=](TrainingFlags& flags, const std::string& text) {
      std::invoke(member, flags) = parse(text);
    };
    row.get = [=](const TrainingFlags& flags) { return json_of(std::invoke(member, flags)); };
    row.copy = [=](TrainingFlags& to, const TrainingFlags& from) {
      std::invoke(member, to) = std::invoke(member, from);
    };
    return rows_.emplace_back(std::move(row));
  }

  std::string part_;
  bool identity_ = false;
  std::deque<FlagRow> rows_;
};

/// The flags of a training, in the order of help.
const std::deque<FlagRow>& training_rows();
/// One of them, which must be there.
const FlagRow& training_row(std::string_view name);

/// Those of running_rows.cpp.
void add_running(FlagRows&);

/// Every figure that the run works with, as flags: `--config config.json` repeats it. Each has the
/// type of its row, whatever way it was given.
nlohmann::ordered_json effective_flags(const TrainingSpec&);

/// The same flags with paths from the root, so that they mean the same in any working folder.
nlohmann::ordered_json from_any_folder(nlohmann::ordered_json flags);

}  // namespace cputrain::training
