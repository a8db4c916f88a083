#include "checkpoint/state_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "checkpoint/folder.h"
#include "checkpoint/progress_json.h"
#include "core/error.h"
#include "core/json_text.h"
#include "system/bounded_file.h"
#include "system/files.h"

namespace cputrain::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLargest = std::size_t{64} << 20;
constexpr const char *kFormat = "format", *kProgress = "progress", *kTunedFor = "findings_of";

/// Calls what reads from a state, naming the file where that is wrong.
template <class F>
auto from_file(const std::filesystem::path& folder, const F& read) {
  const std::filesystem::path file = folder / kStateName;
  try {
    return read(parse_state(system::read_bounded(file, kLargest)));
  } catch (const Error& error) {
    fail(ExitCode::data, fmt::format("checkpoint file {}: {}", file.string(), error.what()));
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, fmt::format("checkpoint file {} {} (the training cannot go on from it); "
                                     "use another checkpoint",
                                     file.string(), error.what()));
  }
}

}  // namespace

std::string kernels_of(const compute::Backend& backend) {
  return fmt::format("{}: {}", backend.name(), backend.facts().kernels);
}

void write_state(const std::filesystem::path& folder, const loop::Progress& progress,
                 const std::string& tuned_for, const Json& facts) {
  Json state{{kFormat, kStateFormat}, {kProgress, to_json(progress)}, {kTunedFor, tuned_for}};
  for (const auto& [name, fact] : facts.items()) state[name] = fact;
  system::write_own_file(folder / kStateName, json_text(state, 1) + "\n");
}

SavedState read_state(const std::filesystem::path& folder) {
  return from_file(folder, [](const Json& state) {
    SavedState saved{progress_of_state(state), {}};
    const auto word = state.find(kTunedFor);
    if (word != state.end() && word->is_string()) saved.tuned_for = word->get<std::string>();
    return saved;
  });
}

Json read_facts(const std::filesystem::path& folder) {
  return from_file(folder, [](Json state) {
    for (const char* own : {kFormat, kProgress, kTunedFor}) state.erase(own);
    return state;
  });
}

loop::Progress read_progress(const std::filesystem::path& folder) {
  return read_state(folder).progress;
}

}  // namespace cputrain::checkpoint
