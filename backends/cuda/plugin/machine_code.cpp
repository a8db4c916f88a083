#include "backends/cuda/plugin/machine_code.h"

#include <algorithm>
#include <charconv>

#include "core/casts.h"

namespace cputrain::cuda {
namespace {

/// "90a-real": what nvcc was asked for.
struct Architecture {
  int major = 0, minor = 0;
  char only = 0;  ///< 'a': this capability alone, 'f': this major number alone
  bool machine_code = true, ptx = true;

  /// Machine code runs on GPUs of the same major number with the same minor one or a later one.
  bool runs_on(int gpu_major, int gpu_minor) const {
    const bool same = major == gpu_major && minor == gpu_minor;
    return machine_code && (same || (only != 'a' && major == gpu_major && minor < gpu_minor));
  }
  /// PTX can be compiled for all later ones, unless it uses what one of them has alone.
  bool compiles_for(int gpu_major, int gpu_minor) const {
    return ptx && !only && (major < gpu_major || (major == gpu_major && minor <= gpu_minor));
  }
};

/// major is 0 where the word is another one, such as "native".
Architecture parsed(std::string_view word) {
  Architecture found;
  int number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc()) return found;
  found.major = number / 10;
  found.minor = number % 10;
  word.remove_prefix(to_size(end - word.data()));
  if (word.starts_with('a') || word.starts_with('f')) {
    found.only = word.front();
    word.remove_prefix(1);
  }
  found.machine_code = word != "-virtual";
  found.ptx = word != "-real";
  return found;
}

}  // namespace

bool driver_compiles(std::string_view architectures, int major, int minor) {
  bool ptx = false;
  while (!architectures.empty()) {
    const std::size_t end = std::min(architectures.find(' '), architectures.size());
    const Architecture one = parsed(architectures.substr(0, end));
    architectures.remove_prefix(std::min(end + 1, architectures.size()));
    if (one.major == 0 || one.runs_on(major, minor)) return false;
    ptx = ptx || one.compiles_for(major, minor);
  }
  return ptx;
}

}  // namespace cputrain::cuda
