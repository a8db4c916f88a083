#include "scaling/cells/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

}  // namespace

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

SweepCells cells_of(const SweepGrid& grid) {
  SweepCells result;
  const std::vector<FlagTexts> combinations = combinations_of(grid);
  for (const std::string& backend : grid.backends) {
    for (const FlagTexts& axes : combinations) add_columns(grid, backend, axes, result.cells);
  }
  if (std::ranges::all_of(grid.backends, training::is_device)) return result;
  for (const int cpus : grid.cpus) {
    for (const int threads : grid.threads) {
      if (cpus % threads == 0) continue;
      result.left_out.push_back(
          fmt::format("{} CPUs are no whole number of ranks with {} threads each", cpus, threads));
    }
  }
  return result;
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

std::size_t EpochSize::images_of_step(std::size_t batch) const { return std::min(batch, images); }

double EpochSize::steps(std::size_t batch) const {
  const double each = static_cast<double>(images_of_step(batch));
  const double steps = static_cast<double>(images) / each;
  return drop_last ? std::floor(steps) : steps;
}

double EpochSize::images_in(std::size_t batch) const {
  return steps(batch) * static_cast<double>(images_of_step(batch));
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

}  // namespace cputrain::cells
