#include "core/names.h"

#include "core/error.h"
#include "core/text.h"

namespace cputrain {

void refuse_word(std::string_view flag, std::string_view word, std::span<const std::string> words,
                 std::optional<std::string> hint) {
  fail(ExitCode::usage, "--{} {}: must be one of {}{}", flag, word, join(words, ", "),
       hint ? *hint : did_you_mean(word, words));
}

}  // namespace cputrain
