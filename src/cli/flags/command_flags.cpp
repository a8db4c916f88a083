// Every flag of every command, with its limits and its line of help.

#include "cli/flags/command_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/flags/bench_flags.h"
#include "cli/flags/flag_groups.h"
#include "cli/flags/report_flags.h"
#include "cli/flags/simulate_flags.h"
#include "cli/flags/sweep_flags.h"
#include "core/error.h"
#include "core/text.h"
#include "data/augment.h"
#include "zoo/zoo.h"

namespace cputrain::cli {
namespace {

bool computes_gradients(const Config& c) {
  return c.command == "train" || c.command == "bench" || c.command == "sweep";
}

void add_expand_flag(Flags& f, Config& c) {
  f.choice("expand", c.expand,
           "samples made of each image: six flips and turns it; six-leaky does so before the "
           "split, so that turns of training images are in validation [none]");
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

/// "30:2,60:4": after 30 epochs twice the batch, after 60 four times.
std::vector<data::BatchGrowth> parse_growth(const std::string& text) {
  std::vector<data::BatchGrowth> growth;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    int epochs = 0, factor = 0, used = 0;
    const bool read = std::sscanf(part.c_str(), "%7d:%7d%n", &epochs, &factor, &used) == 2 &&
                      static_cast<std::size_t>(used) == part.size();
    const int least = growth.empty() ? 1 : growth.back().epochs + 1;
    if (!read || epochs < least || epochs > 1'000'000 || factor < 1 || factor > 65536) {
      fail(ExitCode::usage,
           "--batch-growth " + text +
               ": must be EPOCHS:FACTOR[,...], whole numbers from 1, epochs ascending: 30:2,60:4 "
               "has twice the batch after 30 epochs and four times after 60");
    }
    growth.push_back({epochs, factor});
    begin = end + 1;
  }
  return growth;
}

void add_micro_batch_flags(Flags& f, Config& c) {
  f.whole("micro-batch", c.micro_batch, 1, 65536,
          "images that a rank computes at once [chosen by threads, ranks and backend; with batch "
          "normalization the rank's whole share]");
  f.yes("sync-bn", c.sync_bn,
        "take the statistics of batch normalization from the images of all ranks");
}

void add_batch_flags(Flags& f, Config& c) {
  f.group("Training");
  f.whole("batch", c.batch, 1, 16'777'216, "images in a step, over all ranks [the model's]");
  f.alias("batch-size", "batch");
  f.whole("batch-per-rank", c.batch_per_rank, 1, 16'777'216,
          "images in a step of each rank, in place of --batch");
  f.exclusive("batch", "batch-per-rank");
  add_micro_batch_flags(f, c);
  f.whole("accumulate", c.accumulate, 1, 65536,
          "batches whose gradients are added up for one update [1]");
  f.choice(
      "sharding", c.sharding,
      "how ranks share the images: slices of each shuffled batch, every n-th image of the shuffled "
      "order, every n-th of the data's order, or the same images on all [slices]");
  f.yes_or_no("shuffle", c.shuffle,
              "take the images in a new order in each epoch [the model's: yes]");
  f.yes_or_no("drop-last", c.drop_last,
              "leave out images at the end of an epoch that do not fill a step [the model's: no]");
  if (c.command != "train") return;  // every step of a measurement is alike
  f.parsed("batch-growth", "EPOCHS:FACTOR,...",
           "multiply the batch by FACTOR after EPOCHS epochs, as 30:2,60:4 [never]",
           [&c](const std::string& text) { c.batch_growth = parse_growth(text); });
}

void add_rule_flags(Flags& f, Config& c) {
  f.group("Update rule");
  f.choice("optimizer", optim::rule_names(),
           "update rule, as in Keras; lars and lamb are for large batches [the model's]",
           [&c](const std::string& name) { c.optimizer = name; });
  f.real("momentum", c.momentum, 0, 0.9999, "momentum of sgd, rmsprop and lars [0; of lars 0.9]");
  f.yes("nesterov", c.nesterov, "look ahead along the momentum, in sgd");
  f.real("rho", c.rho, 0, 0.999999, "decay of the mean square in rmsprop [0.9]");
  f.yes("centered", c.centered, "subtract the squared mean gradient, in rmsprop");
  f.real("epsilon", c.epsilon, 0, 1e3,
         "small number in the denominator of rmsprop, adam and lamb [1e-7; of lamb 1e-6]");
  f.real("trust", c.trust, 1e-9, 1e3, "trust coefficient of a layer's rate in lars [0.001]");
  f.real("weight-decay", c.weight_decay, 0, 1e3,
         "take lr * X * weight off every kernel in each step; lars and lamb do it as in their "
         "papers [the model's: 0]");
  f.real("clip-value", c.clip_value, 1e-30, 1e30,
         "keep every element of the gradient between -X and X");
  f.real("clip-norm", c.clip_norm, 1e-30, 1e30,
         "keep the norm of the whole gradient at or below X");
  f.real("label-smoothing", c.label_smoothing, 0, 0.999,
         "mix X of all classes into the labels of training [0]");
}

void add_rate_flags(Flags& f, Config& c) {
  f.group("Learning rate");
  add_listed_flag(f, c,
                  {"lr", "X", "learning rate [the model's, or Keras' default for --optimizer]",
                   [](const std::string& text) {
                     return fmt::format("{}", parse_real("lr", text, 0, 1e6));
                   }});
  f.choice("lr-scale", c.lr_scale,
           "multiply the rate by n, by its root or by its power 2/3; n is batch / --base-batch or, "
           "without that flag, the number of ranks [none]");
  f.whole("base-batch", c.base_batch, 1, 16'777'216,
          "batch that --lr is meant for; --lr-scale then takes batch / N");
  f.real("warmup-epochs", c.warmup_epochs, 0, 1e6,
         "raise the rate over X epochs, from rate / n of --lr-scale as in Horovod, from 0 without "
         "it [0]");
  f.parsed("schedule", "FORM",
           "how the rate changes over the training: " + optim::schedule_forms() +
               " [the model's: constant]",
           [&c](const std::string& text) { c.schedule = optim::parse_schedule(text); });
  f.suggest("schedule", optim::schedule_words());
  f.yes("momentum-correction", c.momentum_correction,
        "scale the momentum for one step where the rate changes");
}

void add_training_flags(Flags& f, Config& c) {
  if (c.command == "sweep") {
    f.group("Training");
    add_micro_batch_flags(f, c);
  } else {
    add_batch_flags(f, c);
  }
  if (c.command == "train") {
    f.whole("epochs", c.epochs, 1, 1'000'000, "passes over the data [the model's]");
    f.whole("steps", c.steps, 1, 1'000'000'000'000,
            "end after N steps, even where --epochs says more or fewer");
    f.whole("settled-steps", c.settled_steps, 1, 1'000'000,
            "with --steps: go on until N whole steps were made without autotuning, at most ten "
            "times --steps");
    f.real("target-accuracy", c.target_accuracy, 0, 1,
           "end when the accuracy of validation reaches X; the summary says after which time");
  }
  add_augment_flag(f, c, "the model's");
  add_rule_flags(f, c);
  add_rate_flags(f, c);
}

void add_precision_flag(Flags& f, Config& c, const CommandLineChoices& choices,
                        std::string_view usual = word_of(Precision::f32)) {
  const std::vector<std::string> names = all_words<Precision>();
  add_listed_flag(
      f, c,
      {"precision", join(names, "|"),
       "number format of products. float: 32-bit floats, on GPUs TF32. exact: 32-bit floats on "
       "GPUs, too. bf16: 16-bit brain floats; on CPUs with AVX512-BF16 in convolutions where that "
       "is faster. double: " +
           fmt::format("{} backend only [{}]", join(choices.backends_with(Precision::f64), " or "),
                       usual),
       [names](const std::string& name) {
         Flags::check_choice("precision", name, names);
         return name;
       }});
  f.suggest("precision", names);
}

void add_bind_flag(Flags& f, Config& c) {
  f.yes_or_no("bind", c.bind,
              "bind the threads of each rank to its cores [where several ranks fill a machine]");
}

void add_input_flags(Flags& f, Config& c) {
  add_listed_flag(
      f, c,
      {"prefetch", "0|1",
       "micro-batches that are made ahead, by a thread beside the steps; 0: each is made when a "
       "step asks for it, which shows what its images cost [1]",
       [](const std::string& text) {
         return std::to_string(parse_whole("prefetch", text, 0, 1));
       }});
  f.choice("data-on-device", c.data_on_device,
           "keep all training images on each GPU: auto where they fit into half of what is free "
           "beside the program and --augment only moves pixels (flip, vflip, six, crop) [auto]");
}

void add_machine_flags(Flags& f, Config& c, const CommandLineChoices& choices) {
  if (c.command == "sweep") {  // whose grid has the rest of them
    f.group("Machine");
    add_precision_flag(f, c, choices);
    add_bind_flag(f, c);
  } else {
    add_processor_flags(f, c, choices);
  }
  f.whole("io-threads", c.io_threads, 1, 4096,
          "threads for images [as --threads to decode them, 1 in 8 of these to change them during "
          "steps]");
  add_backend_options(f, c, choices);
  if (computes_gradients(c)) {
    add_input_flags(f, c);
    add_exchange_flags(f, c);
  }
}

void add_synth_flags(Flags& f, Config& c) {
  f.group("Data");
  f.whole("images", c.images, 2, 1'000'000, "number of images, half of each class [200]");
  f.whole("image-size", c.image_size, 1, 16384, "width and height of the images [64]");
  f.choice("format", {"jpeg", "png", "bmp"}, "format of the files [jpeg]",
           [&c](const std::string& name) { c.format = name; });
  f.whole("seed", c.seed, 0, 9'000'000'000'000'000'000, "number that decides the images [0]");
}

}  // namespace

void add_model_flags(Flags& f, Config& c) {
  f.group("Model");
  std::vector<std::string> names;
  for (const auto& entry : zoo::model_zoo()) names.push_back(entry.name);
  f.text("model", c.model, "NAME",
         "network: " + join(names, ", ") + ", or a model file (.json) [dogcat]");
  f.suggest("model", names);
  f.whole("image-size", c.image_size, 1, 16384,
          "width and height to which images are resized [the model's]");
  const bool data = computes_gradients(c);
  f.whole(
      "classes", c.classes, 2, 65536,
      std::string("outputs of the last layer ") + (data ? "[those of the data]" : "[the model's]"));
  if (c.command == "export") return;
  f.real("dropout", c.dropout, 0, 0.999, "rate of every dropout layer [the model's]");
}

void add_resize_flag(Flags& f, Config& c) {
  f.choice("resize", c.resize,
           "how images are resized: bilinear as in TensorFlow, nearest as in Keras' older loaders "
           "[bilinear]");
}

void add_exif_flag(Flags& f, Config& c) {
  const bool of_weights = c.command == "eval" || c.command == "predict";
  f.choice("exif", c.exif,
           std::string("turn photographs by their EXIF orientation, as viewers do, or read them as "
                       "they are stored ") +
               (of_weights ? "[as training did]" : "[apply]"));
}

void add_weights_flags(Flags& f, Config& c) {
  f.group("Model");
  const bool trains = computes_gradients(c);
  f.text("weights", c.weights, "FILE|RUN",
         trains ? "weights of the same model to start from, a file or the folder of a run [initial "
                  "ones, by seed]"
                : "weights.safetensors of a training, or the folder of a run");
  if (c.command != "train") return;
  f.yes("partial", c.partial,
        "take those arrays of --weights that fit by name and shape, for a new last layer");
  f.list("freeze", c.freeze, "LAYER,...",
         "layers that keep their weights, by name or by prefix (conv2d*)");
}

void add_data_flags(Flags& f, Config& c) {
  f.group("Data");
  f.text("data", c.data, "DATA",
         "a folder of class folders or of cat.N.jpg files, a list file, cifar10:DIR, cifar100:DIR, "
         "idx:DIR, inat:DIR, coco:TRAIN.json[,VAL.json], FILE.ctpack, or synthetic[:N] " +
             std::string(c.command == "eval" ? "[that of the run which wrote the weights]"
                                             : "[synthetic]"));
  f.real("validation-split", c.validation_split, 0, 0.99,
         std::string("part kept for validation where the data has none of its own") +
             (c.command == "eval" ? "; 0: look at all [its test part, else what training kept or "
                                    "its own validation part, else all]"
                                  : " [0.1]"));
  f.whole("limit-train", c.limit_train, 1, 1'000'000'000, "use at most N training images");
  f.whole("limit-val", c.limit_val, 0, 1'000'000'000,
          c.command == "eval"   ? "look at most at N images"
          : c.command == "data" ? "use at most N validation images"
                                : "use at most N validation images; 0: no evaluation");
  f.yes("balanced", c.balanced,
        "take as many of each class within these limits [the classes' proportions]");
  f.yes("allow-empty-classes", c.allow_empty_classes,
        "keep a class of which no image can be read; its output learns nothing [an error]");
  add_expand_flag(f, c);
  if (computes_gradients(c) || c.topic == "pack") add_resize_flag(f, c);
  add_exif_flag(f, c);
  f.whole("seed", c.seed, 0, 9'000'000'000'000'000'000,
          c.command == "eval" ? "number that decides the validation part [that of training]"
          : c.command == "data"
              ? "number that decides which images are kept for validation [0]"
              : "number that decides order, split, initial weights, dropout and augmentation [0]");
}

void add_augment_flag(Flags& f, Config& c, const std::string& standard) {
  f.parsed("augment", "LIST",
           "random changes of training images, none or some of " + data::augment_forms() +
               ", such as flip,shear:0.2 [" + standard + "]",
           [&c](const std::string& text) { c.augment = data::parse_augment(text); });
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
  f.whole("threads", c.threads, 1, 4096, "threads of each rank [the cores that it was given]");
  add_bind_flag(f, c);
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
    f.whole("image-size", c.image_size, 1, 16384,
            "width and height to which images are resized [256]");
  }
  if (trains) add_training_flags(f, c);
  if (command == "train") add_safety_flags(f, c);
  if (trains || reads_weights) add_stall_flags(f, c);
  if (reads_weights) {
    f.group("Machine");
    f.whole("micro-batch", c.micro_batch, 1, 65536,
            "images computed at once [chosen by threads, ranks and backend]");
  }
  add_machine_flags(f, c, choices);
  add_output_flags(f, c);
}

}  // namespace cputrain::cli
