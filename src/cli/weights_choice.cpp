#include "cli/weights_choice.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/flags/foreign_words.h"
#include "core/error.h"
#include "core/text.h"
#include "system/print.h"
#include "training/request/followed_weights.h"
#include "training/run/run_weights.h"
#include "weights/safetensors.h"
#include "weights/weight_file.h"
#include "zoo/published.h"
#include "zoo/zoo.h"

namespace cputrain::cli {
namespace {

/// Before anything long begins, and in a dry run, too.
void check_weights(const std::string& file, const weights::ReadKeras& read_keras) {
  if (!training::weights_are_there(file)) {
    fail(ExitCode::data, fmt::format("--weights {}: there is no such file or folder (nothing can "
                                     "be loaded); name a weights.safetensors, or the folder of a "
                                     "run{}",
                                     file, hint_for_weights(file)));
  }
  switch (weights::weight_format(file)) {
    case weights::WeightFormat::pickle:
      weights::refuse_pickle(file);
    case weights::WeightFormat::hdf5:
    case weights::WeightFormat::keras:
      read_keras(file);
      break;
    case weights::WeightFormat::safetensors: {
      const weights::safetensors::File opened(file);
    }
  }
}

/// A word that other programs know; here it says where to get the file.
void answer_imagenet(const Options& options) {
  std::error_code none;
  if (options.weights != "imagenet" || std::filesystem::exists(options.weights, none)) return;
  const std::string model = zoo::find_model(options.model)->name;
  const std::string published = zoo::published_text(model);
  fail(ExitCode::data,
       fmt::format("--weights imagenet: cputrain comes with no weights and fetches none; {}",
                   published.empty()
                       ? fmt::format("of {} we know no published ones that fit; choose a --model "
                                     "that has some, such as resnet18 or efficientnet-lite0",
                                     printable(model))
                       : fmt::format("weights of {} that learnt ImageNet are those of{}", model,
                                     published)));
}

/// What writes a result replaces the file that is there.
void check_results_beside(Command& command) {
  const std::string& weights = command.options().weights;
  for (const auto& [flag, file] : command.results()) {
    std::error_code none;  // no such file: none is lost
    if (file.empty() || !std::filesystem::equivalent(file, weights, none)) continue;
    fail(ExitCode::usage,
         fmt::format("{} {}: this file holds the weights (the result would replace "
                     "them); name another file",
                     flag, file));
  }
}

/// Each rank reads it, since a training is chosen before ranks meet.
void take_model(Options& options, bool leads) {
  if (!leads && !training::weights_are_there(options.weights)) {
    fail(
        ExitCode::data,
        fmt::format("--weights {}: no such file (without --model each rank reads in it which model "
                    "to train, and rank 0 alone would read weights); name --model and --image-size",
                    options.weights));
  }
  const auto described = training::described_model(options.weights);
  if (!described) return;
  training::follow(options, *described);
  if (!leads || options.verbose == 0) return;
  system::tell(fmt::format("--weights {}: training its model, {} at {} pixels", options.weights,
                           options.model, *options.image_size));
}

}  // namespace

void choose_weights(Command& command, bool leads, const weights::ReadKeras& read_keras,
                    const std::function<void(const std::filesystem::path& run)>& take_run) {
  Options& options = command.options();
  if (options.weights.empty()) return;
  try {
    answer_imagenet(options);
    const training::NamedWeights found = training::find_weights(options.weights);
    options.weights = found.file.string();
    if (leads) check_weights(options.weights, read_keras);
    check_results_beside(command);
    if (leads && !found.chosen.empty() && options.verbose != 0) system::tell(found.chosen);
    if (take_run) take_run(found.run);
  } catch (const Error&) {
    if (leads) throw;
  }
  if (!command.needs_weights() && !options.was_given("model")) take_model(options, leads);
}

}  // namespace cputrain::cli
