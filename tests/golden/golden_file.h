#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/graph.h"
#include "tests/golden/numbers.h"
#include "tests/golden/replica.h"

/// What make_golden.py wrote (PyTorch, double), and the images and networks that go with it.
namespace cputrain::golden {

/// Stands for a whole tensor: an error in any element shows in the norm or the dot product.
struct Digest {
  std::string name;
  double norm;                  ///< Euclidean
  double dot;                   ///< with noise of mean 0 in [-0.5, 0.5)
  std::vector<std::size_t> at;  ///< positions in the canonical layout
  std::vector<double> values;   ///< the elements there
};

/// Five steps with one update rule.
struct Training {
  std::string name;
  Update update;
  std::vector<double> losses,
      correct;                  ///< mean loss and number of correct predictions of each step
  std::vector<Digest> last;     ///< gradients of the last step
  std::vector<Digest> weights;  ///< after it
};

/// PyTorch's own error in float for one batch, by tensor: norm of the difference from double over
/// the norm.
using FloatErrors = std::map<std::string, double>;

struct File {
  model::Graph graph;
  int classes, batch;
  std::uint64_t seed;
  std::vector<Digest> start;  ///< initial weights
  std::vector<Digest> first;  ///< gradients of the first step
  std::vector<Training> trainings;
  int float_batch;  ///< images of each batch of float_errors; batch i starts with image i times it
  std::vector<FloatErrors> float_errors;
};

/// `name` is "dogcat" (64x64, dropout rates 0) or "layers" (every kind of layer).
File load(const std::string& name);

/// Digest of a tensor that is number `index` in model order.
Digest digest(const Digest& like, const std::vector<double>& tensor, std::uint64_t seed, int index);

/// Images first .. first+count-1 of the file's size.
Samples samples(const File&, int first, int count);

}  // namespace cputrain::golden
