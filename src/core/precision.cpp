#include "core/precision.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"

namespace cputrain {

std::vector<std::string> words_of(const std::vector<Precision>& precisions) {
  std::vector<std::string> words;
  for (const Precision precision : precisions) words.emplace_back(word_of(precision));
  return words;
}

std::vector<std::string> precision_words() {
  std::vector<std::string> words;
  for (const PrecisionWord& entry : kPrecisionWords) words.emplace_back(entry.word);
  return words;
}

Precision parse_precision(std::string_view word) {
  const auto entry = std::ranges::find(kPrecisionWords, word, &PrecisionWord::word);
  if (entry != kPrecisionWords.end()) return entry->precision;
  fail(ExitCode::usage, fmt::format("--precision {}: must be one of {}", printable(word),
                                    join(precision_words(), ", ")));
}

}  // namespace cputrain
