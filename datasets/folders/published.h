#pragma once

#include <optional>
#include <string>

#include "data/check_report.h"

namespace cputrain::datasets {

/// Compares a file of MNIST, Fashion-MNIST, CIFAR-10 or CIFAR-100, known by its name, with what the
/// makers published: MD5 of compressed files, size of the others. Nothing for other names. A file
/// that differs need not be wrong (Debian's Fashion-MNIST is compressed anew), but it is worth
/// knowing. Error(data) where the file cannot be read.
std::optional<data::CheckReport::KnownFile> compare_with_published(const std::string& path);

}  // namespace cputrain::datasets
