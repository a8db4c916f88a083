#include "compute/tuner.h"

#include <algorithm>

#include "core/text.h"

namespace cputrain::compute {

bool Tuner::trying() const {
  return std::ranges::any_of(choices_, [](const auto* choice) { return choice->trying(); });
}

void Tuner::try_again() {
  if (trying()) return;  // an epoch was too short for them
  for (MethodChoice* choice : choices_) choice->try_again();
  searches_ = searches_ || trying();  // what they found is there until it is taken
}

void Tuner::restart_trials() {
  for (MethodChoice* choice : choices_) {
    if (choice->trying()) choice->try_again();
  }
}

std::string Tuner::take_tuned_methods() {
  if (!std::exchange(searches_, trying()) || searches_) return {};
  return methods();
}

/// A word for each choice, in order.
std::string Tuner::methods() const {
  std::vector<std::string> words;
  for (const MethodChoice* choice : choices_) words.push_back(choice->methods());
  return join(words, " ");
}

void Tuner::use_tuned_methods(std::string_view tuned_methods) {
  const std::vector<std::string> words = split(tuned_methods, ' ');
  if (words.size() != choices_.size()) return;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!choices_[i]->is_word(words[i])) return;
  }
  for (std::size_t i = 0; i < words.size(); ++i) choices_[i]->use_methods(words[i]);
  tuned_methods_ = methods();  // what the choices made of it
  searches_ = false;
}

}  // namespace cputrain::compute
