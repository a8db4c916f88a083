#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace cputrain::datasets {

enum class Cifar { ten, hundred };

/// A data set in CIFAR's binary files; samples [0, train) are its training part, in the order of
/// the files, the others its test part.
struct CifarData {
  std::unique_ptr<data::Dataset> dataset;
  std::size_t train = 0;
  bool has_test = false;
  std::vector<std::string> paths;  ///< the files read, the test file last
  std::string remark;              ///< for the log: how many files there are
};

/// Reads the official binary version: records of one label byte (CIFAR-100: coarse and fine) and
/// 32x32 planes of red, green and blue. `folder` holds the files or the archive's own folder.
/// CIFAR-10: data_batch_1.bin to data_batch_5.bin, as many as there are, and test_batch.bin;
/// CIFAR-100: train.bin and test.bin, fine labels. Class names come from batches.meta.txt and
/// fine_label_names.txt; without them CIFAR-10's known ones or numbers. Reading an image throws
/// Error(data) where its record has changed since.
/// Error(data) names the file: sizes that are no whole number of records, labels out of range, and
/// the Python version, which is not read.
CifarData open_cifar(Cifar, const std::string& folder);

}  // namespace cputrain::datasets
