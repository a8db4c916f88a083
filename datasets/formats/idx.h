#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace cputrain::datasets {

/// A data set in MNIST's IDX files; samples [0, train) are its training part, the others t10k.
struct IdxData {
  std::unique_ptr<data::Dataset> dataset;
  std::size_t train = 0;
  bool has_test = false;
  std::vector<std::string> paths;  ///< the files read
};

/// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte and, where they exist, the t10k pair from
/// the folder, plain or with .gz, into memory. Checks magic numbers, the product of the sides, the
/// exact number of bytes and that there are as many labels as images. Error(data) naming the
/// file. The classes are digits "0", "1", ..., or Fashion-MNIST's when the labels are exactly those
/// of Fashion-MNIST.
IdxData open_idx(const std::string& folder);

}  // namespace cputrain::datasets
