#pragma once

#include <set>
#include <span>
#include <string>

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

}  // namespace cputrain::cli
