#include "scaling/cells/launching.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "core/text.h"
#include "scaling/cells/axes.h"

namespace cputrain::cells {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Whether there was something to replace.
bool replace_all(std::string& text, std::string_view what, int value) {
  bool any = false;
  for (std::size_t at; (at = text.find(what)) != std::string::npos; any = true) {
    text.replace(at, what.size(), std::to_string(value));
  }
  return any;
}

std::vector<std::string> users_words(const std::string& text, const Cell& cell) {
  std::vector<std::string> words = words_of(text);
  bool counted = false;
  for (std::string& word : words) {
    counted |= replace_all(word, "{ranks}", cell.ranks);
    replace_all(word, "{threads}", cell.threads);
  }
  if (counted || words.empty()) return words;
  const bool srun = std::filesystem::path(words.front()).filename() == "srun";
  words.insert(words.end(), {srun ? "-n" : "-np", std::to_string(cell.ranks)});
  return words;
}

/// Why this backend cannot do it anywhere.
std::string backend_lacks(const Launching& launching, const Cell& cell,
                          const BackendHere*& backend) {
  const auto found = std::ranges::find(launching.backends, cell.backend, &BackendHere::name);
  if (found == launching.backends.end()) {
    std::vector<std::string> names;
    for (const BackendHere& one : launching.backends) names.push_back(one.name);
    return fmt::format("this build has no backend {} (it has {})", cell.backend, join(names, ", "));
  }
  backend = &*found;
  const auto asked = cell.axes.find("precision");
  if (asked == cell.axes.end() || asked->second == kOwnDefault) return "";
  if (std::ranges::find(found->precisions, asked->second) != found->precisions.end()) return "";
  return fmt::format("backend {} computes in {}, not in {}", cell.backend,
                     join(found->precisions, ", "), asked->second);
}

/// Why this machine has not what the ranks of the cell compute on.
std::string machine_lacks(const Launching& launching, const Cell& cell,
                          const BackendHere& backend) {
  if (backend.devices == 0u) return "there is no device for it here: " + backend.why_none;
  const std::size_t here =
      backend.devices.value_or(static_cast<std::size_t>(launching.host.hardware_threads));
  if (launching.oversubscribe || static_cast<std::size_t>(cell.cpus) <= here) return "";
  return fmt::format("this machine has {}, not {} (--oversubscribe measures it all the same)",
                     counted(here, backend.devices ? "GPU" : "hardware thread"), cell.cpus);
}

}  // namespace

std::vector<std::string> launch_words(const Launching& launching, const Cell& cell) {
  if (!launching.words.empty()) return users_words(launching.words, cell);
  if (!launching.mpi) return {};
  std::vector<std::string> words{"mpirun"};
  if (launching.as_root && launching.open_mpi) words.push_back("--allow-run-as-root");
  std::string options = fmt::format("-np {}", cell.ranks);
  if (launching.open_mpi && launching.cluster) {
    options += fmt::format(" --map-by slot:PE={} --bind-to core", cell.threads);
  } else if (launching.open_mpi) {
    options = placement::mpirun_options(launching.host, cell.ranks, cell.threads);
  }
  std::ranges::copy(words_of(options), std::back_inserter(words));
  return words;
}

std::string why_not(const Launching& launching, const Cell& cell) {
  const BackendHere* backend = nullptr;
  const std::string lacks = backend_lacks(launching, cell, backend);
  if (!lacks.empty()) return lacks;
  const int most = launching.team_limit;
  if (most > 0 && cell.threads > most) {
    return fmt::format("{} allows {} per rank, not {}", launching.team_limited_by,
                       counted(most, "thread"), cell.threads);
  }
  if (!launching.words.empty()) return "";
  if (!launching.mpi && cell.ranks > 1) return "there is no MPI here to start several ranks";
  return launching.cluster ? "" : machine_lacks(launching, cell, *backend);
}

}  // namespace cputrain::cells
