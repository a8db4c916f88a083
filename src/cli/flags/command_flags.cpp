// Flags of trainings, which other commands have, too: limits and lines of help.

#include "cli/flags/flag_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/flags/sweep_flags.h"
#include "core/error.h"
#include "core/text.h"
#include "data/augment.h"
#include "zoo/zoo.h"

namespace cputrain::cli {
namespace {

void add_expand_flag(Flags& f, job::TrainingFlags& c) {
  f.choice("expand", {"none", "six", "six-leaky"},
           "samples made of each image: six flips and turns it; six-leaky does so before the "
           "split, so that turns of training images are in validation [none]",
           [&c](const std::string& name) {
             c.expand = data::expand_of(name).value_or(data::Expand::none);
           });
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

}  // namespace

void add_micro_batch_flags(Flags& f, job::TrainingFlags& c) {
  f.whole("micro-batch", c.micro_batch, 1, 65536,
          "images that a rank computes at once [chosen by threads, ranks and backend; with batch "
          "normalization the rank's whole share]");
  f.yes("sync-bn", c.sync_bn,
        "take the statistics of batch normalization from the images of all ranks");
}

void add_batch_flags(Flags& f, job::TrainingFlags& c) {
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
      "sharding", {"slices", "strided", "shard-then-batch", "generator"},
      "how ranks share the images: slices of each shuffled batch, every n-th image of the shuffled "
      "order, every n-th of the data's order, or the same images on all [slices]",
      [&c](const std::string& name) {
        c.sharding = name == "strided"            ? data::Sharding::strided
                     : name == "shard-then-batch" ? data::Sharding::shard_then_batch
                     : name == "generator"        ? data::Sharding::generator
                                                  : data::Sharding::slices;
      });
  f.yes_or_no("shuffle", c.shuffle,
              "take the images in a new order in each epoch [the model's: yes]");
  f.yes_or_no("drop-last", c.drop_last,
              "leave out images at the end of an epoch that do not fill a step [the model's: no]");
}

void add_growth_flag(Flags& f, job::TrainingFlags& c) {
  f.parsed("batch-growth", "EPOCHS:FACTOR,...",
           "multiply the batch by FACTOR after EPOCHS epochs, as 30:2,60:4 [never]",
           [&c](const std::string& text) { c.batch_growth = parse_growth(text); });
}

void add_rule_flags(Flags& f, job::TrainingFlags& c) {
  f.group("Update rule");
  f.choice("optimizer", {"sgd", "rmsprop", "adam", "lars", "lamb"},
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

void add_rate_flags(Flags& f, job::TrainingFlags& c) {
  f.group("Learning rate");
  add_listed_flag(f, c,
                  {"lr", "X", "learning rate [the model's, or Keras' default for --optimizer]",
                   [](const std::string& text) {
                     return fmt::format("{}", Flags::parse_real("lr", text, 0, 1e6));
                   }});
  f.choice("lr-scale", {"none", "linear", "sqrt", "pow23"},
           "multiply the rate by n, by its root or by its power 2/3; n is batch / --base-batch or, "
           "without that flag, the number of ranks [none]",
           [&c](const std::string& name) {
             c.lr_scale = name == "linear"  ? optim::RateScale::linear
                          : name == "sqrt"  ? optim::RateScale::sqrt
                          : name == "pow23" ? optim::RateScale::pow23
                                            : optim::RateScale::none;
           });
  f.whole("base-batch", c.base_batch, 1, 16'777'216,
          "batch that --lr is meant for; --lr-scale then takes batch / N");
  f.real("warmup-epochs", c.warmup_epochs, 0, 1e6,
         "raise the rate over X epochs, from rate / n of --lr-scale as in Horovod, from 0 without "
         "it [0]");
  f.parsed("schedule", "FORM",
           "how the rate changes over the training: " + std::string(optim::kScheduleForms) +
               " [the model's: constant]",
           [&c](const std::string& text) { c.schedule = optim::parse_schedule(text); });
  f.suggest("schedule", {"constant", "step:", "piecewise:", "cosine", "poly", "plateau", "decay:"});
  f.yes("momentum-correction", c.momentum_correction,
        "scale the momentum for one step where the rate changes");
}

void add_precision_flag(Flags& f, job::TrainingFlags& c, const CommandLineChoices& choices,
                        std::string_view usual) {
  const std::vector<std::string> names = precision_words();
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

void add_bind_flag(Flags& f, job::TrainingFlags& c) {
  f.yes_or_no("bind", c.bind,
              "bind the threads of each rank to its cores [where several ranks fill a machine]");
}

void add_input_flags(Flags& f, job::TrainingFlags& c) {
  add_listed_flag(
      f, c,
      {"prefetch", "0|1",
       "micro-batches that are made ahead, by a thread beside the steps; 0: each is made when a "
       "step asks for it, which shows what its images cost [1]",
       [](const std::string& text) {
         return std::to_string(Flags::parse_whole("prefetch", text, 0, 1));
       }});
  f.choice("data-on-device", {"auto", "on", "off"},
           "keep all training images on each GPU: auto where they fit into half of what is free "
           "beside the program and --augment only moves pixels (flip, vflip, six, crop) [auto]",
           [&c](const std::string& name) { c.data_on_device = job::parse_data_on_device(name); });
}

void add_io_threads_flag(Flags& f, job::TrainingFlags& c) {
  f.whole("io-threads", c.io_threads, 1, 4096,
          "threads for images [as --threads to decode them, 1 in 8 of these to change them during "
          "steps]");
}

void add_network_flags(Flags& f, job::TrainingFlags& c) {
  f.group("Model");
  std::vector<std::string> names;
  for (const auto& entry : zoo::model_zoo()) names.push_back(entry.name);
  f.text("model", c.model, "NAME",
         "network: " + join(names, ", ") + ", or a model file (.json) [dogcat]");
  f.suggest("model", names);
  f.whole("image-size", c.image_size, 1, 16384,
          "width and height to which images are resized [the model's]");
  f.whole("classes", c.classes, 2, 65536, "outputs of the last layer [the model's]");
}

void add_model_flags(Flags& f, job::TrainingFlags& c) {
  add_network_flags(f, c);
  f.real("dropout", c.dropout, 0, 0.999, "rate of every dropout layer [the model's]");
}

void add_resize_flag(Flags& f, job::TrainingFlags& c) {
  f.choice("resize", {"bilinear", "nearest"},
           "how images are resized: bilinear as in TensorFlow, nearest as in Keras' older loaders "
           "[bilinear]",
           [&c](const std::string& name) { c.resize = data::resize_of(name); });
}

void add_exif_flag(Flags& f, job::TrainingFlags& c) {
  f.choice("exif", {"apply", "ignore"},
           "turn photographs by their EXIF orientation, as viewers do, or read them as they are "
           "stored [apply]",
           [&c](const std::string& name) { c.exif = data::exif_of(name); });
}

void add_weights_flag(Flags& f, job::TrainingFlags& c) {
  f.group("Model");
  f.text("weights", c.weights, "FILE|RUN",
         "weights.safetensors of a training, or the folder of a run");
}

void add_training_model_flags(Flags& f, job::TrainingFlags& c) {
  add_model_flags(f, c);
  f.default_is("classes", "those of the data");
  add_weights_flag(f, c);
  f.reword("weights",
           "weights of the same model to start from, a file or the folder of a run [initial ones, "
           "by seed]");
}

void add_data_flags(Flags& f, job::TrainingFlags& c, bool resizes) {
  f.group("Data");
  f.text("data", c.data, "DATA",
         "a folder of class folders or of cat.N.jpg files, a list file, cifar10:DIR, cifar100:DIR, "
         "idx:DIR, inat:DIR, coco:TRAIN.json[,VAL.json], FILE.ctpack, or synthetic[:N] "
         "[synthetic]");
  f.real("validation-split", c.validation_split, 0, 0.99,
         "part kept for validation where the data has none of its own [0.1]");
  f.whole("limit-train", c.limit_train, 1, 1'000'000'000, "use at most N training images");
  f.whole("limit-val", c.limit_val, 0, 1'000'000'000,
          "use at most N validation images; 0: no evaluation");
  f.yes("balanced", c.balanced,
        "take as many of each class within these limits [the classes' proportions]");
  f.yes("allow-empty-classes", c.allow_empty_classes,
        "keep a class of which no image can be read; its output learns nothing [an error]");
  add_expand_flag(f, c);
  if (resizes) add_resize_flag(f, c);
  add_exif_flag(f, c);
  add_seed_flag(f, c,
                "number that decides order, split, initial weights, dropout and augmentation [0]");
}

void add_seed_flag(Flags& f, job::TrainingFlags& c, const std::string& help) {
  f.whole("seed", c.seed, 0, 9'000'000'000'000'000'000, help);
}

void add_augment_flag(Flags& f, job::TrainingFlags& c, const std::string& standard) {
  f.parsed("augment", "LIST",
           "random changes of training images, none or some of " + data::augment_forms() +
               ", such as flip,shear:0.2 [" + standard + "]",
           [&c](const std::string& text) { c.augment = data::parse_augment(text); });
}

void add_processor_flags(Flags& f, job::TrainingFlags& c, const CommandLineChoices& choices,
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

void add_backend_options(Flags& f, job::TrainingFlags& c, const CommandLineChoices& choices) {
  for (const job::BackendChoice& backend : choices.backends) {
    for (const auto& [word, help] : backend.options) f.word(word, c.options[backend.name], help);
  }
}

void add_inference_flags(Flags& f, job::TrainingFlags& c, const CommandLineChoices& choices) {
  f.group("Machine");
  f.whole("micro-batch", c.micro_batch, 1, 65536,
          "images computed at once [chosen by threads, ranks and backend]");
  add_processor_flags(f, c, choices);
  add_io_threads_flag(f, c);
  add_backend_options(f, c, choices);
}

void add_json_flag(Flags& f, std::string& file) {
  f.group("Output");
  f.text("json", file, "FILE",
         "write the result as JSON (-: to standard output, and nothing else there)");
}

}  // namespace cputrain::cli
