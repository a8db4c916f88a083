#pragma once

#include <string>

namespace cputrain::cuda {

/// Which plugin a program loads: gpu_plugin.cpp, no_cuda.cpp or emulated_plugin.cpp, which a build
/// or a program chooses by linking it.
struct PluginName {
  std::string file;     ///< "libcputrain_cuda.so"; empty where the program has none
  std::string missing;  ///< why, then
  std::string remedy;   ///< and what to try
};

/// Error(usage) where the environment names one that there is not.
PluginName plugin_name();

}  // namespace cputrain::cuda
