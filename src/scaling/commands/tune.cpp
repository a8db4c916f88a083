#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "model/layer_patterns.h"
#include "scaling/commands/commands.h"
#include "system/files.h"
#include "system/print.h"
#include "training/request/training_rows.h"
#include "training/training.h"

namespace cputrain::commands {
namespace {

/// Flags of a training that say where it ends and what it leaves: taken, so that its words can be
/// copied, and without effect.
bool is_of_a_run(const std::string& flag) {
  constexpr const char* kParts[] = {"length", "checkpoints", "logs", "decoding"};
  constexpr const char* kNames[] = {"overwrite", "log-every", "profile", "measure-limits"};
  if (flag == "cache") return false;
  if (std::ranges::find(kNames, flag) != std::end(kNames)) return true;
  const auto& rows = training::training_rows();
  const auto is_it = [&](const training::FlagRow& row) {
    const bool both = row.kind == training::FlagRow::Kind::yes_or_no;
    return flag == row.name || (both && flag == "no-" + row.name);
  };
  const auto row = std::ranges::find_if(rows, is_it);
  return row != rows.end() && std::ranges::find(kParts, row->part) != std::end(kParts);
}

/// Around the rate that a training would have.
tune::RateRange rate_range(const TuneOptions& options, const training::TrainingSpec& spec) {
  constexpr double kAround = 1000;
  constexpr int kSteps = 100;
  const double usual = optim::LearningRate(spec.learning_rate, 1).target();
  if (usual == 0 && !(options.min_lr && options.max_lr)) {
    fail(ExitCode::usage,
         "--lr 0: the test goes from a thousandth of the rate to a thousand times as much (which "
         "is nothing); leave it out, or give --min-lr and --max-lr");
  }
  const tune::RateRange range{options.min_lr.value_or(usual / kAround),
                              options.max_lr.value_or(usual * kAround),
                              options.lr_steps.value_or(kSteps)};
  if (range.low < range.high) return range;
  fail(ExitCode::usage,
       "the test goes from --min-lr up to --max-lr, and {:g} is not below {:g}; without them it "
       "goes from {:g} to {:g}",
       range.low, range.high, usual / kAround, usual * kAround);
}

/// What is tuned and where; nothing is found yet.
tune::Findings nothing_of(const training::Session& session, const training::TrainingSpec& spec) {
  return {.model = spec.model->name,
          .backend = session.backend->facts().description,
          .precision = std::string(word_of(spec.flags.precision)),
          .optimizer = std::string(optim::rule_name(spec.optimizer.rule)),
          .cpu = session.machine.cpu_model,
          .data = spec.flags.data_or_synthetic(),
          .image_size = spec.image.height,
          .ranks = session.communicator->size(),
          .threads = session.threads};
}

/// Without what watches a training's validation, which has none here.
void watch_nothing(training::TrainingSpec& spec) {
  spec.flags.safety.early_stopping.reset();
  spec.flags.safety.save_best = false;
  spec.flags.target_accuracy.reset();
  spec.flags.schedule.reset();
  spec.learning_rate.schedule = optim::ConstantRate{};
}

/// The other layers' rate grows with the head's, as in a training what changes one changes both.
void say_backbone(const training::Training& training, double ratio) {
  training::say(
      training.session(),
      fmt::format("Learning rates of {} are tested; those of the layers before are {:.3g} times as "
                  "much in every step, as --backbone-lr is of --lr",
                  join(model::head_layers(training.plan().graph), ", "), ratio));
}

/// A training of its own, on as many images as its steps take.
tune::RateFindings tune_rate(const training::Session& session, training::TrainingSpec spec,
                             const tune::RateRange& range) {
  const std::size_t batch = spec.batch * static_cast<std::size_t>(spec.plan.accumulate);
  spec.flags.limit_val = 0;
  watch_nothing(spec);
  spec.flags.decode = training::Decoding::first;
  if (!spec.flags.limit_train) {
    spec.flags.limit_train = batch * static_cast<std::size_t>(range.steps);
  }
  const optim::LearningRateOptions rate = spec.learning_rate;
  const std::optional<double> backbone = spec.flags.backbone_lr;
  training::Training training = training::open_training(session, std::move(spec));
  training.compile();
  training.load();
  training.start();
  if (backbone) say_backbone(training, *backbone / rate.base);
  tune::RateFindings found =
      tune::test_rates(training, range, batch, optim::scale_factor(rate.scale, rate.n.value_or(1)));
  if (backbone) found.backbone = *backbone / rate.base;
  return found;
}

constexpr const char* kNoSizes =
    "Micro-batch and batch: not tried. A training keeps what its frozen layers make of every "
    "image, so how quick whole steps are matters in its first epoch alone; --find both tries "
    "sizes, too.";

/// Where sizes were not asked for, and matter in the first epoch alone.
bool leaves_sizes(const TuneOptions& options, const tune::Findings& findings) {
  const bool open = !options.micro_batch || !options.has_batch();
  const bool asked = options.asked || options.most_batch || options.repeat;
  return open && !asked && !options.data.empty() && findings.kept_features.value_or(0) == 1;
}

void write_findings(const TuneOptions& options, const training::Session& session,
                    const tune::Findings& findings) {
  if (options.prints()) {
    system::print_lines(report::markdown(tune::findings_document(findings, false)));
  }
  const nlohmann::ordered_json json = tune::findings_json(findings);
  if (!options.out.empty()) {
    const std::filesystem::path folder = options.out;
    system::make_folder(folder);
    system::write_own_file(folder / tune::kTuneName, json_text(json, 1) + "\n");
    system::write_own_file(folder / tune::kPageName, tune::findings_page(findings));
    if (options.prints()) system::print("Wrote {}\n", (folder / tune::kPageName).string());
  }
  training::write_json(session, options.json, json);
}

std::string why_idle_in_tune(const TuneOptions& options, const std::string& flag) {
  const auto is_any = [&](std::initializer_list<const char*> list) {
    return std::ranges::find(list, flag) != list.end();
  };
  if (is_any({"schedule", "warmup-epochs", "ema"})) {
    return "here, where each step has a rate of its own and weights are thrown away";
  }
  if (is_of_a_run(flag)) return "in tune, whose steps are its own and leave no run";
  if (is_any({"lr-steps", "min-lr", "max-lr"}) && !options.finds_rate()) {
    return options.find() == Find::speed ? "with --find speed, which tests no rates"
                                         : "without --data, whose images a test of rates needs";
  }
  if (flag == "repeat" && !options.finds_speed()) return "with --find rate, which times nothing";
  if (flag == "most-batch" && (options.has_batch() || !options.finds_speed())) {
    return "where no other batches are tried";
  }
  return why_idle_in_training(options, flag, {options.backend});
}

void add_tune_flags(cli::Flags& f, TuneOptions& c, const cli::CommandLineChoices& choices) {
  constexpr double kMostRate = 1e6, kLeastRate = 1e-30;
  add_learning_flags(f, c, {"batch", "micro-batch", "shares"});
  f.group("Tuning");
  f.choice("find", all_words<Find>(),
           "speed (micro-batch and batch) or rate (learning rate) [both; without --data speed "
           "alone; rate "
           "alone where all that frozen layers make of images is kept]",
           [&c](const std::string& word) { c.asked = *value_named<Find>(word); });
  f.whole("most-batch", c.most_batch, 1, 1 << 24,
          "largest batch that is tried, without --batch [1024, or 64 for each rank]");
  f.whole("repeat", c.repeat, 1, 1000,
          "rounds of each comparison, up to three times as many where other work disturbs them [3 "
          "to 9 that fill 8 seconds]");
  f.whole("lr-steps", c.lr_steps, 2, 1'000'000, "steps of the test of learning rates [100]");
  f.real("min-lr", c.min_lr, kLeastRate, kMostRate,
         "rate of its first step [a thousandth of the training's]");
  f.real("max-lr", c.max_lr, kLeastRate, kMostRate,
         "rate of its last step [a thousand times the training's]");
  add_stall_flags(f, c);
  add_machine_flags(f, c, choices);
  add_row(f, c, "cache");
  add_part(f, c, "input");
  add_part(f, c, "exchange");
  f.group("A training's run, without effect here");
  for (const training::FlagRow& row : training::training_rows()) {
    if (is_of_a_run(row.name)) add_row(f, c, row.name);
  }
  add_json_flag(f, c.json);
  add_row(f, c, "verbose", "0: warnings, errors and the result alone [as train]");
  add_row(f, c, "out", "folder for tune.json and tune.html [none]");
}

void check_tune(const TuneOptions& options, const cli::CommandLineChoices&) {
  check_partial(options);
  if (options.find() == Find::rate && options.data.empty()) {
    fail(ExitCode::usage,
         "--find rate needs --data (the images decide which rates train); --data synthetic takes "
         "made-up ones");
  }
}

ExitCode run_tune(const TuneOptions& options, const training::Services& services) {
  training::TrainingSpec spec = training::choose_training(options);
  spec.plan.growth.clear();  // every step is like the first
  training::Session session = training::start_session(options, services);
  training::fit_to_ranks(spec, session.communicator->size());
  std::optional<tune::RateRange> range;
  if (options.finds_rate()) range = rate_range(options, spec);
  // Before the long work: a wrong --out shows at once.
  if (session.leads() && !options.out.empty()) system::try_folder(options.out);
  tune::Findings findings = nothing_of(session, spec);
  if (options.finds_speed()) {
    findings.kept_features = kept_part(session, spec);
    if (leaves_sizes(options, findings)) {
      findings.no_batch = kNoSizes;
      training::say(session, kNoSizes);
    } else {
      tune_speed(session, spec, options, range, findings);
    }
  }
  if (range) {
    training::fit_to_ranks(spec, session.communicator->size());
    findings.rate = tune_rate(session, spec, *range);
  } else if (options.find() == Find::both) {
    findings.no_rate = "Learning rate: not tested without --data, whose images decide it.";
  }
  if (session.leads()) write_findings(options, session, findings);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_tune() {
  return cli::make_command<TuneOptions>(
      {.help =
           {.name = "tune",
            .summary = "the micro-batch, batch and learning rate to train with here",
            .about =
                "Measures how images/s and memory grow with the micro-batch and the batch, and how "
                "the loss falls while the learning rate grows. It ends with the flags to train "
                "with. No weights are kept.",
            .examples = {{"cputrain tune --data photos --out tuned",
                          "Looks for all three and writes tuned/tune.html and tuned/tune.json."},
                         {"mpirun -np 2 cputrain tune --find speed --image-size 128",
                          "Measures two ranks together, on synthetic images."},
                         {"cputrain tune --data photos --find rate --batch 64",
                          "Tests learning rates for batches of 64 images."}},
            .common = {"data", "model", "image-size", "batch", "find", "lr-steps", "min-lr",
                       "max-lr", "most-batch", "out", "json"},
            .others = "lr-find,lr_find,lr-finder,find-lr,autotune,range-test"},
       .task = {.trains = false, .measures = true},
       .add_flags = add_tune_flags,
       .check = check_tune,
       .why_idle = why_idle_in_tune,
       .run = run_tune});
}

}  // namespace cputrain::commands
