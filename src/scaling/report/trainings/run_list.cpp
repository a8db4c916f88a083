#include "scaling/report/trainings/run_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/text.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {

std::string without_folders(const std::string& text) {
  if (text.find(',') != text.npos) return text;
  const auto slash = text.find_last_not_of('/') == text.npos
                         ? text.npos
                         : text.rfind('/', text.find_last_not_of('/'));
  if (slash == text.npos) return text;
  const auto colon = text.find(':');
  const bool has_kind = colon != text.npos && colon < slash;
  return (has_kind ? text.substr(0, colon + 1) : "") + text.substr(slash + 1);
}

namespace {

namespace fs = std::filesystem;
using Configuration = std::map<std::string, std::string>;

constexpr std::size_t kLongest = 60;  // letters of a text in a column

/// What `text` says of a run, without folders where that tells all of them apart.
std::function<std::string(const RunRecord&)> shortened(
    const std::vector<RunRecord>& runs, std::function<std::string(const RunRecord&)> text) {
  std::map<std::string, std::set<std::string>> longer;
  for (const RunRecord& run : runs) longer[without_folders(text(run))].insert(text(run));
  const bool told = std::ranges::all_of(longer, [](const auto& e) { return e.second.size() == 1; });
  return [text, told](const RunRecord& run) {
    std::string shown = told ? without_folders(text(run)) : text(run);
    return shown.size() > kLongest ? "..." + shown.substr(shown.size() - kLongest) : shown;
  };
}

/// The names of a folder and of those above it, from the root on.
std::vector<std::string> names_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& name : fs::absolute(folder).lexically_normal()) {
    if (!name.empty()) names.push_back(name.string());
  }
  return names;
}

std::string last_names(const std::vector<std::string>& names, std::size_t count) {
  const std::size_t first = names.size() - std::min(count, names.size());
  return join({names.begin() + static_cast<std::ptrdiff_t>(first), names.end()}, "/");
}

/// "--batch 128" of config.json, "4 ranks" of environment.json.
std::string difference_text(const std::string& key, const std::string& value) {
  if (key == "machine") return value;
  if (key == "ranks" || key == "threads")
    return fmt::format("{} {}{}", value, key.substr(0, key.size() - 1), value == "1" ? "" : "s");
  return key + " " + (value.empty() ? "not given" : value);
}

/// What this configuration has otherwise than any of the others; flags that it was given before
/// those that only others were.
std::string difference_to(const std::vector<const Configuration*>& others,
                          const Configuration& own) {
  std::set<std::string> keys;
  for (const Configuration* other : others) {
    for (const auto& [key, value] : *other) keys.insert(key);
  }
  std::vector<std::string> texts, absent;
  for (const std::string& key : keys) {
    const auto value_in = [&](const Configuration& c) {
      const auto found = c.find(key);
      return found == c.end() ? std::string() : found->second;
    };
    const std::string value = value_in(own);
    const bool differs = std::ranges::any_of(
        others, [&](const Configuration* other) { return value_in(*other) != value; });
    if (differs)
      (value.empty() ? absent : texts).push_back(difference_text(key, without_folders(value)));
  }
  if (texts.empty()) texts = absent;
  return texts.empty() ? "all runs" : first_few(texts, 5);
}

}  // namespace

std::optional<double> cost_of(const RunRecord& run, const cells::Prices& prices) {
  const auto seconds = run.total_seconds();
  if (!seconds || !run.ranks || !run.threads || run.devices.emulated) return std::nullopt;
  int units = *run.ranks * *run.threads;
  // Threads beside a GPU are not GPUs; a rank has one where their number is not known.
  if (training::is_device(run.backend)) {
    units = run.devices.count > 0 ? run.devices.count : *run.ranks;
  }
  return prices.of(run.backend, units, *seconds);
}

std::optional<double> last_loss(const RunRecord& run) {
  return run.epochs.empty() ? std::nullopt : run.epochs.back().train.finite_loss();
}

void tell_names_apart(std::vector<RunRecord>& runs) {
  std::map<std::string, std::vector<RunRecord*>> alike;
  for (RunRecord& run : runs) alike[run.name].push_back(&run);
  for (auto& [name, group] : alike) {
    std::size_t most = 0;
    for (const RunRecord* run : group) most = std::max(most, names_of(run->folder).size());
    std::set<std::string> told{name};
    for (std::size_t count = 2; told.size() < group.size() && count <= most; ++count) {
      told.clear();
      for (RunRecord* run : group)
        told.insert(run->name = last_names(names_of(run->folder), count));
    }
  }
}

void sort_by_accuracy(std::vector<RunRecord>& runs) {
  const auto key = [](const RunRecord& run) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    const auto best = run.best();
    return std::tuple(best ? -best->accuracy : 1, best ? best->seconds.value_or(kNever) : kNever,
                      run.name);
  };
  std::ranges::stable_sort(runs, {}, key);
}

std::vector<Repeats> repeats_of(const std::vector<RunRecord>& runs) {
  std::map<Configuration, std::vector<const RunRecord*>> groups;
  std::vector<const Configuration*> order;
  for (const RunRecord& run : runs) {
    auto& group = groups[run.configuration];
    // A run whose flags cannot be read is like no other.
    if (group.empty() && !run.model.empty()) order.push_back(&run.configuration);
    group.push_back(&run);
  }
  std::vector<Repeats> repeats;
  for (const Configuration* configuration : order) {
    if (groups.at(*configuration).size() < 2) continue;
    repeats.push_back({groups.at(*configuration), difference_to(order, *configuration)});
  }
  return repeats;
}

std::vector<Choice> choices_of(const std::vector<RunRecord>& runs) {
  const auto model = shortened(runs, [](const RunRecord& r) { return r.model; });
  const auto data = shortened(runs, [](const RunRecord& r) { return r.data; });
  const auto after = [](const char* word, const auto& text) {
    return [word, text](const RunRecord& r) {
      return text(r).empty() ? "" : fmt::format("{} {}", word, text(r));
    };
  };
  const auto size = [](const RunRecord& r) {
    return r.image_size ? fmt::format("{0}x{0}", *r.image_size) : "";
  };
  const auto places = [](const RunRecord& r) {
    return r.ranks && r.threads ? fmt::format("{} x {}", *r.ranks, *r.threads) : "";
  };
  const auto places_words = [](const RunRecord& r) {
    if (!r.ranks || !r.threads) return std::string();
    return counted(*r.ranks, "rank") + " x " + counted(*r.threads, "thread");
  };
  const auto cpus = [](const RunRecord& r) -> std::optional<double> {
    if (!r.ranks || !r.threads) return std::nullopt;
    return static_cast<double>(*r.ranks) * *r.threads;
  };
  const auto backend = [](const RunRecord& r) {
    return training::backend_in_figures(r.backend, r.precision) +
           (r.devices.emulated ? ", emulated: its times mean nothing" : "");
  };
  const auto batch = [](const RunRecord& r) { return r.batch ? std::to_string(*r.batch) : ""; };
  const auto value_of = [](auto number) {
    return [number](const RunRecord& r) {
      return r.*number ? std::optional(static_cast<double>(*(r.*number))) : std::nullopt;
    };
  };
  const auto rule = [](const RunRecord& r) { return r.rule; };
  const auto machine = [](const RunRecord& r) { return r.machine; };
  return {{"model", model, after("model", model)},
          {"data", data, after("data", data)},
          {"image size", size, after("images of", size), value_of(&RunRecord::image_size)},
          {"ranks x threads", places, places_words, cpus},
          {"backend", backend, after("backend", backend)},
          {"batch", batch, after("batch", batch), value_of(&RunRecord::batch)},
          {"optimizer", rule, rule},
          {"machine", machine, machine}};
}

}  // namespace cputrain::report
