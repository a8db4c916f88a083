#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "comm/communicator.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/version.h"
#include "data/dataset.h"
#include "model/model_json.h"
#include "scaling/simulation/calibrate.h"
#include "system/clock.h"
#include "system/files.h"
#include "system/print.h"
#include "system/temporary.h"

namespace cputrain::simulation {
namespace {

/// Images at once for which passes are timed: from the share of the last rank to what several ranks
/// have usually.
const std::vector<int> kSizes{1, 2, 4, 8, 16, 32, 64, 128};

/// Images to train and to time with.
constexpr std::size_t kImages = 1280;

std::unique_ptr<compute::Backend> backend_with(int threads, const training::TrainingFlags& flags,
                                               const training::Services& services) {
  return services.make_backend({.name = flags.backend,
                                .precision = flags.precision,
                                .threads = threads,
                                .options = flags.options_of(flags.backend)});
}

/// What may compute the network, and the update rule.
std::string kernels_of(const training::TrainingSpec& spec, const training::Services& services) {
  return fmt::format("{}, {}", backend_with(1, spec.flags, services)->facts().kernels,
                     optim::rule_name(spec.optimizer.rule));
}

/// What the costs are of.
std::string fingerprint(const model::Graph& graph, const std::string& kernels) {
  return fmt::format("{:016x}, {}", model::fingerprint(graph), kernels);
}

/// However many are made up, they are alike.
std::string images_of(const training::TrainingFlags& flags) {
  constexpr const char* kMadeUp = "synthetic";
  if (flags.data.empty() || data::parse_data_spec(flags.data).word == kMadeUp) return kMadeUp;
  return data::absolute_data_spec(flags.data);
}

std::optional<CostTable> kept_costs(const std::filesystem::path& file, const std::string& network) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  try {
    CostTable table = read_costs(file);
    if (table.network != network) return {};
    system::tell("Costs measured earlier on this machine with the same images: {}", file.string());
    return table;
  } catch (const Error&) {
    return {};  // damaged: measured again and replaced
  }
}

void keep(const std::filesystem::path& file, const CostTable& table) {
  try {
    system::make_folder(file.parent_path());
    system::write_own_file(file, json_text(to_json(table), 1) + "\n");
  } catch (const Error& error) {
    system::tell("warning: the costs are not kept for the next simulation ({})", error.what());
  }
}

/// The hardware threads of a rank, where ranks fill cores first.
std::vector<int> cpus_of(const placement::Machine& machine, int rank, int threads) {
  std::vector<int> first, later;
  std::set<int> cores;
  for (std::size_t i = 0; i < machine.allowed_cpus.size(); ++i) {
    const bool fresh = cores.insert(machine.core_of_cpu[i]).second;
    (fresh ? first : later).push_back(machine.allowed_cpus[i]);
  }
  first.insert(first.end(), later.begin(), later.end());
  const auto begin = static_cast<std::size_t>(rank * threads) % first.size();
  const std::size_t end = std::min(begin + static_cast<std::size_t>(threads), first.size());
  return {first.begin() + static_cast<std::ptrdiff_t>(begin),
          first.begin() + static_cast<std::ptrdiff_t>(end)};
}

CostTable measure(const training::Services& services, const training::TrainingSpec& spec,
                  const model::Graph& graph, const placement::Machine& machine, double seconds,
                  bool here) {
  const auto solo = comm::make_solo();
  data::DataRequest request = spec.flags.data_request(spec.seed);
  request.limit_train = kImages;
  request.limit_validation = 0;
  if (spec.flags.data.empty()) request.spec = fmt::format("synthetic:{}", 2 * kImages);
  const data::DataSource source = services.data.open(request);
  training::TrainingSpec form = spec;
  training::follow_ready_form(form, source);
  const data::DecodedData data =
      services.data.decode(source, {spec.image, 1, {}, form.resize}, solo->node_memory());
  return calibrate(
      {.graph = graph,
       .rule = spec.optimizer.rule,
       .learning_rate = spec.learning_rate.base,
       .seed = spec.seed,
       .images = data.train,
       .machine = machine,
       .sizes = kSizes,
       .seconds = seconds,
       .trainings = here ? 6 : 3,
       .make_backend = [&](int threads) { return backend_with(threads, spec.flags, services); },
       .cpus = [&](int rank, int threads) { return cpus_of(machine, rank, threads); },
       .bind = services.bind_this_thread,
       .say = [](const std::string& line) { system::tell(line); }});
}

/// Every layer of the table must be of the network, and take time.
void check_layers(const CostTable& table, const model::Graph& graph, const std::string& file) {
  const auto nodes = graph.nodes();
  double seconds = 0;
  for (const LayerCost& layer : table.alone().layers) {
    seconds += layer.forward.front();
    const bool known =
        layer.name == kBetweenLayers ||
        std::ranges::find(nodes, layer.name, &model::Graph::Node::name) != nodes.end();
    if (known) continue;
    fail(ExitCode::data,
         "--costs {}: layer '{}' is not one of the model's; measure the costs with this program "
         "and the same --model",
         file, printable(layer.name));
  }
  if (seconds > 0) return;
  fail(ExitCode::data,
       "--costs {}: its layers take no time (so nothing could be forecast); measure them anew",
       file);
}

/// "own kernels 13 by 2": 13; 0 where they have none.
int kernels_version(const std::string& kernels) {
  constexpr std::string_view kWords = "own kernels ";
  const std::size_t at = kernels.find(kWords);
  return at == std::string::npos ? 0 : std::atoi(kernels.c_str() + at + kWords.size());
}

CostTable given_costs(const std::string& file, const training::Services& services,
                      const training::TrainingSpec& spec, const model::Graph& graph) {
  const std::string network = fingerprint(graph, kernels_of(spec, services));
  CostTable table = read_costs(file);
  check_layers(table, graph, file);
  const auto classes = static_cast<int>(graph.back().dst.size());
  if (table.model != spec.model->name || table.image_size != spec.image.height ||
      table.classes != classes) {
    fail(ExitCode::usage,
         "--costs {}: are of {} at {}x{} with {} outputs, not of {} at {}x{} with {} (every layer "
         "has its own); measure them with the same --model and --image-size",
         file, printable(table.model), table.image_size, table.image_size, table.classes,
         spec.model->name, spec.image.height, spec.image.width, classes);
  }
  if (table.network != network) {
    system::tell(
        "warning: --costs {}: measured with '{}', here it is '{}' (network, kernels, update rule); "
        "times are those of the former",
        file, printable(table.network), network);
  }
  return table;
}

CostTable measured_costs(const CostsRequest& request, const training::Services& services,
                         const training::TrainingSpec& spec, const model::Graph& graph) {
  const bool here = request.here;
  const std::string kernels = kernels_of(spec, services);
  const std::string network = fingerprint(graph, kernels);
  const placement::Machine machine = services.machine();
  auto cache = system::cache_folder();
  if (cache) *cache /= costs_file_name(spec.flags, machine, network);
  if (cache && !here && !request.seconds) {
    if (auto kept = kept_costs(*cache, network)) return *kept;
  }
  // What is forecast for this machine can be compared with it, so its costs are worth more time.
  constexpr int kSeconds = 60, kSecondsHere = 300;
  const int seconds = request.seconds.value_or(here ? kSecondsHere : kSeconds);
  CostTable table = measure(services, spec, graph, machine, seconds, here);
  table.date = system::today();
  table.commit = services.program_build;
  table.model = spec.model->name;
  table.image_size = spec.image.height;
  table.classes = static_cast<int>(graph.back().dst.size());
  table.network = network;
  table.kernels = kernels;
  if (!table.is_steady()) {
    system::tell(
        "warning: the machine's speed moved by {:.0f} % while it was measured (another program "
        "works on it, or its host); these costs serve for this once and are not kept",
        100 * table.drift());
  } else if (cache && seconds >= kSeconds) {
    keep(*cache, table);
  }
  return table;
}

}  // namespace

std::string costs_file_name(const training::TrainingFlags& flags, const placement::Machine& machine,
                            const std::string& network) {
  constexpr int kMethod = 4;  // calibrate()'s: what other ones measured is not taken
  const std::uint64_t key = Fnv1a()
                                .add(machine.cpu_model)
                                .add(machine.host)
                                .add(kVersion)
                                .add(network)
                                .add(images_of(flags))
                                .add_number(machine.allowed_cpus.size())
                                .add_number(kMethod)
                                .value();
  return fmt::format("costs-{:016x}.json", key);
}

CostTable find_costs(const CostsRequest& request, const training::Services& services,
                     const training::TrainingSpec& spec, const model::Graph& graph) {
  CostTable table = request.file.empty() ? measured_costs(request, services, spec, graph)
                                         : given_costs(request.file, services, spec, graph);
  const int then = kernels_version(table.kernels);
  const int now = kernels_version(kernels_of(spec, services));
  if (then > 0 && now > 0 && then != now) {
    table.stale = fmt::format(", with kernels {} (this program has {})", then, now);
  }
  return table;
}

}  // namespace cputrain::simulation
