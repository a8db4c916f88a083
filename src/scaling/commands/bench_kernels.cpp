#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "core/error.h"
#include "core/text.h"
#include "scaling/bench/kernels.h"
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
    int images = 0;
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, images);
    if (error != std::errc{} || stop != end || images < 1 || images > kMost) {
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

class BenchKernelsCommand final : public cli::CommandWith<BenchOptions> {
 public:
  BenchKernelsCommand() : CommandWith({.trains = false, .measures = true, .one_job = false}) {}

  cli::CommandEntry help() const override {
    return {.name = "bench",
            .topic = "kernels",
            .summary = "every layer and direction by micro-batch",
            .about =
                "Measures every layer of a model, forward and backward, by the size of the "
                "micro-batch.",
            .examples = {{"cputrain bench kernels --model dogcat --micro-batch 8,32",
                          "Compares two sizes of the micro-batch."}},
            .common = {"model", "image-size", "micro-batch", "batch", "repeat", "backend",
                       "precision", "threads", "json"}};
  }

  void add_flags(cli::Flags& f, const cli::CommandLineChoices& choices) override {
    BenchOptions& c = options_;
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

  std::string why_idle(const std::string& flag) const override {
    return why_idle_in_training(options_, flag, {options_.backend});
  }

  ExitCode run(const training::Services&) override;
};

ExitCode BenchKernelsCommand::run(const training::Services& services) {
  constexpr std::size_t kImages = 32;
  training::TrainingSpec spec = training::choose_training(options_);
  const training::Session session = training::start_session(options_, services);
  training::check_alone(session, "bench kernels measures",
                        "ranks would disturb each other); start it without mpirun, with --threads");
  const bench::KernelRequest request{options_.micro_batches, options_.batch.value_or(kImages),
                                     options_.repeats()};
  const std::size_t most = request.most_images();
  const data::DataSource source = open_images(options_, services, most, spec.seed);
  check_enough(options_, source.train.size(), most);
  const model::Graph graph = training::build_graph(spec, training::classes_of(spec, source));
  training::follow_ready_form(spec, source);
  const data::DecodedData data =
      training::decode_images(session, spec.flags, source, {spec.image, spec.resize});
  check_enough(options_, data.train.size(), most);  // some may be damaged
  const auto found = bench::measure_kernels(session, spec, graph, data.train, request);
  if (options_.prints()) {
    print_head(session, options_, spec, found.limits, request.least);
    bench::print_kernels(found);
  }
  training::write_json(session, options_.json, result_json(session, options_, spec, found));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_bench_kernels() {
  return std::make_unique<BenchKernelsCommand>();
}

}  // namespace cputrain::commands
