#include "training/request/training_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/dataset.h"
#include "model/normalization.h"
#include "system/files.h"
#include "zoo/zoo.h"

namespace cputrain::training {
namespace {

using Flags = TrainingFlags;
using Json = nlohmann::ordered_json;

constexpr bool kIdentity = true;
constexpr std::int64_t kMostBatch = 16'777'216;

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : zoo::model_zoo()) names.push_back(entry.name);
  return names;
}

/// "30:2,60:4": after 30 epochs twice the batch, after 60 four times. Error(usage), as of all that
/// read a flag here.
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

std::string growth_text(const std::vector<data::BatchGrowth>& growth) {
  std::vector<std::string> parts;
  for (const data::BatchGrowth& g : growth)
    parts.push_back(fmt::format("{}:{}", g.epochs, g.factor));
  return fmt::format("{}", fmt::join(parts, ","));
}

/// Patterns of layers, with commas between them; "none" stands alone.
std::vector<std::string> parse_freeze(const std::string& text) {
  std::vector<std::string> words = parse_words("freeze", text);
  if (words.size() == 1 || std::ranges::find(words, "none") == words.end()) return words;
  fail(ExitCode::usage,
       "--freeze {}: none stands alone (beside it, other words would freeze layers); leave out "
       "none, or the others",
       text);
}

void add_model(FlagRows& r) {
  r.part("model");
  r.text("model", &Flags::model, "NAME",
         "network: " + join(model_names(), ", ") + ", or a model file (.json) [dogcat]")
      .suggests(model_names())
      .recorded([](const TrainingSpec& s) { return s.model->spec(); });
  r.whole("image-size", &Flags::image_size, 1, 16384,
          "width and height to which images are resized [the model's]")
      .identity()
      .recorded([](const TrainingSpec& s) { return s.image.height; });
  r.whole("classes", &Flags::classes, 2, 65536, "outputs of the last layer [the model's]");
  r.real("dropout", &Flags::dropout, 0, 0.999, "rate of every dropout layer [the model's]")
      .identity();
  r.parsed("normalize", &Flags::normalize, "FORM",
           "how pixels become numbers: " + join(model::normalization_words(), ", ") +
               ", or MEAN/DEVIATION of pixels from 0 to 1, as "
               "0.485,0.456,0.406/0.229,0.224,0.225 [the model's]",
           model::parse_normalization)
      .identity()
      .recorded([](const TrainingSpec& s) {  // others have no text that gives the same bits
        const auto& asked = s.flags.normalize;
        const std::string word = asked ? model::normalization_word(*asked) : "";
        return word.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(word);
      })
      .suggests(model::normalization_words());
  r.part("weights");
  r.text("weights", &Flags::weights, "FILE|RUN",
         "weights to start from, of the same model: imagenet (those of `cputrain weights fetch`), "
         "safetensors, PyTorch's .pth, Keras' .h5 and .keras, or the folder of a run; a built-in "
         "model then has a recipe of fine-tuning [initial ones, by seed]");
  r.part("transfer", kIdentity);
  r.yes("partial", &Flags::partial,
        "take those arrays of --weights that fit by name and shape, for a new last layer")
      .identity(false);  // that of `weights` names it
  r.parsed("freeze", &Flags::freeze, "LAYER,...",
           "layers that keep their weights: all-but-head (all but the last), until=LAYER, names "
           "with * for any text (conv2d*), or none [none]",
           parse_freeze)
      .suggests({"all-but-head", "until=", "none"});
  r.real("backbone-lr", &Flags::backbone_lr, 1e-12, 1e6,
         "learning rate of all layers but the last, which --schedule and --lr-scale change as that "
         "of the last [--lr]");
}

void add_data(FlagRows& r) {
  r.part("data", kIdentity);
  r.text(
       "data", &Flags::data, "DATA",
       "a folder of class folders or of cat.N.jpg files, a .zip or .tar of one, a list file, or a "
       "packed FILE.ctpack; also cifar10:DIR, cifar100:DIR, idx:DIR, inat:DIR, "
       "coco:TRAIN.json[,VAL.json], and synthetic[:N] [synthetic]")
      .identity(false)  // its images are
      .recorded([](const TrainingSpec& s) { return s.flags.data_or_synthetic(); });
  r.real("validation-split", &Flags::validation_split, 0, 0.99,
         "part kept for validation where the data has none of its own [0.1]")
      .recorded([](const TrainingSpec& s) { return s.flags.validation_share(); });
  r.whole("limit-train", &Flags::limit_train, 1, 1'000'000'000, "use at most N training images");
  r.whole("limit-val", &Flags::limit_val, 0, 1'000'000'000,
          "use at most N validation images; 0: no evaluation");
  r.yes("balanced", &Flags::balanced,
        "take as many of each class within these limits [the classes' proportions]");
  r.yes("allow-empty-classes", &Flags::allow_empty_classes,
        "keep a class of which no image can be read; its output learns nothing [an error]")
      .identity(false);
  r.choice("expand", &Flags::expand,
           "samples made of each image: six flips and turns it; six-leaky does so before the "
           "split, so that turns of training images are in validation [none]");
  r.choice("resize", &Flags::resize,
           "how images are resized: area, bilinear and bicubic smooth them first, as Pillow and "
           "torchvision do (antialias); nearest as in Keras' older loaders; bilinear-plain as in "
           "TensorFlow [the model's: bilinear]")
      .recorded([](const TrainingSpec& s) { return word_of(s.resize.way); });
  r.parsed("fit", &Flags::fit, "stretch|crop[:PART]|pad",
           "how sides that differ become a square: each by itself, the centre cut out, or black "
           "bars; crop:0.875 shows the central 224 of 256 [the model's: stretch]",
           data::parse_fit)
      .suggests(all_words<data::Fitting>())
      .recorded([](const TrainingSpec& s) { return to_text(s.resize.fit); });
  r.choice("exif", &Flags::exif,
           "turn photographs by their EXIF orientation, as viewers do, or read them as they are "
           "stored [apply]")
      .recorded([](const TrainingSpec& s) { return word_of(s.flags.exif_choice()); });
  r.whole("seed", &Flags::seed, 0, 9'000'000'000'000'000'000,
          "number that decides order, split, initial weights, dropout and augmentation [0]")
      .recorded([](const TrainingSpec& s) { return s.seed; });
}

void add_batches(FlagRows& r) {
  r.part("batch", kIdentity);
  r.whole("batch", &Flags::batch, 1, kMostBatch, "images in a step, over all ranks [the model's]")
      .also("batch-size")
      .excludes("batch-per-rank")
      .recorded([](const TrainingSpec& s) { return s.batch; });
  r.whole("batch-per-rank", &Flags::batch_per_rank, 1, kMostBatch,
          "images in a step of each rank, in place of --batch")
      .excludes("batch");
  r.part("micro-batch", kIdentity);
  r.whole("micro-batch", &Flags::micro_batch, 1, 65536,
          "images that a rank computes at once [chosen by network, ranks, threads and memory; with "
          "batch "
          "normalization the rank's whole share]")
      .identity(false)  // but where sums or statistics depend on it
      .recorded();
  r.yes("sync-bn", &Flags::sync_bn,
        "take the statistics of batch normalization from the images of all ranks");
  r.part("shares", kIdentity);
  r.whole("accumulate", &Flags::accumulate, 1, 65536,
          "batches whose gradients are added up for one update [1]")
      .recorded();
  r.choice("sharding", &Flags::sharding,
           "how ranks share the images: slices of each shuffled batch, every n-th image of the "
           "shuffled order, every n-th of the data's order, or the same images on all [slices]")
      .recorded()
      .for_developers();
  r.yes("shuffle", &Flags::shuffle,
        "take the images in a new order in each epoch [the model's: yes]")
      .recorded([](const TrainingSpec& s) { return s.shuffle; });
  r.yes("drop-last", &Flags::drop_last,
        "leave out images at the end of an epoch that do not fill a step [the model's: no]")
      .recorded([](const TrainingSpec& s) { return s.plan.drop_last; });
  r.part("length");
  r.parsed("batch-growth", &Flags::batch_growth, "EPOCHS:FACTOR,...",
           "multiply the batch by FACTOR after EPOCHS epochs, as 30:2,60:4 [never]", parse_growth)
      .identity()
      .recorded([](const TrainingSpec& s) {
        return s.plan.growth.empty() ? Json() : Json(growth_text(s.plan.growth));
      });
  r.whole("epochs", &Flags::epochs, 1, 1'000'000, "passes over the data [the model's]")
      .recorded([](const TrainingSpec& s) { return s.epochs; });
  r.whole("steps", &Flags::steps, 1, 1'000'000'000'000,
          "end after N steps, even where --epochs says more or fewer");
  r.whole("settled-steps", &Flags::settled_steps, 1, 1'000'000,
          "with --steps: go on until N whole steps were made without autotuning, at most ten times "
          "--steps")
      .for_developers();
  r.real("target-accuracy", &Flags::target_accuracy, 0, 1,
         "end when the accuracy of validation reaches X; the summary says after which time");
  r.whole("eval-every", &Flags::eval_every, 1, 1'000'000,
          "look at the images of validation after every N-th epoch and after the last one; early "
          "stopping and plateaus count these epochs [1]");
  r.part("augment", kIdentity);
  r.parsed("augment", &Flags::augment, "LIST",
           "random changes of training images, such as flip,shear:0.2; the words are none, " +
               data::augment_forms() + " [the model's]",
           data::parse_augment)
      .suggests(data::augment_names())
      .recorded([](const TrainingSpec& s) { return data::to_text(s.augment); });
}

/// "sgd (momentum, nesterov), ...": each rule with its figures.
std::string rule_forms() {
  std::vector<std::string> forms;
  for (const std::string& name : optim::rule_names()) {
    std::vector<std::string> figures;
    const optim::UpdateRule rule = *optim::rule_named(name);
    optim::for_figures(rule, [&](const char* figure, auto) { figures.emplace_back(figure); });
    forms.push_back(fmt::format("{} ({})", name, join(figures, ", ")));
  }
  return join(forms, ", ");
}

void add_rule(FlagRows& r) {
  r.part("rule", kIdentity);
  r.parsed("optimizer", &Flags::optimizer, "RULE[:F=X]",
           "update rule, as in Keras: " + join(optim::rule_names(), ", ") +
               "; figures F stand behind it, as sgd:momentum=0.9,nesterov: " + rule_forms() +
               "; adamw is adam whose --weight-decay is 0.004 where the model has none; lars and "
               "lamb are for large batches [the model's]",
           optim::parse_rule)
      .suggests(optim::rule_names())
      .recorded([](const TrainingSpec& s) { return optim::rule_name(s.optimizer.rule); });
  r.real("weight-decay", &Flags::weight_decay, 0, 1e3,
         "take lr * X * weight off every kernel in each step; lars and lamb do it as in their "
         "papers [the model's: 0]")
      .recorded([](const TrainingSpec& s) { return s.optimizer.weight_decay; })
      .starts_line("weight decay {:g}");
  r.real("clip-value", &Flags::clip_value, 1e-30, 1e30,
         "keep every element of the gradient between -X and X")
      .starts_line("elements clipped to {:g}");
  r.real("clip-norm", &Flags::clip_norm, 1e-30, 1e30,
         "keep the norm of the whole gradient at or below X")
      .starts_line("norm clipped to {:g}");
  r.real("label-smoothing", &Flags::label_smoothing, 0, 0.999,
         "mix X of all classes into the labels of training [0]")
      .recorded()
      .starts_line("labels smoothed by {:g}");
  r.real("ema", &Flags::ema, 0, 0.9999999,
         "keep averages of the weights, X * average + (1 - X) * weight after each step; they are "
         "evaluated, too, and saved in weights-ema.safetensors [0: none]")
      .recorded()
      .starts_line("weights averaged by {:g}");
  r.parsed(
       "class-weights", &Flags::class_weights, "balanced|FILE",
       "weigh losses of training by class: balanced counts rare classes for more, a JSON file "
       "has {\"NAME\": NUMBER, ...}, or {\"0\": NUMBER, ...} in the order of classes, as Keras' "
       "class_weight [all alike]",
       parse_class_weights)
      .suggests({"balanced"})
      .recorded([](const TrainingSpec& s) {
        const std::string& text = s.flags.class_weights.text;
        return text.empty() ? Json() : Json(text);
      });
}

void add_rate(FlagRows& r) {
  r.part("rate", kIdentity);
  r.real("lr", &Flags::lr, 0, 1e6, "learning rate [the model's, or Keras' default for --optimizer]")
      .also("learning-rate")
      .recorded([](const TrainingSpec& s) { return s.learning_rate.base; });
  r.choice("lr-scale", &Flags::lr_scale,
           "multiply the rate by n, by its root or by its power 2/3; n is batch / --base-batch or, "
           "without that flag, the number of ranks [none]")
      .recorded();
  r.whole("base-batch", &Flags::base_batch, 1, kMostBatch,
          "batch that --lr is meant for; --lr-scale then takes batch / N");
  r.real("warmup-epochs", &Flags::warmup_epochs, 0, 1e6,
         "raise the rate over X epochs, from rate / n of --lr-scale as in Horovod, from 0 without "
         "it [0]")
      .recorded();
  r.parsed("schedule", &Flags::schedule, "FORM",
           "how the rate changes over the training: " + optim::schedule_forms() +
               " [the model's: constant]",
           optim::parse_schedule)
      .suggests(optim::schedule_words())
      .recorded(
          [](const TrainingSpec& s) { return optim::schedule_text(s.learning_rate.schedule); });
  r.yes("momentum-correction", &Flags::momentum_correction,
        "scale the momentum for one step where the rate changes")
      .starts_line("momentum corrected where the rate changes");
}

/// A flag of this start, or one that a row below says in other words.
bool is_said_otherwise(const std::string& name) {
  for (const char* start : {"out", "overwrite", "end-with", "resume"}) {
    if (name == start) return true;
  }
  return std::ranges::any_of(training_rows(), [&](const FlagRow& row) {
    const bool either =
        row.kind == FlagRow::Kind::yes_or_no && (name == row.name || name == "no-" + row.name);
    return row.holds && (either || name == row.rival);
  });
}

/// A flag that was given, in the type of its row: a number, true, or the text of any other value.
nlohmann::ordered_json typed(const TrainingFlags& flags, const std::string& name,
                             const std::string& text) {
  if (flags.switches.contains(name)) return true;
  const auto row = std::ranges::find(training_rows(), name, &FlagRow::name);
  if (row == training_rows().end()) return text;
  const nlohmann::ordered_json value = row->get(flags);
  return value.is_number() || value.is_boolean() ? value : nlohmann::ordered_json(text);
}

}  // namespace

FlagRow& FlagRow::recorded() {
  holds = [get = get](const TrainingSpec& spec) { return get(spec.flags); };
  return *this;
}

std::string FlagRow::spelling(const TrainingFlags& flags) const {
  const nlohmann::ordered_json value = get(flags);
  if (value.is_string()) return value;
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

std::string FlagRows::join_words(const std::vector<std::string>& words) { return join(words, "|"); }

const std::deque<FlagRow>& training_rows() {
  static const FlagRows rows = [] {
    FlagRows all;
    for (const auto add : {add_model, add_data, add_batches, add_rule, add_rate, add_running}) {
      add(all);
    }
    return all;
  }();
  return rows.all();
}

const FlagRow& training_row(std::string_view name) {
  const auto found = std::ranges::find(training_rows(), name, &FlagRow::name);
  if (found == training_rows().end()) {
    fail(ExitCode::internal, "no flag of a training is named {}", name);
  }
  return *found;
}

nlohmann::ordered_json effective_flags(const TrainingSpec& spec) {
  nlohmann::ordered_json flags;
  for (const auto& [name, value] : spec.flags.given) {
    if (!is_said_otherwise(name)) flags[name] = typed(spec.flags, name, value);
  }
  for (const FlagRow& row : training_rows()) {
    const nlohmann::ordered_json value = row.holds ? row.holds(spec) : nullptr;
    if (value.is_null()) continue;
    if (row.kind == FlagRow::Kind::yes_or_no) {
      flags[(value == true ? "" : "no-") + row.name] = true;
    } else {
      flags[row.name] = value;
    }
  }
  optim::for_figures(spec.optimizer.rule,
                     [&](const char* name, auto figure) { flags[name] = figure; });
  return flags;
}

nlohmann::ordered_json from_any_folder(nlohmann::ordered_json flags) {
  for (const char* name : {"weights", "timeline", "out"}) {
    if (flags.contains(name)) flags[name] = system::absolute_path(flags[name]);
  }
  if (flags.contains("data")) flags["data"] = data::absolute_data_spec(flags["data"]);
  return flags;  // a model's file is absolute already (ModelEntry::spec)
}

}  // namespace cputrain::training
