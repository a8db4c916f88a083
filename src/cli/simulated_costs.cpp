#include "cli/simulated_costs.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/algorithm_cache.h"
#include "comm/solo.h"
#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/json_text.h"
#include "core/tell.h"
#include "core/version.h"
#include "model/model_json.h"
#include "simulation/calibrate.h"

namespace cputrain {
namespace {

/// Images at once for which passes are timed: from the share of the last rank to what several ranks
/// have usually.
const std::vector<int> kSizes{1, 2, 4, 8, 16, 32};

std::unique_ptr<Backend> one_thread(const Config& config, const Services& services) {
  return services.make_backend({.name = config.backend,
                                .precision = DType::f32,
                                .threads = 1,
                                .kernels = {.winograd = config.winograd,
                                            .skip_zeros = config.skip_zeros,
                                            .bf16 = config.precision == "bf16",
                                            .measure = true}});
}

/// What the costs are of: the network, what may compute it, and the update rule.
std::string fingerprint(const TrainingChoices& choices, const Graph& graph,
                        const Backend& backend) {
  return fmt::format("{:016x}, {}, {}", Fnv1a().add(json_text(to_json(graph))).value(),
                     backend.kernels(), rule_name(choices.optimizer.rule));
}

std::optional<std::filesystem::path> cache_file(const Machine& machine,
                                                const std::string& network) {
  const auto beside = algorithms_file();
  if (!beside) return {};
  const std::uint64_t key = Fnv1a()
                                .add(machine.cpu_model)
                                .add(machine.host)
                                .add(kVersion)
                                .add(network)
                                .add_number(machine.allowed_cpus.size())
                                .value();
  return beside->parent_path() / fmt::format("costs-{:016x}.json", key);
}

std::optional<CostTable> kept_costs(const std::filesystem::path& file, const std::string& network) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  try {
    CostTable table = read_costs(file);
    if (table.network != network) return {};
    tell(fmt::format("Costs measured earlier on this machine: {}", file.string()));
    return table;
  } catch (const Error&) {
    return {};  // damaged: measured again and replaced
  }
}

void keep(const std::filesystem::path& file, const CostTable& table) {
  try {
    make_folder(file.parent_path());
    write_file(file, json_text(to_json(table), 1) + "\n");
  } catch (const Error& error) {
    tell(fmt::format("warning: the costs are not kept for the next simulation ({})", error.what()));
  }
}

CostTable measure(const Config& config, const Services& services, const TrainingChoices& choices,
                  const Graph& graph, const Machine& machine) {
  const auto solo = make_solo();
  DataRequest request = config.data_request(choices.seed);
  request.limit_train = 2 * static_cast<std::size_t>(kSizes.back());
  request.limit_validation = 0;
  if (config.data.empty()) request.spec = fmt::format("synthetic:{}", 4 * kSizes.back());
  const DataSource source = services.data.open(request);
  const DecodedData data = services.data.decode(source, {choices.image, 1, {}, choices.resize},
                                                solo->node_memory(), solo->node_barrier());
  return calibrate({.graph = graph,
                    .rule = choices.optimizer.rule,
                    .seed = choices.seed,
                    .images = data.train,
                    .machine = machine,
                    .sizes = kSizes,
                    .make_backend = [&] { return one_thread(config, services); },
                    .say = [](const std::string& line) { tell(line); }});
}

}  // namespace

CostTable costs_of(const Config& config, const Services& services, const TrainingChoices& choices,
                   const Graph& graph, bool anew) {
  const auto classes = static_cast<int>(graph.back().dst.size());
  const std::string network = fingerprint(choices, graph, *one_thread(config, services));
  const std::string& file = config.simulation.costs;
  if (!file.empty()) {
    CostTable table = read_costs(file);
    if (table.model == choices.model->name && table.image_size == choices.image.height &&
        table.classes == classes) {
      return table;
    }
    fail(ExitCode::usage,
         fmt::format("--costs {}: are of {} at {}x{} with {} outputs, not of {} at {}x{} with {} "
                     "(every layer has its own); measure them with the same --model and "
                     "--image-size",
                     file, table.model, table.image_size, table.image_size, table.classes,
                     choices.model->name, choices.image.height, choices.image.width, classes));
  }
  const Machine machine = services.machine();
  const auto cache = cache_file(machine, network);
  if (cache && !anew) {
    if (auto kept = kept_costs(*cache, network)) return *kept;
  }
  CostTable table = measure(config, services, choices, graph, machine);
  table.model = choices.model->name;
  table.image_size = choices.image.height;
  table.classes = classes;
  table.network = network;
  if (cache) keep(*cache, table);
  return table;
}

}  // namespace cputrain
