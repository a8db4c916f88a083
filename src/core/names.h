#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace cputrain {

/// A value of an enumeration and its word in flags, files and messages. Beside an enumeration
/// stands its table, in the order of help, and all that follows here comes from it:
///
///   constexpr auto names(Exif) {
///     return std::to_array<Name<Exif>>({{Exif::apply, "apply"}, {Exif::ignore, "ignore"}});
///   }
template <class E>
struct Name {
  E value;
  std::string_view word;
};

template <class E>
concept Named = requires(E value) {
  { names(value).front().value } -> std::convertible_to<E>;
};

/// Empty for a value that cannot be asked for.
template <Named E>
constexpr std::string_view word_of(E value) {
  for (const Name<E>& name : names(value)) {
    if (name.value == value) return name.word;
  }
  return {};
}

template <Named E>
constexpr std::optional<E> value_named(std::string_view word) {
  for (const Name<E>& name : names(E{})) {
    if (name.word == word) return name.value;
  }
  return std::nullopt;
}

template <Named E>
std::vector<std::string> words_of(const std::vector<E>& values) {
  std::vector<std::string> words;
  for (const E value : values) words.emplace_back(word_of(value));
  return words;
}

template <Named E>
std::vector<std::string> all_words() {
  std::vector<std::string> words;
  for (const Name<E>& name : names(E{})) words.emplace_back(name.word);
  return words;
}

/// The value that the word of a flag means. Error(usage).
template <Named E>
E parse_word(std::string_view flag, std::string_view word) {
  const std::optional<E> value = value_named<E>(word);
  if (!value) refuse_word(flag, word, all_words<E>());
  return *value;
}

}  // namespace cputrain
