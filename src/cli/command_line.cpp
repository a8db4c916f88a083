#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/flags/combinations.h"
#include "cli/flags/command_flags.h"
#include "cli/flags/config_file.h"
#include "core/error.h"
#include "core/text.h"
#include "core/version.h"

namespace cputrain::cli {
namespace {

struct Command {
  std::string name, help;
  std::vector<std::string> topics;  ///< allowed second words
};

const std::vector<Command>& commands() {
  static const std::vector<Command> list{
      {"train", "train, evaluate and save a classifier (what runs when no command is named)", {}},
      {"eval", "loss and accuracy of saved weights on a data set", {}},
      {"predict", "classes of image files and of folders of them", {}},
      {"report",
       "tables and a page with plots from the folders of sweeps; --diff: two of them side by side",
       {}},
      {"export", "saved weights as ONNX or safetensors, a model as a file to change", {}},
      {"data",
       "check: find damaged and doubled images; info: what a data set holds; pack: one file that "
       "is mapped instead of decoded; synth: made-up images to try things with",
       {"check", "info", "pack", "synth"}},
      {"bench",
       "step: images/s and GFLOP/s of a training step beside this machine's limits; allreduce: "
       "every way to sum gradients over ranks; input: decoding, augmentation and batches; kernels: "
       "every layer and direction by micro-batch",
       {"step", "allreduce", "input", "kernels"}},
      {"sweep",
       "the table \"seconds per epoch\" by CPUs, batch and backend; ends and goes on where it was",
       {}},
      {"simulate",
       "the same table for machines that are not here: costs measured here, simulated network",
       {}},
      {"info", "machine, placement, libraries, and the layers of a model", {}},
  };
  return list;
}

std::string overview() {
  std::string text =
      "cputrain " + std::string(kVersion) +
      ": trains image classifiers with synchronous allreduce SGD on all your cores\n\n"
      "Usage: cputrain [COMMAND] [FLAGS]        (or --help, --version)\n"
      "       mpirun -np 96 ./cputrain --batch 1024\n\nCommands:\n";
  for (const Command& command : commands()) {
    text += fmt::format("  {:<10}{}\n", command.name, command.help);
  }
  return text +
         "\ncputrain COMMAND --help lists its flags. Every flag --name can also be given as "
         "CPUTRAIN_NAME\nin the environment or in a --config FILE (JSON), in this order of "
         "precedence.\n";
}

std::string hyphens(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

/// --batch_size=4 -> --batch-size=4; "--batch -4" -> "--batch=-4", so that a value is never taken
/// for a flag. Unknown flags end here, with the nearest one that exists.
/// Words that are no flags become `files`.
std::vector<std::string> normalised(const std::vector<std::string>& words, const Flags& flags,
                                    std::vector<std::string>& files) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-") || words[i] == "-") {
      files.push_back(words[i]);
      continue;
    }
    const std::size_t equals = words[i].find('=');
    const std::size_t dashes = words[i].find_first_not_of('-');
    std::string name =
        dashes == std::string::npos ? "" : hyphens(words[i].substr(dashes, equals - dashes));
    name = flags.resolved(name);
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
    if (word.ends_with("=")) fail(ExitCode::usage, "--" + name + " needs a value (see --help)");
    result.push_back(word);
  }
  return result;
}

bool is_given(const std::vector<std::string>& words, const std::string& name) {
  return std::ranges::any_of(words, [&](const std::string& word) {
    return word == "--" + name || word.starts_with("--" + name + "=");
  });
}

/// The flag itself, or the one that excludes it.
bool is_decided(const std::vector<std::string>& words, const Flags& flags,
                const std::string& name) {
  const std::string rival = flags.rival(name);
  return is_given(words, name) || (!rival.empty() && is_given(words, rival));
}

void check_rivals(const std::vector<std::string>& words, const Flags& flags) {
  for (const std::string& name : flags.names()) {
    const std::string rival = flags.rival(name);
    if (!rival.empty() && is_given(words, name) && is_given(words, rival)) {
      fail(ExitCode::usage,
           fmt::format("--{} and --{} exclude each other; leave one out", name, rival));
    }
  }
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
  const std::vector<std::string> given = words;
  const auto read = [&](const std::string& word, const std::string& name) {
    if (is_decided(given, flags, name)) return;
    const auto value = value_of(environment, word);
    if (value) add_word(words, flags, name, *value, variable_of(word));
  };
  for (const auto& [word, name] : flags.aliases()) read(word, name);
  for (const std::string& name : flags.names()) read(name, name);
}

/// A flag's value as it would be typed: a number, a text, or a list of texts.
std::string flag_text(const nlohmann::json& value, const std::string& path,
                      const std::string& key) {
  if (value.is_string()) return value;
  if (value.is_number() || value.is_boolean()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& part : value.is_array() ? value : nlohmann::json::array()) {
    if (part.is_string()) parts.push_back(part);
  }
  if (parts.empty() || parts.size() != value.size()) {
    fail(ExitCode::usage,
         fmt::format("--config {}: {} must be a number, a text or a list of texts", path, key));
  }
  return join(parts, ",");
}

/// {"batch": 32, "model": "dogcat"}, where neither the command line nor the environment says it.
void add_config_file(std::vector<std::string>& words, const Flags& flags, const std::string& path) {
  const std::vector<std::string> given = words;
  const nlohmann::json settings = read_settings(path);
  std::set<std::string> named;  // image-size and image_size are one
  for (const auto& [key, value] : settings.items()) {
    const std::string name = flags.resolved(hyphens(key));
    if (!flags.names().contains(name)) {
      const std::vector<std::string> known(flags.names().begin(), flags.names().end());
      fail(ExitCode::usage, fmt::format("--config {}: {} is not a flag of this command{}", path,
                                        key, did_you_mean(name, known)));
    }
    if (!named.insert(name).second) {
      fail(ExitCode::usage,
           fmt::format("--config {}: {} says {} a second time; leave one out", path, key, name));
    }
    if (is_decided(given, flags, name)) continue;
    add_word(words, flags, name, flag_text(value, path, key), path);
  }
}

/// Takes --config=FILE out of the words; empty where it is not there.
std::string take_config(std::vector<std::string>& words, const Environment& environment) {
  std::string path;
  constexpr std::string_view kPrefix = "--config=";
  std::erase_if(words, [&](const std::string& word) {
    if (!word.starts_with(kPrefix)) return false;
    path = word.substr(kPrefix.size());
    return true;
  });
  return path.empty() ? value_of(environment, "config").value_or("") : path;
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

/// The flags of every command and topic, other words for them included.
std::set<std::string> all_flags(const CommandLineChoices& choices) {
  std::set<std::string> all{"config"};
  for (const Command& command : commands()) {
    for (const std::string& topic :
         command.topics.empty() ? std::vector<std::string>{""} : command.topics) {
      Config config;
      config.command = command.name;
      config.topic = topic;
      CLI::App app;
      Flags flags(app);
      add_command_flags(flags, config, choices);
      all.insert(flags.names().begin(), flags.names().end());
      for (const auto& [word, name] : flags.aliases()) all.insert(word);
    }
  }
  return all;
}

}  // namespace

std::variant<Config, HelpText> parse_command_line(const std::vector<std::string>& given_words,
                                                  const Environment& environment,
                                                  const CommandLineChoices& choices) {
  std::vector<std::string> words = given_words;
  if (!words.empty() && words.front() == "--version") {
    return HelpText{fmt::format("cputrain {} ({})\n", kVersion, choices.build)};
  }
  if (!words.empty() &&
      (words.front() == "--help" || words.front() == "-h" || words.front() == "help")) {
    return HelpText{overview()};
  }
  Config config;
  config.backend = choices.backend_names().front();
  const Command& command = take_command(words, config);

  CLI::App app(command.help,
               "cputrain " + config.command + (config.topic.empty() ? "" : " " + config.topic));
  Flags flags(app);
  add_command_flags(flags, config, choices);
  app.get_formatter()->column_width(34);
  app.add_option("--config")
      ->type_name("FILE")
      ->group("Output")
      ->description("JSON object of flags and values, such as a run's config.json");

  words = normalised(words, flags, config.files);
  const std::string config_file = take_config(words, environment);
  if (is_given(words, "help")) return HelpText{app.help()};
  if (!environment.empty()) check_variables(environment, all_flags(choices));
  add_environment(words, flags, environment);
  if (!config_file.empty()) add_config_file(words, flags, config_file);
  check_rivals(words, flags);
  try {
    std::ranges::reverse(words);  // CLI11 takes them from the back
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    fail(ExitCode::usage, std::string(error.what()) + " (see --help)");
  }
  config.given = flags.given();
  for (const auto& [name, value] : config.given) {
    if (!flags.takes_value(name)) config.switches.insert(name);
  }
  check_combinations(config, choices);
  return config;
}

}  // namespace cputrain::cli
