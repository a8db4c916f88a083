#include "cli/command.h"

#include <fmt/format.h>

#include <system_error>

#include "cli/flags/foreign_words.h"
#include "core/text.h"
#include "model/normalization.h"
#include "system/print.h"
#include "training/session/session.h"
#include "training/weights/named_weights.h"
#include "weights/weight_file.h"
#include "zoo/published.h"
#include "zoo/zoo.h"

namespace cputrain::cli {
namespace {

/// Before anything long begins, and in a dry run, too.
void check_file(const std::string& file, const weights::ReadKeras& read_keras) {
  if (!training::weights_are_there(file)) {
    fail(ExitCode::data,
         "--weights {}: there is no such file or folder (nothing can be loaded); name a "
         "weights.safetensors, or the folder of a run{}",
         file, hint_for_weights(file));
  }
  weights::check_weights(file, read_keras);
}

/// Whether a file that is kept is the published one: by its SHA-256, where that is known, else by
/// the ending that tells the program which wrote it.
bool is_published(const std::filesystem::path& kept, const zoo::Published& published,
                  const training::Services& services) {
  const std::string digits = zoo::digits_in(published.file());
  if (!digits.empty()) return services.sha256(kept).starts_with(digits);
  return kept.extension() == std::filesystem::path(published.file()).extension();
}

/// Pixels as the published weights learnt from them. All ranks take these, and rank 0 says it.
void take_pixels(Options& options, bool leads, const zoo::Published& published,
                 const training::Services& services) {
  if (published.normalize.empty() || options.normalize) return;
  options.normalize = model::parse_normalization(published.normalize);
  if (!leads) return;
  const auto kept = zoo::kept_weights(published.model);
  if (kept && !is_published(*kept, published, services)) {
    system::tell(
        "warning: --weights imagenet: {} is not known to be what {} published, whose "
        "pixels it gets (--normalize {}); if it learnt from others, say --normalize",
        printable(kept->string()), published.source, published.normalize);
  } else if (options.verbose != 0) {
    system::tell("--weights imagenet: pixels as those of {} learnt from them, --normalize {}",
                 published.source, published.normalize);
  }
}

/// The word that other programs know: the network's file among those that are kept.
void take_imagenet(Options& options, bool leads, const training::Services& services) {
  if (options.weights != kImageNet || system::is_present(kImageNet)) return;
  const std::string model = zoo::find_model(options.model)->name;
  const zoo::Published* published = zoo::find_published(model);
  if (published) take_pixels(options, leads, *published, services);
  if (const auto kept = zoo::kept_weights(model)) {
    options.weights = kept->string();
    return;
  }
  const std::string by_hand =
      fmt::format("put a file of {} into {}, as {}.pth, .safetensors or .h5", printable(model),
                  printable(zoo::kept_folder().string()), printable(model));
  fail(
      ExitCode::data,
      published
          ? fmt::format("--weights imagenet: there are none of {0} here yet (only `weights fetch` "
                        "uses the network); run: {1} weights fetch {0}; or {2}",
                        model, options.program, by_hand)
          : fmt::format("--weights imagenet: of {} we know no published ones that fit (none can be "
                        "fetched); choose a --model that has some ({} weights list), or {}",
                        printable(model), options.program, by_hand));
}

/// What writes a result replaces the file that is there; those of a run are refused already.
void check_results_beside_weights(Command& command) {
  for (const auto& [flag, file] : command.results()) {
    std::error_code none;  // no such file: none is lost
    if (!std::filesystem::equivalent(file, command.options().weights, none)) continue;
    fail(ExitCode::usage,
         "{} {}: this file holds the weights (the result would replace them); name another file",
         flag, file);
  }
}

/// Each rank reads it, since a training is chosen before ranks meet.
void take_model(Options& options, bool leads) {
  if (!leads && !training::weights_are_there(options.weights)) {
    fail(ExitCode::data,
         "--weights {}: no such file (without --model each rank reads in it which model to train, "
         "and rank 0 alone would read weights); name --model and --image-size",
         options.weights);
  }
  const auto described = training::described_model(options.weights);
  if (!described) return;
  training::follow(options, *described);
  if (!leads || options.verbose == 0 || training::is_brief(options)) return;
  system::tell("--weights {}: training its model, {} at {} pixels", options.weights, options.model,
               *options.image_size);
}

/// What --weights names becomes a file.
training::NamedWeights choose_weights(Options& options, bool leads,
                                      const training::Services& services) {
  take_imagenet(options, leads, services);
  training::NamedWeights found = training::find_weights(options.weights);
  options.weights = found.file.string();
  if (leads) check_file(options.weights, services.read_keras);
  return found;
}

}  // namespace

void check_named_weights(Options options, const training::Services& services) {
  if (!options.weights.empty()) choose_weights(options, true, services);
}

void Command::choose_files(bool leads, const training::Services& services) {
  Options& options = this->options();
  if (options.weights.empty()) return;
  try {
    const training::NamedWeights found = choose_weights(options, leads, services);
    check_results_beside_weights(*this);
    if (leads && !found.chosen.empty() && options.verbose != 0) system::tell(found.chosen);
    take_run_of_weights(found.run);
  } catch (const Error&) {
    if (leads) throw;
  }
  if (!needs_weights() && !options.was_given("model")) take_model(options, leads);
}

std::unique_ptr<Command> make_group(CommandEntry entry) {
  return make_command<>({.help = std::move(entry), .run = [](auto&&...) -> ExitCode {
                           fail(ExitCode::internal, "a command without its topic was run");
                         }});
}

std::vector<std::unique_ptr<Command>> make_commands(const CommandLineChoices& choices) {
  std::vector<std::unique_ptr<Command>> commands;
  for (const MakeCommand& make : choices.commands) commands.push_back(make());
  return commands;
}

}  // namespace cputrain::cli
