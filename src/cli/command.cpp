#include "cli/command.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "cli/flags/foreign_words.h"
#include "core/error.h"
#include "core/text.h"
#include "system/print.h"
#include "training/weights/named_weights.h"
#include "weights/safetensors.h"
#include "weights/weight_file.h"
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

class GroupCommand final : public CommandWith<> {
 public:
  explicit GroupCommand(CommandEntry entry) : CommandWith({}), entry_(std::move(entry)) {}
  CommandEntry help() const override { return entry_; }
  void add_flags(Flags&, const CommandLineChoices&) override {}
  ExitCode run(const training::Services&) override {
    fail(ExitCode::internal, "a command without its topic was run");
  }

 private:
  CommandEntry entry_;
};

}  // namespace

void Command::choose_files(bool leads, const training::Services& services) {
  Options& options = this->options();
  if (options.weights.empty()) return;
  try {
    answer_imagenet(options);
    const training::NamedWeights found = training::find_weights(options.weights);
    options.weights = found.file.string();
    if (leads) check_weights(options.weights, services.read_keras);
    check_results_beside(*this);
    if (leads && !found.chosen.empty() && options.verbose != 0) system::tell(found.chosen);
    take_run_of_weights(found.run);
  } catch (const Error&) {
    if (leads) throw;
  }
  if (!needs_weights() && !options.was_given("model")) take_model(options, leads);
}

std::unique_ptr<Command> make_group(CommandEntry entry) {
  return std::make_unique<GroupCommand>(std::move(entry));
}

std::vector<std::unique_ptr<Command>> make_commands(const CommandLineChoices& choices) {
  std::vector<std::unique_ptr<Command>> commands;
  for (const MakeCommand& make : choices.commands) commands.push_back(make());
  return commands;
}

}  // namespace cputrain::cli
