#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/watch/findings.h"
#include "comm/watch/lookout.h"

namespace cputrain::watch {

/// A stall in words: a line for people, and one of stalls.jsonl without its time.
struct Word {
  std::string line;
  nlohmann::ordered_json entry;
};

/// Prints each stall once, once more each minute, when ranks or cause are others, and at its end.
/// Borrows the team.
class Narrator {
 public:
  Narrator(const Team&, const Limits&);

  /// What is to be printed now. `now` in seconds of a clock that does not go back.
  std::optional<Word> hear(const Finding&, double now);
  /// About ranks without any report, once; nothing where there are none.
  std::optional<Word> hear_hidden(const std::vector<RankView>&);
  /// Whether a stall was printed whose end was not.
  bool owes_end() const { return told_.has_value(); }

 private:
  Word word_of(const Finding&) const;
  Word end_of(Finding, double now) const;
  nlohmann::ordered_json entry_of(const char* event, const Finding&) const;
  std::string who(const Finding&) const;
  std::string why(const Finding&) const;

  const Team& team_;
  Limits limits_;
  std::optional<Finding> told_;  ///< the stall that was printed
  double began_ = 0, last_ = 0;  ///< when it began, and when it was last printed
  bool told_hidden_ = false;
};

}  // namespace cputrain::watch
