#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "core/error.h"
#include "core/text.h"
#include "scaling/bench/kernels.h"
#include "scaling/bench/steps.h"
#include "scaling/commands/commands.h"
#include "system/print.h"
#include "training/plan/image_place.h"
#include "training/request/flag_grammars.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;

/// "1,2,4"
std::vector<int> parse_micro_batches(const std::string& text) {
  constexpr int kMost = 65536;
  std::vector<int> sizes;
  for (const std::string& word : split(text, ',')) {
    const int images = number_in<int>(word).value_or(0);
    if (images < 1 || images > kMost) {
      fail(ExitCode::usage,
           "--micro-batch {}: must be whole numbers from 1 to {} with one comma between each two, "
           "such as 1,8,32",
           text, kMost);
    }
    sizes.push_back(images);
  }
  return sizes;
}

void check_enough(const BenchOptions& options, std::size_t there, std::size_t wanted) {
  if (there >= wanted) return;
  fail(ExitCode::usage,
       "{} training images of {} are fewer than a round's {} (speed depends on what is in them); "
       "name smaller --micro-batch and --batch, or other --data",
       there, options.data_or_synthetic(), wanted);
}

void print_head(const training::Session& session, const BenchOptions& options,
                const training::TrainingSpec& spec, const compute::Limits& limits,
                std::size_t least) {
  system::print(
      "{} at {}x{}, {}, {}; images of {}, {}; medians of {} of at least {} images\nlimits measured "
      "in this run: {:.0f} GFLOP/s of {} (peak), {:.1f} GB/s of triad (mem.)\nGFLOP/s "
      "count direct convolution; of mem.: source, destination and weights once each; map, grad.: "
      "parts of\nwhat is read and of the gradient that comes back that are not zero, where that is "
      "known\n",
      spec.model->name, spec.image.height, spec.image.width,
      training::backend_in_figures(session.backend->name(), word_of(spec.flags.precision)),
      counted(session.threads, "thread"), options.data_or_synthetic(),
      options.weights.empty() ? "initial weights (--weights: others)"
                              : "weights " + options.weights,
      counted(options.repeats(), "round"), least, limits.peak(spec.flags.precision),
      limits.peak(spec.flags.precision) == limits.fma_gflops ? "multiply-adds"
                                                             : "bf16 in AMX tiles",
      limits.triad_gbs);
}

// The table for people.

constexpr const char* kHalf = "{:>11}{:>9}{:>8}{:>8}{:>7}{:>7}  {:<38}";

template <class... Cells>
std::string half(const Cells&... cells) {
  return fmt::format(fmt::runtime(kHalf), cells...);
}

std::string fraction_text(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.2f}", *fraction) : "";
}

std::string half_of(const bench::LayerFigures& layer, const bench::DirectionFigures& d) {
  return half(fmt::format("{:.1f}", 1e6 * d.seconds.median),
              d.gflops ? fmt::format("{:.0f}", d.gflops->median) : "", fraction_text(d.of_peak),
              fraction_text(d.of_bandwidth), compute::density_text(layer.density),
              compute::density_text(layer.gradient_density), d.algorithm);
}

/// Without the blanks that fill its last column.
void print_row(std::string row) {
  row.erase(row.find_last_not_of(' ') + 1);
  system::print("{}\n", row);
}

/// The same layer and direction without zeros; empty where it is not there, as ReLU is not.
std::string half_beside(const bench::KernelFigures& other, const bench::LayerFigures& layer,
                        const bench::DirectionFigures& direction) {
  const auto found = std::ranges::find(other.layers, layer.name, &bench::LayerFigures::name);
  if (found == other.layers.end()) return "";
  const auto same =
      std::ranges::find(found->directions, direction.way, &bench::DirectionFigures::way);
  return same == found->directions.end() ? "" : half_of(*found, *same);
}

void print_kernel_layers(const bench::KernelFigures& given, const bench::KernelFigures& no_zeros) {
  constexpr std::size_t kNarrowest = 25, kWay = 9;
  const std::size_t width = bench::name_width(given.layers, kNarrowest);
  const std::string titles =
      half("us/image", "GFLOP/s", "of peak", "of mem.", "map", "grad.", "algorithm");
  const std::string head = fmt::format("micro-batch {}", given.micro_batch);
  system::print("\n{:<{}}{:<{}}no zeros\n", head, width + kWay, "the given weights",
                titles.size() + 1);
  print_row(fmt::format("{:<{}}{:<{}}{} {}", "layer", width, "", kWay, titles, titles));
  for (const bench::LayerFigures& layer : given.layers) {
    for (const bench::DirectionFigures& direction : layer.directions) {
      print_row(fmt::format("{}{:<{}}{} {}", in_columns(escaped(layer.name), width),
                            direction.way->title, kWay, half_of(layer, direction),
                            half_beside(no_zeros, layer, direction)));
    }
  }
}

void print_sums(const bench::KernelMeasurement& found) {
  system::print("\nall layers   {:^52}  {:^52}\n{:<13}", "the given weights", "no zeros",
                "micro-batch");
  for (int i = 0; i < 2; ++i)
    system::print("{:>12}{:>22}{:>9}{:>9}  ", "ms/image", "", "GFLOP/s", "of peak");
  system::print("\n");
  for (std::size_t i = 0; i < found.given.size(); ++i) {
    system::print("{:<13}", found.given[i].micro_batch);
    for (const bench::KernelFigures* f : {&found.given[i], &found.no_zeros[i]}) {
      system::print("{:>12.2f}{:>22}{:>9.0f}{:>9.2f}  ", 1e3 * f->seconds.median,
                    fmt::format("({:.2f} to {:.2f})", 1e3 * f->seconds.min, 1e3 * f->seconds.max),
                    f->gflops.median, f->of_peak);
    }
    system::print("\n");
  }
}

/// A line a layer and direction for each number of images, the worst case beside the given weights;
/// then a line a number of images, all layers together.
void print_kernels(const bench::KernelMeasurement& found) {
  for (std::size_t i = 0; i < found.given.size(); ++i) {
    print_kernel_layers(found.given[i], found.no_zeros[i]);
  }
  print_sums(found);
}

Json result_json(const training::Session& session, const BenchOptions& options,
                 const training::TrainingSpec& spec, const bench::KernelMeasurement& found) {
  Json micro_batches = Json::array();
  for (std::size_t i = 0; i < found.given.size(); ++i) {
    micro_batches.push_back({{"micro_batch", found.given[i].micro_batch},
                             {"images", found.given[i].images},
                             {"given", bench::json_of(found.given[i])},
                             {"no_zeros", bench::json_of(found.no_zeros[i])}});
  }
  return {{"bench", "kernels"},
          {"model", spec.model->name},
          {"image_size", spec.image.height},
          {"data", options.data_or_synthetic()},
          {"weights", options.weights.empty() ? Json() : Json(options.weights)},
          {"threads", session.threads},
          {"repeats", options.repeats()},
          {"limit", training::limits_json(found.limits)},
          {"backend", session.backend->facts().description},
          {"cpu", session.machine.cpu_model},
          {"cpu_id", to_json(session.machine.cpu_id)},
          {"micro_batches", std::move(micro_batches)}};
}

void add_kernels_flags(cli::Flags& f, BenchOptions& c, const cli::CommandLineChoices& choices) {
  add_training_model_flags(f, c);
  add_data_flags(f, c, true);
  f.group("Measurement");
  f.parsed("micro-batch", "N,...",
           "images computed at once, one size after the other [1,2,4,8,11,32]",
           [&c](const std::string& text) { c.micro_batches = parse_micro_batches(text); });
  f.whole("batch", c.batch, 1, 65536,
          "images of a measured round, rounded up to whole micro-batches [32]");
  f.whole("repeat", c.repeat, 1, 1000, "measured rounds [5]");
  add_processor_flags(f, c, choices);
  add_row(f, c, "io-threads", "threads that decode images [as --threads]");
  add_backend_options(f, c, choices);
  add_json_flag(f, c.json);
}

ExitCode run_kernels(const BenchOptions& options, const training::Services& services) {
  constexpr std::size_t kImages = 32;
  training::TrainingSpec spec = training::choose_training(options);
  const training::Session session = training::start_session(options, services);
  training::check_alone(session, "bench kernels measures",
                        "ranks would disturb each other); start it without mpirun, with --threads");
  const bench::KernelRequest request{options.micro_batches, options.batch.value_or(kImages),
                                     options.repeats()};
  const std::size_t most = request.most_images();
  const data::DataSource source = open_images(options, services, most, spec.seed);
  check_enough(options, source.train.size(), most);
  const model::Graph graph = training::build_graph(spec, training::classes_of(spec, source));
  training::follow_ready_form(spec, source);
  const data::DecodedData data =
      training::decode_images(session, spec.flags, source, {spec.image, spec.resize});
  check_enough(options, data.train.size(), most);  // some may be damaged
  const auto found = bench::measure_kernels(session, spec, graph, data.train, request);
  if (options.prints()) {
    print_head(session, options, spec, found.limits, request.least);
    print_kernels(found);
  }
  training::write_json(session, options.json, result_json(session, options, spec, found));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_bench_kernels() {
  return cli::make_command<BenchOptions>(
      {.help = {.name = "bench",
                .topic = "kernels",
                .summary = "every layer and direction by micro-batch",
                .about =
                    "Measures every layer of a model, forward and backward, by the size of the "
                    "micro-batch.",
                .examples = {{"cputrain bench kernels --model dogcat --micro-batch 8,32",
                              "Compares two sizes of the micro-batch."}},
                .common = {"model", "image-size", "micro-batch", "batch", "repeat", "backend",
                           "precision", "threads", "json"}},
       .task = {.trains = false, .measures = true, .one_job = false},
       .add_flags = add_kernels_flags,
       .why_idle =
           [](const BenchOptions& options, const std::string& flag) {
             return why_idle_in_training(options, flag, {options.backend});
           },
       .run = run_kernels});
}

}  // namespace cputrain::commands
