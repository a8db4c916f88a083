#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cputrain::compute {

/// A part of a program that several methods can compute. Its word names those that do.
class MethodChoice {
 public:
  virtual ~MethodChoice() = default;
  virtual std::string methods() const = 0;
  /// Whether the word is one of this kind of part.
  virtual bool is_word(std::string_view) const = 0;
  /// Uses the methods of a word, as far as it has them.
  virtual void use_methods(std::string_view word) = 0;
  virtual bool trying() const = 0;
  virtual void try_again() = 0;
};

/// Some programs use the methods that they know in turn for the first training passes, and then
/// those that were quickest. This is what others may ask of that; a program without choices tries
/// nothing and finds nothing.
class Tuner {
 public:
  Tuner() = default;
  explicit Tuner(std::vector<MethodChoice*> choices)
      : choices_(std::move(choices)), searches_(trying()) {}

  /// What was found is returned once, when all have been tried; otherwise nothing is.
  std::string take_tuned_methods();
  /// Uses what a program of the same graph has found, that of another rank, so that all are alike,
  /// or of an earlier process. A text that no such program can have found is left alone.
  void use_tuned_methods(std::string_view);
  /// What it used last of these; empty: nothing yet.
  const std::string& tuned_methods() const { return tuned_methods_; }
  bool trying() const;
  /// Begins anew, since activations change as training goes on. Trials that have not ended go on;
  /// what is kept of those that have, and is not taken yet, stays.
  void try_again();
  /// What trials that have not ended noted so far does not count.
  void restart_trials();

 private:
  std::string methods() const;

  std::vector<MethodChoice*> choices_;
  std::string tuned_methods_;  ///< in use
  bool searches_ = false;      ///< was trying when it was last asked
};

}  // namespace cputrain::compute
