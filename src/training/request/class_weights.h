#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace cputrain::training {

/// What --class-weights asks for: a word, or a file with a number for each class.
struct ClassWeights {
  std::string text;  ///< as it was given; empty: classes count alike
  bool balanced = false;
  std::map<std::string, double> by_name{};  ///< as the file has them, or by "0", "1", ...

  bool given() const { return !text.empty(); }
};

/// "balanced" or the path of a JSON file, which is read. Error(data, usage).
ClassWeights parse_class_weights(const std::string& text);

/// Error(usage) where the file does not name these classes.
void check_class_weights(const ClassWeights&, std::span<const std::string> classes);

/// By label; empty where classes count alike. Balanced as in scikit-learn and in Keras' guide: the
/// images over the classes that have any, over the images of the class.
std::vector<double> class_weights(const ClassWeights&, std::span<const std::string> classes,
                                  std::span<const std::int32_t> labels);

}  // namespace cputrain::training
