#pragma once

#include <string>

namespace cputrain::datasets {

/// Whether the name is that of a Python pickle, as CIFAR's Python version has them, or the folder
/// that holds them: *.pkl, *.pickle, data_batch_1, test_batch, batches.meta, cifar-10-batches-py,
/// ...
bool is_pickle_name(const std::string& name);

/// The path of a pickle in the folder, or of the folder itself; empty where there is none.
std::string find_pickle(const std::string& folder);

/// Error(data) with what to do instead.
[[noreturn]] void refuse_pickle(const std::string& path);

}  // namespace cputrain::datasets
