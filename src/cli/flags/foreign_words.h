#pragma once

#include <set>
#include <span>
#include <string>

#include "cli/flags/entries.h"

/// Hints for people who know the words of other frameworks (PyTorch, Horovod, Keras,
/// tf_cnn_benchmarks, Caffe) and of mpirun.
namespace cputrain::cli {

/// "; use --lr" for learning-rate, where the command has the flag `lr`; "" where nothing is known.
/// `name` is without dashes, with hyphens; `program` is called as commands in a hint call it.
std::string hint_for_flag(const std::string& name, const std::set<std::string>& flags,
                          const std::string& program);

/// "; did you mean cuda?" for gpu: a value of a flag as others say it, else the nearest one.
std::string hint_for_value(const std::string& flag, const std::string& value,
                           std::span<const std::string> choices);

/// The same for a value such as "cosine:0.1", whose first words are `choices`; "" where nothing is
/// known.
std::string hint_for_form(const std::string& flag, const std::string& value,
                          std::span<const std::string> choices);

/// "; use eval: ..." for evaluate: a first word as others say it, else the nearest command.
std::string hint_for_command(const std::string& word, std::span<const CommandEntry> commands,
                             const std::string& program);

/// For a name of weights that others fetch, such as imagenet; "" for any other.
std::string hint_for_weights(const std::string& name);

}  // namespace cputrain::cli
