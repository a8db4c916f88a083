#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Names of classes that people take for one. They differ in what is not seen, or hardly: blanks,
/// capitals, invisible characters, the form of accents and letters (Unicode's normalisation), or
/// zeros before a number.
namespace cputrain::data {

/// A name without all that; names of one key look alike.
std::string alike_key(std::string_view name);

/// The same text in Unicode's form NFC, as most systems write names; bytes that are not UTF-8 stay.
std::string composed(std::string_view name);

/// Those that look alike, by groups of two or more, in the order of the names.
std::vector<std::vector<std::string>> alike_names(std::span<const std::string> names);

/// "'cat' and 'cat\x20'": where names differ, all but plain letters stands as escapes.
std::string shown_apart(std::span<const std::string> names);

/// A sentence for a warning about names of a data set that look alike; empty where none do.
std::string alike_warning(std::span<const std::string> names);

/// Names of one list found in another.
struct NameMatch {
  std::vector<std::optional<std::size_t>> place;  ///< by name: the place in the other list
  std::vector<std::size_t> alike;                 ///< names found by what looks alike alone
};

/// Every name by itself, and what is left by its key where no second name of either list has it.
NameMatch match_names(std::span<const std::string> names, std::span<const std::string> among);

/// "'caf\u00e9' as 'cafe\u0301'", of the names that were found so; empty where there are none.
std::string alike_text(const NameMatch&, std::span<const std::string> names,
                       std::span<const std::string> among);

}  // namespace cputrain::data
