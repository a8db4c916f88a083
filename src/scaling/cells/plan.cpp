#include "scaling/cells/plan.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "core/text.h"
#include "scaling/cells/axes.h"

namespace cputrain::cells {
namespace {

/// One cell for each batch, of either kind.
void add_batches(const SweepGrid& grid, const Cell& place, std::vector<Cell>& cells) {
  for (const std::size_t batch : grid.batches) {
    cells.push_back(place);
    cells.back().batch = batch;
  }
  for (const std::size_t each : grid.batches_per_rank) {
    cells.push_back(place);
    cells.back().batch = each * static_cast<std::size_t>(place.ranks);
    cells.back().batch_per_rank = static_cast<int>(each);
  }
}

/// Cells of one backend with one combination of the listed flags.
void add_columns(const SweepGrid& grid, const std::string& backend, const FlagTexts& axes,
                 std::vector<Cell>& cells) {
  const bool devices = training::is_device(backend);
  const std::vector<int> splits = devices ? std::vector{1} : grid.threads;
  for (const int cpus : grid.counts_of(backend)) {
    for (const int threads : splits) {
      if (cpus % threads != 0) continue;
      Cell place;
      place.cpus = cpus;
      place.backend = backend;
      place.threads = threads;
      place.ranks = cpus / threads;
      if (devices) place.gpus = cpus;
      place.axes = axes;
      add_batches(grid, place, cells);
    }
  }
}

/// A value as a part of a folder's name.
std::string name_part(std::string value) {
  std::ranges::replace_if(
      value, [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '+' && c != '-'; },
      '_');
  return value;
}

// How the ranks of a cell are started.

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> users_words(const std::string& text, const Cell& cell) {
  std::vector<std::string> words = words_of(text);
  bool counted = false;
  for (std::string& word : words) {
    counted |= word.find("{ranks}") != std::string::npos;
    word = replaced(word, "{ranks}", std::to_string(cell.ranks));
    word = replaced(word, "{threads}", std::to_string(cell.threads));
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

std::vector<int> doubled(int first, int last) {
  std::vector<int> counts;
  for (long long n = first; n < last; n *= 2) counts.push_back(static_cast<int>(n));
  counts.push_back(last);
  return counts;
}

std::vector<FlagTexts> combinations_of(const SweepGrid& grid) {
  std::vector<FlagTexts> all{{}};
  for (const auto& [flag, values] : grid.listed) {
    std::vector<FlagTexts> longer;
    for (const FlagTexts& begun : all) {
      for (const std::string& value : values) longer.emplace_back(begun)[flag] = value;
    }
    if (!values.empty()) all = std::move(longer);
  }
  return all;
}

double count_cells(const SweepGrid& grid) {
  double divided = 0;
  for (const int cpus : grid.cpus) {
    divided += static_cast<double>(std::ranges::count_if(
        grid.threads, [cpus](const int threads) { return cpus % threads == 0; }));
  }
  double columns = 0;
  for (const std::string& backend : grid.backends) {
    const auto devices = static_cast<double>(grid.counts_of(backend).size());
    columns += training::is_device(backend) ? devices : divided;
  }
  double each = static_cast<double>(grid.batches.size() + grid.batches_per_rank.size());
  for (const auto& [flag, values] : grid.listed) {
    each *= static_cast<double>(std::max<std::size_t>(values.size(), 1));
  }
  return columns * each;
}

std::vector<Cell> cells_of(const SweepGrid& grid) {
  std::vector<Cell> cells;
  const std::vector<FlagTexts> combinations = combinations_of(grid);
  for (const std::string& backend : grid.backends) {
    for (const FlagTexts& axes : combinations) add_columns(grid, backend, axes, cells);
  }
  return cells;
}

std::vector<std::string> left_out_of(const SweepGrid& grid) {
  std::vector<std::string> reasons;
  if (std::ranges::all_of(grid.backends, training::is_device)) return reasons;
  for (const int cpus : grid.cpus) {
    for (const int threads : grid.threads) {
      if (cpus % threads == 0) continue;
      reasons.push_back(
          fmt::format("{} CPUs are no whole number of ranks with {} threads each", cpus, threads));
    }
  }
  return reasons;
}

std::string cell_name(const Cell& c) {
  const std::string batch =
      c.batch_per_rank ? fmt::format("w{}", *c.batch_per_rank) : fmt::format("b{}", c.batch);
  std::string name = fmt::format("np{}-t{}-{}-{}", c.ranks, c.threads, batch, c.backend);
  for (const auto& [flag, value] : without_usual(c.axes)) {
    name += fmt::format("-{}={}", flag, name_part(value));
  }
  return name;
}

std::string cell_text(const Cell& c) {
  std::string text = training::is_device(c.backend)
                         ? counted(c.ranks, "GPU")
                         : counted(c.ranks, "rank") + " x " + counted(c.threads, "thread");
  text += fmt::format(", batch {}{}, {}", c.batch,
                      c.batch_per_rank ? fmt::format(" ({} per rank)", *c.batch_per_rank) : "",
                      c.backend);
  for (const auto& [flag, value] : c.axes) text += ", " + option_text(flag, value);
  return text;
}

StepPlan steps_for(const Cell& cell, const EpochSize& epoch, std::optional<int> asked) {
  const std::size_t batch = epoch.images_of_step(cell.batch);
  constexpr int kLeast = 5, kMost = 25;
  constexpr std::size_t kImages = 2048;
  const auto usual = static_cast<int>(std::min<std::size_t>(kImages / batch, kMost));
  // A convolution tries up to four methods in three micro-batches each (backends/cpu), and a rank
  // computes at most 32 images at once, or twice its threads. Only images and the time left are
  // planned by this: how long the trials were, the run's steps say.
  constexpr std::size_t kTrials = 12, kMicroBatch = 32;
  const std::size_t share = batch / static_cast<std::size_t>(cell.ranks);
  const std::size_t most = std::max(kMicroBatch, 2 * static_cast<std::size_t>(cell.threads));
  const std::size_t at_once = std::max<std::size_t>(share / most, 1);
  StepPlan plan;
  plan.measured = asked.value_or(std::max(usual, kLeast));
  plan.warm_up = 1 + static_cast<int>((kTrials + at_once - 1) / at_once);
  const auto steps =
      static_cast<std::size_t>(plan.warm_up) + static_cast<std::size_t>(plan.measured);
  plan.images = std::min(epoch.images, steps * batch);
  return plan;
}

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
