#include "cli/flags/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::cli {
namespace {

constexpr std::string_view kPrefix = "CPUTRAIN_";

/// Read by scripts and tests, and passed on to the program that they start; and those that say
/// where the program finds its plugins (backends/cuda).
constexpr std::string_view kOfOthers[] = {
    "CPUTRAIN_CLEAN_ROOT",   "CPUTRAIN_DAY_PYTHON",       "CPUTRAIN_DAY_TOOLS",
    "CPUTRAIN_EMULATED",     "CPUTRAIN_EMULATED_COUNTS",  "CPUTRAIN_EMULATED_DEVICES",
    "CPUTRAIN_EMULATED_GPU", "CPUTRAIN_EMULATED_KERNELS", "CPUTRAIN_EMULATED_ORDER",
    "CPUTRAIN_FAULT",        "CPUTRAIN_METADATA_URL",     "CPUTRAIN_MIRROR",
    "CPUTRAIN_MPIEXEC",      "CPUTRAIN_MPIRUN",           "CPUTRAIN_PLUGINS",
    "CPUTRAIN_SIMULATES",    "CPUTRAIN_SKIP_SETUP",       "CPUTRAIN_STARTED_BY",
    "CPUTRAIN_TWO_HOSTS"};

std::string capitals(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

/// In every pod beside a service "cputrain" or "cputrain-x": CPUTRAIN_SERVICE_HOST,
/// CPUTRAIN_SERVICE_PORT, CPUTRAIN_PORT, CPUTRAIN_PORT_80_TCP_ADDR, CPUTRAIN_X_PORT, ...
bool is_of_kubernetes(const std::string& name) {
  const std::string words = name + "_";
  return words.find("_SERVICE_HOST_") != std::string::npos ||
         words.find("_SERVICE_PORT_") != std::string::npos ||
         words.find("_PORT_") != std::string::npos;
}

std::string flag_of(std::string variable) {
  variable.erase(0, kPrefix.size());
  std::ranges::transform(variable, variable.begin(), [](unsigned char c) {
    return c == '_' ? '-' : static_cast<char>(std::tolower(c));
  });
  return "--" + variable;
}

}  // namespace

Environment program_variables(const char* const* variables) {
  Environment ours;
  for (; *variables; ++variables) {
    const std::string_view variable = *variables;
    const std::size_t equals = std::min(variable.find('='), variable.size());
    const std::string name(variable.substr(0, equals));
    // The first of two of one name is the one that getenv() finds, too.
    if (capitals(name).starts_with(kPrefix) && equals < variable.size()) {
      ours.emplace(name, variable.substr(equals + 1));
    }
  }
  return ours;
}

std::string variable_of(const std::string& flag) { return std::string(kPrefix) + capitals(flag); }

std::optional<std::string> value_of(const Environment& environment, const std::string& flag) {
  const auto variable = environment.find(variable_of(flag));
  if (variable == environment.end()) return std::nullopt;
  if (variable->second.empty()) {
    fail(ExitCode::usage,
         fmt::format("{} is empty in the environment (it needs a value, as --{} does); unset it",
                     variable->first, flag));
  }
  return variable->second;
}

void check_variables(const Environment& environment, const std::set<std::string>& flags) {
  std::set<std::string> known;
  std::vector<std::string> words;
  for (const std::string& flag : flags) {
    known.insert(variable_of(flag));
    words.push_back("--" + flag);
  }
  for (const auto& [name, value] : environment) {
    if (known.contains(name)) continue;
    if (known.contains(capitals(name))) {
      fail(ExitCode::usage, fmt::format("{}: variables are in capitals, with underscores (this one "
                                        "would be ignored); write {}",
                                        name, capitals(name)));
    }
    const bool meant = name.starts_with(kPrefix) && !is_of_kubernetes(name) &&
                       std::ranges::find(kOfOthers, name) == std::end(kOfOthers);
    if (!meant) continue;
    const std::string flag = flag_of(name);
    fail(
        ExitCode::usage,
        fmt::format("the environment's {}: no command has a flag {} (it would be ignored){}; unset "
                    "it, or see --help",
                    name, flag, did_you_mean(flag, words)));
  }
}

}  // namespace cputrain::cli
