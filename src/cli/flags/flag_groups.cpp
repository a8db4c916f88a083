#include "cli/flags/flag_groups.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "training/request/training_rows.h"

namespace cputrain::cli {

void add_row(Flags& f, training::TrainingFlags& c, std::string_view name, const std::string& help) {
  const training::FlagRow& row = training::training_row(name);
  f.row(row, c, help.empty() ? row.help : help);
}

void add_part(Flags& f, training::TrainingFlags& c, std::string_view part) {
  for (const training::FlagRow& row : training::training_rows()) {
    if (row.part == part) add_row(f, c, row.name);
  }
}

void add_network_flags(Flags& f, training::TrainingFlags& c) {
  f.group("Model");
  add_row(f, c, "model");
  add_row(f, c, "image-size");
  add_row(f, c, "classes");
}

void add_model_flags(Flags& f, training::TrainingFlags& c) {
  add_network_flags(f, c);
  add_row(f, c, "dropout");
}

void add_training_model_flags(Flags& f, training::TrainingFlags& c) {
  add_model_flags(f, c);
  f.default_is("classes", "those of the data");
  add_row(f, c, "normalize");
  add_row(f, c, "weights");
}

void add_weights_flag(Flags& f, training::TrainingFlags& c) {
  f.group("Model");
  add_row(f, c, "weights", "weights.safetensors of a training, or the folder of a run");
}

void check_partial(const training::TrainingFlags& flags) {
  if (!flags.partial || !flags.weights.empty()) return;
  fail(ExitCode::usage, "--partial needs --weights FILE, whose weights are taken where they fit");
}

void add_data_flags(Flags& f, training::TrainingFlags& c, bool resizes) {
  f.group("Data");
  for (const char* name : {"data", "validation-split", "limit-train", "limit-val", "balanced",
                           "allow-empty-classes", "expand"})
    add_row(f, c, name);
  if (resizes) {
    add_row(f, c, "resize");
    add_row(f, c, "fit");
  }
  add_row(f, c, "exif");
  add_row(f, c, "seed");
}

void add_learning_flags(Flags& f, training::TrainingFlags& c,
                        std::initializer_list<std::string_view> parts) {
  add_training_model_flags(f, c);
  add_part(f, c, "transfer");
  add_data_flags(f, c, true);
  f.group("Training");
  for (const std::string_view part : parts) add_part(f, c, part);
  add_part(f, c, "augment");
  f.group("Update rule");
  add_part(f, c, "rule");
  f.group("Learning rate");
  add_part(f, c, "rate");
}

void add_stall_flags(Flags& f, training::TrainingFlags& c) {
  f.group("Stalls");
  add_part(f, c, "stalls");
}

void add_precision_flag(Flags& f, training::TrainingFlags& c, const CommandLineChoices& choices,
                        std::string_view usual) {
  const std::string doubles = join(choices.backends_with(Precision::f64), " or ");
  add_row(f, c, "precision",
          fmt::format("{} double: {} backend only [{}]", training::training_row("precision").help,
                      doubles, usual));
}

void add_processor_flags(Flags& f, training::TrainingFlags& c, const CommandLineChoices& choices,
                         std::string_view usual_precision) {
  f.group("Machine");
  f.choice("backend", choices.known_backends(),
           "what computes; cuda is for GPUs [" + choices.backend_names().front() + "]",
           [&c, &choices](const std::string& name) {
             for (const training::BackendChoice& backend : choices.backends) {
               if (backend.name != name || backend.built) continue;
               fail(ExitCode::usage, backend.lack);
             }
             c.backend = name;
           });
  add_precision_flag(f, c, choices, usual_precision);
  add_row(f, c, "threads");
  add_row(f, c, "bind");
}

void add_backend_options(Flags& f, training::TrainingFlags& c, const CommandLineChoices& choices) {
  for (const training::BackendChoice& backend : choices.backends) {
    for (const auto& [word, help] : backend.options) {
      f.word(word, c.options[backend.name], help);
      f.for_developers(word);
    }
  }
}

void add_machine_flags(Flags& f, training::TrainingFlags& c, const CommandLineChoices& choices) {
  add_processor_flags(f, c, choices);
  add_row(f, c, "io-threads");
  add_backend_options(f, c, choices);
}

void add_inference_flags(Flags& f, training::TrainingFlags& c, const CommandLineChoices& choices) {
  f.group("Machine");
  add_row(f, c, "micro-batch", "images computed at once [chosen by threads, ranks and backend]");
  add_machine_flags(f, c, choices);
}

void add_json_flag(Flags& f, std::string& file) {
  f.group("Output");
  f.text("json", file, "FILE",
         "write the result as JSON (-: to standard output, and nothing else there)");
}

}  // namespace cputrain::cli
