#pragma once

#include <string>

namespace cputrain::system {

/// The path from the root, without ".", ".." and links in it as far as it exists ("link/.." is the
/// folder above the one that the link names); as it is where the working folder is gone.
std::string absolute_path(const std::string& path);

}  // namespace cputrain::system
