#pragma once

/// scripts/mutants includes this in a copy of the sources: which of a program's mutations is meant.
namespace mutation {
extern int chosen;  // -1 where every question is noted instead
void note(int number) noexcept;
}  // namespace mutation

/// Constant expressions have no mutations.
[[gnu::always_inline]] constexpr bool mutant_is(int number) noexcept {
  if (__builtin_is_constant_evaluated()) return false;
  if (mutation::chosen < 0) mutation::note(number);
  return mutation::chosen == number;
}
