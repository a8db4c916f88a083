// Which flags every command has. Those of trainings are in job/spec/training_rows.h.

#include "cli/flags/command_flags.h"

#include <fmt/format.h>

#include "cli/flags/bench_flags.h"
#include "cli/flags/flag_groups.h"
#include "cli/flags/report_flags.h"
#include "cli/flags/simulate_flags.h"
#include "cli/flags/sweep_flags.h"
#include "core/error.h"
#include "core/text.h"
#include "job/spec/training_rows.h"

namespace cputrain::cli {
namespace {

bool computes_gradients(const Config& c) {
  return c.command == "train" || c.command == "bench" || c.command == "sweep";
}

void add_export_flags(Flags& f, Config& c) {
  f.group("Output");
  f.text("onnx", c.onnx, "FILE", "write network and weights as ONNX (opset 13)");
  f.text("safetensors", c.safetensors, "FILE", "write the weights as safetensors");
  f.choice("export-layout", {"keras", "torch"},
           "names and layout of --safetensors: those of Keras or of a PyTorch state_dict [keras]",
           [&c](const std::string& name) { c.export_layout = name; });
  f.text("model-file", c.model_file, "FILE",
         "write the model of --weights or --model as JSON, to be changed and used as --model FILE");
}

void add_batch_flags(Flags& f, Config& c) {
  f.group("Training");
  if (c.command != "sweep") add_part(f, c, "batch");  // whose grid has them
  add_part(f, c, "micro-batch");
  if (c.command != "sweep") add_part(f, c, "shares");
}

void add_rule_flags(Flags& f, Config& c) {
  f.group("Update rule");
  add_part(f, c, "rule");
}

void add_rate_flags(Flags& f, Config& c) {
  f.group("Learning rate");
  add_part(f, c, "rate");
}

void add_training_flags(Flags& f, Config& c) {
  add_batch_flags(f, c);
  if (c.command == "train") add_part(f, c, "length");
  add_part(f, c, "augment");
  add_rule_flags(f, c);
  add_rate_flags(f, c);
}

void add_precision_flag(Flags& f, Config& c, const CommandLineChoices& choices,
                        std::string_view usual = word_of(Precision::f32)) {
  const std::string doubles = join(choices.backends_with(Precision::f64), " or ");
  add_row(f, c, "precision",
          fmt::format("{} double: {} backend only [{}]", job::training_row("precision").help,
                      doubles, usual));
}

void add_machine_flags(Flags& f, Config& c, const CommandLineChoices& choices) {
  if (c.command == "sweep") {  // whose grid has the rest of them
    f.group("Machine");
    add_precision_flag(f, c, choices);
    add_row(f, c, "bind");
  } else {
    add_processor_flags(f, c, choices);
  }
  add_row(f, c, "io-threads");
  add_backend_options(f, c, choices);
  if (computes_gradients(c)) {
    add_part(f, c, "input");
    add_exchange_flags(f, c);
  }
}

void add_synth_flags(Flags& f, Config& c) {
  f.group("Data");
  f.whole("images", c.images, 2, 1'000'000, "number of images, half of each class [200]");
  add_row(f, c, "image-size", "width and height of the images [64]");
  f.choice("format", {"jpeg", "png", "bmp"}, "format of the files [jpeg]",
           [&c](const std::string& name) { c.format = name; });
  add_row(f, c, "seed", "number that decides the images [0]");
}

}  // namespace

void add_model_flags(Flags& f, Config& c) {
  f.group("Model");
  add_row(f, c, "model");
  add_row(f, c, "image-size");
  add_row(f, c, "classes",
          computes_gradients(c) ? "outputs of the last layer [those of the data]" : "");
  if (c.command != "export") add_row(f, c, "dropout");
}

void add_exif_flag(Flags& f, Config& c) {
  std::string help = job::training_row("exif").help;
  if (c.command == "eval" || c.command == "predict") {
    help.replace(help.rfind('['), std::string::npos, "[as training did]");
  }
  add_row(f, c, "exif", help);
}

void add_weights_flags(Flags& f, Config& c) {
  f.group("Model");
  add_row(f, c, "weights",
          computes_gradients(c) ? "" : "weights.safetensors of a training, or the folder of a run");
  if (c.command == "train") add_part(f, c, "transfer");
}

void add_data_flags(Flags& f, Config& c) {
  f.group("Data");
  const bool evaluates = c.command == "eval", looks = c.command == "data";
  std::string data = job::training_row("data").help;
  if (evaluates) {
    data.replace(data.rfind('['), std::string::npos, "[that of the run which wrote the weights]");
  }
  add_row(f, c, "data", data);
  add_row(f, c, "validation-split",
          evaluates ? "part kept for validation where the data has none of its own; 0: look at all "
                      "[its test part, else what training kept or its own validation part, else "
                      "all]"
                    : "");
  add_row(f, c, "limit-train");
  add_row(f, c, "limit-val",
          evaluates ? "look at most at N images"
          : looks   ? "use at most N validation images"
                    : "");
  add_row(f, c, "balanced");
  add_row(f, c, "allow-empty-classes");
  add_row(f, c, "expand");
  if (computes_gradients(c) || c.topic == "pack") add_row(f, c, "resize");
  add_exif_flag(f, c);
  add_row(f, c, "seed",
          evaluates ? "number that decides the validation part [that of training]"
          : looks   ? "number that decides which images are kept for validation [0]"
                    : "");
}

void add_exchange_flags(Flags& f, Config& c) { add_part(f, c, "exchange"); }

void add_stall_flags(Flags& f, Config& c) {
  f.group("Stalls");
  add_part(f, c, "stalls");
}

void add_safety_flags(Flags& f, Config& c) {
  f.group("Checkpoints");
  add_part(f, c, "checkpoints");
}

void add_processor_flags(Flags& f, Config& c, const CommandLineChoices& choices,
                         std::string_view usual_precision) {
  f.group("Machine");
  f.choice("backend", choices.known_backends(),
           "what computes; cuda is for GPUs [" + choices.backend_names().front() + "]",
           [&c, &choices](const std::string& name) {
             for (const job::BackendChoice& backend : choices.backends) {
               if (backend.name != name || backend.built) continue;
               fail(ExitCode::usage, backend.lack);
             }
             c.backend = name;
           });
  add_precision_flag(f, c, choices, usual_precision);
  add_row(f, c, "threads");
  add_row(f, c, "bind");
}

void add_backend_options(Flags& f, Config& c, const CommandLineChoices& choices) {
  for (const job::BackendChoice& backend : choices.backends) {
    for (const auto& [word, help] : backend.options) f.word(word, c.options[backend.name], help);
  }
}

void add_command_flags(Flags& f, Config& c, const CommandLineChoices& choices) {
  const std::string& command = c.command;
  if (command == "data" && c.topic == "synth") return add_synth_flags(f, c);
  if (command == "report") return add_report_flags(f, c);
  if (command == "selftest") return add_selftest_flags(f, c, choices);
  if (command == "simulate") return add_simulate_flags(f, c);
  if (c.topic == "allreduce") return add_allreduce_flags(f, c, choices);
  if (c.topic == "kernels") return add_kernel_bench_flags(f, c, choices);
  if (c.topic == "input") return add_input_bench_flags(f, c, choices);
  if (command == "sweep") add_grid_flags(f, c, choices);
  const bool trains = computes_gradients(c);
  const bool reads_weights = command == "eval" || command == "predict";
  const bool exports = command == "export";
  if (trains || exports || command == "info") add_model_flags(f, c);
  if (trains || reads_weights || exports) add_weights_flags(f, c);
  if (exports) return add_export_flags(f, c);
  if (command == "predict") {
    f.group("Data");
    add_exif_flag(f, c);
  } else if (command != "info") {
    add_data_flags(f, c);
  }
  if (command == "data" && c.topic == "pack") {
    add_row(f, c, "image-size", "width and height to which images are resized [256]");
  }
  if (trains) add_training_flags(f, c);
  if (command == "train") add_safety_flags(f, c);
  if (trains || reads_weights) add_stall_flags(f, c);
  if (reads_weights) {
    f.group("Machine");
    add_row(f, c, "micro-batch", "images computed at once [chosen by threads, ranks and backend]");
  }
  add_machine_flags(f, c, choices);
  add_output_flags(f, c);
}

}  // namespace cputrain::cli
