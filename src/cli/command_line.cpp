#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "core/error.h"
#include "core/text.h"
#include "core/version.h"
#include "model/zoo.h"

namespace cputrain {
namespace {

struct Command {
  std::string name, help;
  std::vector<std::string> topics;  ///< allowed second words
};

const std::vector<Command>& commands() {
  static const std::vector<Command> list{
      {"train", "train, evaluate and save a classifier (what runs when no command is named)", {}},
      {"eval", "loss and accuracy of saved weights on a data set", {}},
      {"predict", "classes of picture files", {}},
      {"data",
       "check: find damaged and doubled pictures; info: what a data set holds",
       {"check", "info"}},
      {"bench",
       "step: images/s and GFLOP/s of a training step beside this machine's limits",
       {"step"}},
      {"info", "machine, placement, libraries, and the layers of a model", {}},
  };
  return list;
}

std::string overview() {
  std::string text =
      "cputrain " + std::string(kVersion) +
      ": trains image classifiers with synchronous allreduce SGD on all your cores\n\n"
      "Usage: cputrain [COMMAND] [FLAGS]\n"
      "       mpirun -np 96 ./cputrain --batch 1024\n\nCommands:\n";
  for (const Command& command : commands()) {
    text += fmt::format("  {:<10}{}\n", command.name, command.help);
  }
  return text +
         "\ncputrain COMMAND --help lists its flags. Every flag --name can also be given as "
         "CPUTRAIN_NAME\nin the environment or in a --config FILE (JSON), in this order of "
         "precedence.\n";
}

void add_model_flags(Flags& f, Config& c) {
  f.group("Model");
  std::vector<std::string> names;
  for (const auto& entry : model_zoo()) names.push_back(entry.name);
  f.text("model", c.model, "NAME", "network: " + join(names, ", ") + " [dogcat]");
  f.whole("image-size", c.image_size, 1, 16384, "pictures are resized to N x N [the model's]");
  f.whole("classes", c.classes, 2, 65536, "outputs of the last layer [those of the data]");
  f.real("dropout", c.dropout, 0, 0.999, "rate of every dropout layer [the model's]");
}

void add_data_flags(Flags& f, Config& c) {
  f.group("Data");
  f.text("data", c.data, "DATA",
         "folder of class folders, folder of cat.N.jpg files, list file, idx:DIR, or synthetic[:N] "
         "[synthetic]");
  f.real("validation-split", c.validation_split, 0, 0.99,
         "part kept for validation where the data has none of its own [0.1]");
  f.whole("limit-train", c.limit_train, 1, 1'000'000'000, "use at most N training pictures");
  f.whole("limit-val", c.limit_val, 0, 1'000'000'000,
          "use at most N validation pictures; 0: do not evaluate");
  f.whole("seed", c.seed, 0, 9'000'000'000'000'000'000,
          "order, split, initial weights, dropout and augmentation are functions of it [0]");
}

void add_training_flags(Flags& f, Config& c) {
  f.group("Training");
  f.whole("batch", c.batch, 1, 16'777'216, "images in a step, over all ranks [the model's]");
  f.whole("micro-batch", c.micro_batch, 1, 65536,
          "images that a rank computes at once [32, or more with many threads]");
  f.whole("epochs", c.epochs, 1, 1'000'000, "times through the data [the model's]");
  f.whole("steps", c.steps, 1, 1'000'000'000'000, "end after N steps, whatever --epochs says");
  f.choice(
      "augment", {"none", "flip", "six"},
      "flip: left-right at random; six: flips and quarter turns at random [none]",
      [&c](const std::string& name) {
        c.augment = name == "flip" ? Augment::flip : name == "six" ? Augment::six : Augment::none;
      });
  f.choice("optimizer", {"sgd", "rmsprop", "adam"}, "update rule, as in Keras [the model's]",
           [&c](const std::string& name) { c.optimizer = name; });
  f.real("lr", c.lr, 0, 1e6, "learning rate [the model's, or Keras' default for --optimizer]");
  f.real("momentum", c.momentum, 0, 0.9999, "of sgd and rmsprop [0]");
  f.yes("nesterov", c.nesterov, "sgd: look ahead along the momentum");
  f.real("rho", c.rho, 0, 0.999999, "rmsprop: decay of the mean square [0.9]");
  f.yes("centered", c.centered, "rmsprop: subtract the squared mean gradient");
  f.real("epsilon", c.epsilon, 0, 1e3, "of rmsprop and adam [1e-7]");
  f.real("weight-decay", c.weight_decay, 0, 1e3,
         "each step also takes lr * X * weight off every kernel [0]");
}

void add_machine_flags(Flags& f, Config& c, const CommandLineChoices& choices) {
  f.group("Machine");
  f.choice("backend", choices.backends, "what computes [" + choices.backends.front() + "]",
           [&c](const std::string& name) { c.backend = name; });
  f.choice("precision", {"float", "double"}, "double: reference backend only [float]",
           [&c](const std::string& name) { c.precision = name; });
  f.whole("threads", c.threads, 1, 4096, "of each rank [the cores it was given]");
  f.whole("io-threads", c.io_threads, 1, 4096, "for decoding pictures [as --threads]");
  f.no("winograd", c.winograd,
       "compute 3x3 convolutions directly: slower, with smaller rounding errors");
  f.real("bucket-mb", c.bucket_mb, 0, 1e6,
         "gradients travel in pieces of at least so many MB while backward runs [25]");
}

void add_flags(Flags& f, Config& c, const CommandLineChoices& choices) {
  const std::string& command = c.command;
  const bool trains = command == "train" || command == "bench";
  const bool reads_weights = command == "eval" || command == "predict";
  if (trains || command == "info") add_model_flags(f, c);
  if (trains || reads_weights) {
    f.group("Model");
    f.text("weights", c.weights, "FILE",
           trains ? "start from these weights of the same model [initial ones, by seed]"
                  : "weights.safetensors that training wrote");
  }
  if (command != "predict" && command != "info") add_data_flags(f, c);
  if (trains) add_training_flags(f, c);
  if (reads_weights) {
    f.group("Machine");
    f.whole("micro-batch", c.micro_batch, 1, 65536, "images computed at once [32]");
  }
  add_machine_flags(f, c, choices);
  f.group("Output");
  if (command == "train") {
    f.text("out", c.out, "DIR", "folder of this run [runs/<date>-<model>-np<ranks>-b<batch>]");
    f.yes("overwrite", c.overwrite, "--out may hold an earlier run");
    f.whole("verbose", c.verbose, 0, 2,
            "0: silent, 1: a bar, 2: a line an epoch [1 on a terminal, else 2]");
    f.whole("log-every", c.log_every, 0, 1'000'000'000,
            "step lines in metrics.jsonl [10]; 0: none");
  } else {
    f.text("json", c.json, "FILE", "write the result as JSON; -: to standard output, and only it");
  }
  if (command == "bench") f.whole("repeat", c.repeat, 1, 1000, "measured steps [5]");
}

std::string hyphens(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

/// --batch_size=4 -> --batch-size=4; "--batch -4" -> "--batch=-4", so that a value is never taken
/// for a flag. Unknown flags end here, with the nearest one that exists.
std::vector<std::string> normalised(const std::vector<std::string>& words, const Flags& flags) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-") || words[i] == "-") {
      result.push_back(words[i]);
      continue;
    }
    const std::size_t equals = words[i].find('=');
    const std::size_t dashes = words[i].find_first_not_of('-');
    std::string name =
        dashes == std::string::npos ? "" : hyphens(words[i].substr(dashes, equals - dashes));
    if (name == "help" || words[i] == "-h") {
      result.push_back("--help");
      continue;
    }
    if (!words[i].starts_with("--") || (!flags.names().contains(name) && name != "config")) {
      const std::vector<std::string> known(flags.names().begin(), flags.names().end());
      fail(ExitCode::usage, fmt::format("{} is not a flag of this command{} (see --help)", words[i],
                                        did_you_mean(name, known)));
    }
    std::string word = "--" + name;
    if (equals != std::string::npos) {
      word += words[i].substr(equals);
    } else if (flags.takes_value(name) || name == "config") {
      if (i + 1 == words.size()) fail(ExitCode::usage, "--" + name + " needs a value (see --help)");
      word += "=" + words[++i];
    }
    result.push_back(word);
  }
  return result;
}

bool is_given(const std::vector<std::string>& words, const std::string& name) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return word == "--" + name || word.starts_with("--" + name + "=");
  });
}

void add_word(std::vector<std::string>& words, const Flags& flags, const std::string& name,
              const std::string& value, const std::string& where) {
  if (flags.takes_value(name)) {
    words.push_back("--" + name + "=" + value);
  } else if (value == "true" || value == "1") {
    words.push_back("--" + name);
  } else if (value != "false" && value != "0") {
    fail(ExitCode::usage, fmt::format("{}: {} must be true or false, not {}", where, name, value));
  }
}

/// CPUTRAIN_BATCH=32 for --batch 32, where the command line does not say it.
void add_environment(std::vector<std::string>& words, const Flags& flags,
                     const Environment& environment) {
  for (const std::string& name : flags.names()) {
    std::string variable = "CPUTRAIN_" + name;
    std::ranges::transform(variable, variable.begin(), [](unsigned char c) {
      return c == '-' ? '_' : static_cast<char>(std::toupper(c));
    });
    const char* value = environment(variable.c_str());
    if (value && !is_given(words, name)) add_word(words, flags, name, value, variable);
  }
}

/// {"batch": 32, "model": "dogcat"}, where neither the command line nor the environment says it.
void add_config_file(std::vector<std::string>& words, const Flags& flags, const std::string& path) {
  std::ifstream stream(path);
  if (!stream) fail(ExitCode::usage, "--config " + path + ": cannot be read");
  const auto settings = nlohmann::json::parse(stream, nullptr, false);
  if (!settings.is_object()) {
    fail(ExitCode::usage,
         "--config " + path + ": must hold a JSON object of flags and values, as config.json does");
  }
  for (const auto& [key, value] : settings.items()) {
    const std::string name = hyphens(key);
    if (!flags.names().contains(name)) {
      const std::vector<std::string> known(flags.names().begin(), flags.names().end());
      fail(ExitCode::usage, fmt::format("--config {}: {} is not a flag of this command{}", path,
                                        key, did_you_mean(name, known)));
    }
    if (is_given(words, name)) continue;
    add_word(words, flags, name, value.is_string() ? value.get<std::string>() : value.dump(), path);
  }
}

/// Takes --config=FILE out of the words; empty where it is not there.
std::string take_config(std::vector<std::string>& words, const Environment& environment) {
  const char* variable = environment("CPUTRAIN_CONFIG");
  std::string path = variable ? variable : "";
  constexpr std::string_view kPrefix = "--config=";
  std::erase_if(words, [&](const std::string& word) {
    if (!word.starts_with(kPrefix)) return false;
    path = word.substr(kPrefix.size());
    return true;
  });
  return path;
}

/// The command is the first word unless that is a flag; takes it (and a topic) off the words.
const Command& take_command(std::vector<std::string>& words, Config& config) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  std::string name = "train";
  if (!words.empty() && !words.front().starts_with("-")) {
    name = words.front();
    words.erase(words.begin());
  }
  const auto found = std::ranges::find(commands(), name, &Command::name);
  if (found == commands().end()) {
    fail(ExitCode::usage, fmt::format("{} is not a command; commands are {}{}", name,
                                      join(names, ", "), did_you_mean(name, names)));
  }
  config.command = name;
  const bool help = !words.empty() && words.front().starts_with("-");
  if (found->topics.empty() || help) return *found;
  const std::string topic = words.empty() ? "" : words.front();
  if (std::ranges::find(found->topics, topic) == found->topics.end()) {
    fail(ExitCode::usage, fmt::format("{} {}: the word after {} must be one of {}", name, topic,
                                      name, join(found->topics, ", ")));
  }
  config.topic = topic;
  words.erase(words.begin());
  return *found;
}

void check_files(const Config& config) {
  if (!config.files.empty() && config.command != "predict" && config.command != "data") {
    fail(ExitCode::usage, config.files.front() + " is one word too many (flags begin with --)");
  }
  if (config.command == "predict" && config.files.empty()) {
    fail(ExitCode::usage,
         "predict needs picture files: cputrain predict --weights FILE PICTURE...");
  }
  if (config.command == "data" && config.files.size() > 1) {
    fail(ExitCode::usage, config.files[1] + " is one word too many: data looks at one data set");
  }
}

/// Combinations that make no sense, whatever the machine.
void check_combinations(Config& config) {
  if ((config.command == "eval" || config.command == "predict") && config.weights.empty()) {
    fail(ExitCode::usage, config.command +
                              " needs --weights FILE, a weights.safetensors that "
                              "training wrote");
  }
  check_files(config);
  if (config.command == "data" && !config.files.empty()) config.data = config.files.front();
  if (config.command == "data" && config.data.empty()) {
    fail(ExitCode::usage, "data " + config.topic + " needs a data set: cputrain data check FOLDER");
  }
  if (config.precision == "double" && config.backend != "reference") {
    fail(ExitCode::usage, "--precision double needs --backend reference");
  }
  if (config.nesterov && config.momentum.value_or(0) == 0) {
    fail(ExitCode::usage, "--nesterov needs --momentum above 0");
  }
}

}  // namespace

std::variant<Config, HelpText> parse_command_line(const std::vector<std::string>& given_words,
                                                  const Environment& environment,
                                                  const CommandLineChoices& choices) {
  std::vector<std::string> words = given_words;
  if (!words.empty() && words.front() == "--version") {
    return HelpText{"cputrain " + std::string(kVersion) + "\n"};
  }
  if (!words.empty() &&
      (words.front() == "--help" || words.front() == "-h" || words.front() == "help")) {
    return HelpText{overview()};
  }
  Config config;
  config.backend = choices.backends.front();
  const Command& command = take_command(words, config);

  CLI::App app(command.help,
               "cputrain " + config.command + (config.topic.empty() ? "" : " " + config.topic));
  Flags flags(app);
  add_flags(flags, config, choices);
  app.get_formatter()->column_width(34);
  app.add_option("files", config.files)->group("");
  app.add_option("--config")
      ->type_name("FILE")
      ->group("Output")
      ->description("JSON object of flags and values, such as a run's config.json");

  words = normalised(words, flags);
  const std::string config_file = take_config(words, environment);
  if (is_given(words, "help")) return HelpText{app.help()};
  add_environment(words, flags, environment);
  if (!config_file.empty()) add_config_file(words, flags, config_file);
  try {
    std::ranges::reverse(words);  // CLI11 takes them from the back
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    fail(ExitCode::usage, std::string(error.what()) + " (see --help)");
  }
  config.given = flags.given();
  check_combinations(config);
  return config;
}

}  // namespace cputrain
