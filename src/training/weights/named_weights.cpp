#include "training/weights/named_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "checkpoint/manifest.h"
#include "core/error.h"
#include "core/text.h"
#include "model/normalization.h"
#include "runfiles/metrics.h"
#include "system/file_system.h"
#include "weights/description.h"
#include "weights/weight_file.h"
#include "zoo/zoo.h"

namespace cputrain::training {
namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& folder) { return system::is_present(folder / kConfigName); }

bool is_checkpoint(const fs::path& folder) {
  return system::is_present(folder / checkpoint::kManifestName) &&
         system::is_present(folder / checkpoint::kModelName);
}

/// "runs/first/" -> "runs/first", whose parent is "runs".
fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// The run of a file in its folder or in one of its checkpoints.
fs::path run_of(const fs::path& file) {
  const fs::path folder = parent_of(file);
  if (is_run(folder)) return folder;
  std::error_code ignored;
  const fs::path above = parent_of(fs::canonical(folder, ignored));
  return is_checkpoint(folder) && is_run(above) ? above : fs::path();
}

/// Its folder; empty where the run has no whole one.
fs::path newest_whole_checkpoint(const fs::path& run) {
  for (const checkpoint::Found& found : checkpoint::list(run)) {
    if (is_checkpoint(found.folder) && checkpoint::fault_of(found.folder).empty()) {
      return found.folder;
    }
  }
  return {};
}

/// "; its newest run is runs/b", of a folder of runs.
std::string newest_run_within(const fs::path& folder) {
  fs::path newest;
  fs::file_time_type time{};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto changed = fs::last_write_time(entry.path() / kConfigName, error);
    if (error || (!newest.empty() && changed <= time)) continue;
    newest = entry.path();
    time = changed;
  }
  return newest.empty() ? "" : fmt::format("; its newest run is {}", newest.string());
}

/// Weights of other programs that are folders, or several files.
void refuse_foreign_folder(const fs::path& path) {
  const std::string what = weights::foreign_folder(path);
  if (!what.empty()) weights::refuse_foreign(path, what);
}

/// Names of files that end as weights do, in the order of the alphabet.
std::vector<std::string> files_called(const fs::path& folder,
                                      std::span<const char* const> endings) {
  std::vector<std::string> names;
  for (const std::string& name : system::names_in(folder)) {
    const std::string ending = fs::path(name).extension().string();
    const bool is_one = std::ranges::count(endings, std::string_view(ending)) > 0;
    if (is_one && system::is_file(folder / name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

/// A folder of no run, with weights of other programs in it.
void refuse_folder_of_files(const fs::path& folder) {
  constexpr const char* kRead[] = {".safetensors", ".keras", ".h5",  ".hdf5", ".pth",
                                   ".pt",          ".bin",   ".tar", ".ckpt"};
  const std::vector<std::string> files = files_called(folder, kRead);
  if (files.empty()) return;
  fail(ExitCode::data,
       "--weights {0}: the folder is not that of a run (which file is meant is not certain); it "
       "holds {1}: name {2}, --weights {3}",
       printable(folder.string()), first_few(files), files.size() == 1 ? "the file" : "one of them",
       printable((folder / files.front()).string()));
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  refuse_foreign_folder(folder);
  const bool run = is_run(folder) || holds_run(folder);
  if (!run) refuse_folder_of_files(folder);
  fail(ExitCode::data,
       "--weights {}: the folder holds no weights ({}){}; name a weights.safetensors, or the "
       "folder of a run that wrote some",
       folder.string(),
       run ? "the run has neither ended nor written a whole checkpoint" : "it is not that of a run",
       run ? "" : newest_run_within(folder));
}

/// The value of a flag as config.json has it: a text, a number or true.
std::string text_of(const nlohmann::json& flags, const char* name) {
  const auto found = flags.find(name);
  if (found == flags.end()) return {};
  return found->is_string() ? found->get<std::string>() : found->dump();
}

/// The same of a run; empty also where its config.json is missing or damaged.
std::string recorded(const fs::path& run, const char* flag) {
  try {
    return text_of(runfiles::read_config(run), flag);
  } catch (const std::runtime_error&) {
    return "";
  }
}

/// Weights that a run's folder stands for. What --no-save-best left there is of an earlier start,
/// and no later epoch was compared with it.
NamedWeights weights_of_run(const fs::path& run) {
  const fs::path best = run / kBestName, last = run / kWeightsName;
  if (system::is_present(best) && recorded(run, "no-save-best") != "true") {
    const std::string others =
        system::is_present(last) ? "; those of its end are in " + last.string() : "";
    return {best, "the weights of the run's best epoch" + others, run};
  }
  if (!system::is_present(last) || !runfiles::is_finished(run)) {
    const fs::path newest = newest_whole_checkpoint(run);
    if (!newest.empty()) {
      return {newest / checkpoint::kModelName,
              "of the newest checkpoint, since the run is not finished", run};
    }
  }
  if (!system::is_present(last)) refuse_folder(run);
  return {last, "of the run's end", run};
}

bool is_built_in(const std::string& model) {
  return std::ranges::count(zoo::model_zoo(), model, &zoo::ModelEntry::name) > 0;
}

}  // namespace

bool holds_run(const std::filesystem::path& folder) {
  return system::is_present(folder / runfiles::kMetricsName) ||
         system::is_present(folder / kWeightsName) || !checkpoint::list(folder).empty();
}

NamedWeights find_weights(const fs::path& named) {
  if (!system::is_folder(named)) {
    if (!system::is_present(named)) refuse_foreign_folder(named);
    return {named, "", run_of(named)};
  }
  const fs::path folder = without_slash(named);
  NamedWeights found;
  if (is_checkpoint(folder)) {
    const fs::path file = folder / checkpoint::kModelName;
    found = {file, "of the checkpoint", run_of(file)};
  } else {
    found = weights_of_run(folder);
  }
  found.chosen =
      fmt::format("--weights {}: takes {}, {}", named.string(), found.file.string(), found.chosen);
  return found;
}

bool weights_are_there(const fs::path& named) {
  std::error_code error;
  if (!fs::exists(named, error)) return static_cast<bool>(error);
  if (!system::is_folder(named)) return true;
  try {
    find_weights(named);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::optional<data::DataRequest> data_of_run(const fs::path& run) {
  try {
    const auto flags = runfiles::read_config(run);
    data::DataRequest data{.spec = text_of(flags, "data"),
                           .balanced = text_of(flags, "balanced") == "true",
                           .allow_empty_classes = text_of(flags, "allow-empty-classes") == "true"};
    if (data.spec.empty()) return std::nullopt;
    const auto images = number_in<std::size_t>(text_of(flags, "limit-val"));
    if (images > 0u) data.limit_validation = images;
    return data;
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

std::string recorded_weights(const fs::path& run) { return recorded(run, "weights"); }

std::optional<DescribedModel> described_model(const std::filesystem::path& weights) {
  if (!weights::describes_itself(weights)) return std::nullopt;
  const weights::ModelDescription description = weights::read_description(weights);
  if (!is_built_in(description.model)) return std::nullopt;
  const model::Graph& graph = description.graph;
  return DescribedModel{description.model, graph.image().height,
                        model::normalization_word(graph.input())};
}

void follow(TrainingFlags& flags, const DescribedModel& described) {
  flags.model = described.name;
  if (!flags.image_size) flags.image_size = described.image_size;
  if (!flags.normalize && !described.normalize.empty()) {
    flags.normalize = model::parse_normalization(described.normalize);
  }
}

}  // namespace cputrain::training
