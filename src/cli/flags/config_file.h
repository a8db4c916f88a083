#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cputrain::cli {

/// The object of flags and values in the file of --config: a regular file of at most 1 MiB, since
/// under mpirun every rank reads it, of JSON in which no key stands twice. Error(usage).
nlohmann::json read_settings(const std::string& path);

}  // namespace cputrain::cli
