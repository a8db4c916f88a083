#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "cli/checks.h"
#include "cli/flags/config_file.h"
#include "cli/help/foreign_words.h"
#include "cli/help/help_text.h"
#include "core/error.h"
#include "core/text.h"
#include "core/version.h"

namespace cputrain::cli {
namespace {

std::string hyphens(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

/// What may have been meant by a flag that the command does not have.
using Hint = std::function<std::string(const std::string& name, const Flags&)>;

/// A word that begins with -- and names a flag of the command: "--steps", "--batch_size=4".
bool is_flag(const std::string& word, const Flags& flags) {
  if (!word.starts_with("--")) return false;
  const std::string name = flags.resolved(hyphens(word.substr(2, word.find('=') - 2)));
  return flags.names().contains(name) || name == "help" || name == "help-all" || name == "config";
}

/// Flags as they were given, wherever that was: name and value, "true" for a switch.
using Given = std::map<std::string, std::string>;

/// A switch that is turned off is not given. `where`: "CPUTRAIN_SHUFFLE: ", or nothing where it is
/// the command line.
void add(Given& given, const Flags& flags, const std::string& name, const std::string& value,
         const std::string& where) {
  constexpr std::string_view kYes[] = {"true", "1", "yes", "on"},
                             kNo[] = {"false", "0", "no", "off"};
  if (value.empty()) {
    fail(ExitCode::usage, fmt::format("{}--{} needs a value (see --help)", where, name));
  }
  std::string word = value;
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (flags.takes_value(name)) {
    given[name] = value;
  } else if (std::ranges::find(kYes, word) != std::end(kYes)) {
    given[name] = "true";
  } else if (std::ranges::find(kNo, word) == std::end(kNo)) {
    fail(ExitCode::usage, fmt::format("{}--{} {}: must be true, yes, on, 1, false, no, off or 0",
                                      where, name, value));
  }
}

/// Two words for one flag with different values: which is meant cannot be told. The same word twice
/// is no mistake, since people add flags to lines that they have.
class Spellings {
 public:
  void check(const std::string& name, const std::string& word, const std::string& value) {
    const auto [before, is_first] = seen_.emplace(name, std::pair(word, value));
    auto& [word_before, value_before] = before->second;
    if (!is_first && word_before != word && value_before != value) {
      fail(ExitCode::usage,
           fmt::format("--{} {} and --{} {} are one flag with two values (which is meant "
                       "cannot be told); leave one out",
                       word_before, value_before, word, value));
    }
    before->second = {word, value};
  }

 private:
  std::map<std::string, std::pair<std::string, std::string>> seen_;
};

/// What the command line says.
struct CommandLine {
  Given given;
  std::vector<std::string> files;  ///< words that are no flags, and all words behind "--"
  std::string config;
  bool help = false, help_all = false;
};

[[noreturn]] void refuse_flag(const std::string& word, const std::string& name, const Flags& flags,
                              const Hint& hint) {
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(word, ignored);
  fail(ExitCode::usage,
       fmt::format("{} is not a flag of this command{} (see --help)", word,
                   is_file ? "; a file of this name stands behind --" : hint(name, flags)));
}

/// "--batch_size=4", "--batch -4": what stands behind a flag with a value is never taken for a flag
/// unless it names one. Unknown flags end here, with a hint.
CommandLine read_line(const std::vector<std::string>& words, const Flags& flags, const Hint& hint) {
  CommandLine line;
  Spellings spellings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      line.files.insert(line.files.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                        words.end());
      break;
    }
    if (!word.starts_with("-") || word == "-") {
      line.files.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('='), dashes = word.find_first_not_of('-');
    const std::string typed =
        dashes == std::string::npos ? "" : hyphens(word.substr(dashes, equals - dashes));
    const std::string name = flags.resolved(typed);
    if (name == "help" || name == "help-all" || word == "-h") {
      (name == "help-all" ? line.help_all : line.help) = true;
      continue;
    }
    if (!word.starts_with("--") || (!flags.names().contains(name) && name != "config"))
      refuse_flag(word, name, flags, hint);
    const bool takes_value = flags.takes_value(name) || name == "config";
    std::string value = takes_value ? "" : "true";
    if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (takes_value && i + 1 < words.size() && words[i + 1] != "--" &&
               !is_flag(words[i + 1], flags)) {
      value = words[++i];
    }
    if (takes_value) spellings.check(name, typed, value);
    if (name == "config" && !value.empty()) {
      line.config = value;
    } else {
      add(line.given, flags, name, value, "");
    }
  }
  return line;
}

/// The flag itself, or the one that excludes it.
bool is_decided(const Given& given, const Flags& flags, const std::string& name) {
  return given.contains(name) || given.contains(flags.rival(name));
}

void check_rivals(const Given& given, const Flags& flags) {
  for (const auto& [name, value] : given) {
    const std::string rival = flags.rival(name);
    if (given.contains(rival)) {
      fail(ExitCode::usage,
           fmt::format("--{} and --{} exclude each other; leave one out", name, rival));
    }
  }
}

void check_variables_of_one_flag(const Environment& environment, const std::string& name,
                                 const std::string& alias) {
  const auto one = value_of(environment, name), other = value_of(environment, alias);
  if (!one || !other || *one == *other) return;
  fail(ExitCode::usage,
       fmt::format("{}={} and {}={} in the environment are one flag with two values (which is "
                   "meant cannot be told); unset one",
                   variable_of(name), *one, variable_of(alias), *other));
}

/// CPUTRAIN_BATCH=32 for --batch 32, where the command line does not say it. Returns the flags that
/// were added.
std::set<std::string> add_environment(Given& given, const Flags& flags,
                                      const Environment& environment) {
  const Given before = given;
  std::set<std::string> added;
  const auto read = [&](const std::string& word, const std::string& name) {
    if (is_decided(before, flags, name)) return;
    const auto value = value_of(environment, word);
    if (!value) return;
    add(given, flags, name, *value, variable_of(word) + ": ");
    added.insert(name);
  };
  for (const auto& [word, name] : flags.aliases()) {
    if (!is_decided(before, flags, name)) check_variables_of_one_flag(environment, name, word);
    read(word, name);
  }
  for (const std::string& name : flags.names()) read(name, name);
  return added;
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
void add_config_file(Given& given, const Flags& flags, const std::string& path, const Hint& hint) {
  if (path.empty()) return;
  const Given before = given;
  const nlohmann::json settings = read_settings(path);
  std::set<std::string> named;  // image-size and image_size are one
  for (const auto& [key, value] : settings.items()) {
    const std::string name = flags.resolved(hyphens(key));
    if (!flags.names().contains(name)) {
      fail(ExitCode::usage, fmt::format("--config {}: {} is not a flag of this command{}", path,
                                        key, hint(name, flags)));
    }
    if (!named.insert(name).second) {
      fail(ExitCode::usage,
           fmt::format("--config {}: {} says {} a second time; leave one out", path, key, name));
    }
    if (!is_decided(before, flags, name))
      add(given, flags, name, flag_text(value, path, key), "--config " + path + ": ");
  }
}

bool asks_for_help(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word == "--help" || word == "-h" || word == "--help-all" || word == "--help_all";
  });
}

/// The command is the first word unless that is a flag, else the first of the list; taken off the
/// words, and its topic, too. A command without its topic is for help alone.
std::unique_ptr<Command> take_command(std::vector<std::string>& words,
                                      const CommandLineChoices& choices) {
  std::vector<std::unique_ptr<Command>> commands = make_commands(choices);
  std::vector<CommandEntry> entries;
  std::vector<std::string> names, topics;
  for (const auto& command : commands) {
    const CommandEntry& entry = entries.emplace_back(command->help());
    if (entry.topic.empty()) names.push_back(entry.name);
  }
  std::string name = names.front(), topic;
  const bool is_named = !words.empty() && !words.front().starts_with("-");
  if (is_named) {
    name = words.front();
    words.erase(words.begin());
  }
  if (std::ranges::find(names, name) == names.end()) {
    std::error_code ignored;
    const bool is_data = std::filesystem::is_directory(name, ignored);
    fail(ExitCode::usage,
         fmt::format("{} is not a command; commands are {}{}", name, join(names, ", "),
                     is_data ? "; to train on it, use --data " + name
                             : hint_for_command(name, entries, choices.program)));
  }
  for (const CommandEntry& entry : entries) {
    if (entry.name == name && !entry.topic.empty()) topics.push_back(entry.topic);
  }
  const bool asks = !words.empty() && words.front().starts_with("-");
  if (!topics.empty() && !(asks && asks_for_help(words))) {
    if (!words.empty() && !asks) topic = words.front();
    if (std::ranges::find(topics, topic) == topics.end()) {
      fail(ExitCode::usage, fmt::format("{}{}: the word after {} must be one of {}{}", name,
                                        topic.empty() ? "" : " " + topic, name, join(topics, ", "),
                                        topic.empty() ? "" : did_you_mean(topic, topics)));
    }
    words.erase(words.begin());
  }
  const auto found = std::ranges::find_if(entries, [&](const CommandEntry& entry) {
    return entry.name == name && entry.topic == topic;
  });
  std::unique_ptr<Command>& command = commands[static_cast<std::size_t>(found - entries.begin())];
  training::Task& task = command->options().task;
  task.name = found->full_name();
  if (name != names.front()) task.typed = split(task.name, ' ');
  return std::move(command);
}

/// The flags of every command and topic, other words for them included.
std::set<std::string> all_flags(const CommandLineChoices& choices) {
  std::set<std::string> all;
  for (const CommandEntry& command : command_reference(choices)) {
    for (const FlagEntry& flag : command.flags) {
      all.insert(flag.name);
      if (flag.negatable) all.insert("no-" + flag.name);
      all.insert(flag.aliases.begin(), flag.aliases.end());
    }
  }
  all.erase("help");
  all.erase("help-all");
  return all;
}

/// Commands that have the flag: "train, sweep".
std::vector<std::string> commands_with(const std::string& name, const CommandLineChoices& choices) {
  std::vector<std::string> commands;
  for (const CommandEntry& command : command_reference(choices)) {
    if (std::ranges::find(command.flags, name, &FlagEntry::name) != command.flags.end())
      commands.push_back(command.full_name());
  }
  return commands;
}

/// What others call it, the same with two dashes, whose flag it is, or the nearest one.
std::string hint_of(const std::string& name, const Flags& flags,
                    const CommandLineChoices& choices) {
  if (flags.names().contains(name)) return "; did you mean --" + name + "?";
  const std::string foreign = hint_for_flag(name, flags.names(), choices.program);
  if (!foreign.empty()) return foreign;
  const std::vector<std::string> others = commands_with(name, choices);
  if (!others.empty()) return "; it is a flag of " + join(others, ", ");
  std::vector<std::string> known;
  for (const std::string& flag : flags.names()) known.push_back("--" + flag);
  return did_you_mean("--" + name, known);
}

std::string help_of(const Command& command, bool all, const CommandLineChoices& choices,
                    const HelpForm& form) {
  const CommandEntry entry = command.help();
  return command_help(command_entry(entry.name, entry.topic, choices), all, form);
}

/// The words "help" or "help COMMAND [TOPIC]", or an overview that is asked for by a flag.
std::optional<std::string> general_help(const std::vector<std::string>& words,
                                        const CommandLineChoices& choices, const HelpForm& form) {
  if (words.empty()) return std::nullopt;
  const std::string& first = words.front();
  const bool more = words.size() > 1 && !words[1].starts_with("-");
  if (first == "--help" || first == "-h" || (first == "help" && !more))
    return overview_text(command_reference(choices), choices.examples, form);
  if (first != "help") return std::nullopt;
  std::vector<std::string> rest(words.begin() + 1, words.end());
  if (rest.size() == 1) rest.push_back("--help");
  return help_of(*take_command(rest, choices), words.back() == "--help-all", choices, form);
}

}  // namespace

std::variant<std::unique_ptr<Command>, HelpText> parse_command_line(
    const std::vector<std::string>& given_words, const Environment& environment,
    const CommandLineChoices& choices) {
  std::vector<std::string> words = given_words;
  if (!words.empty() && words.front() == "--version") {
    return HelpText{fmt::format("cputrain {} ({})\n", kVersion, choices.build)};
  }
  const HelpForm form{choices.columns, choices.program};
  if (const auto text = general_help(words, choices, form)) return HelpText{*text};
  std::unique_ptr<Command> command = take_command(words, choices);
  Options& options = command->options();
  options.backend = choices.backend_names().front();
  options.program = choices.program;

  Flags flags;
  command->add_flags(flags, choices);
  const Hint hint = [&choices](const std::string& name, const Flags& known) {
    return hint_of(name, known, choices);
  };
  CommandLine line = read_line(words, flags, hint);
  if (line.config.empty()) line.config = value_of(environment, "config").value_or("");
  if (line.help || line.help_all) return HelpText{help_of(*command, line.help_all, choices, form)};
  if (!environment.empty()) check_variables(environment, all_flags(choices));
  options.files = line.files;
  options.from_environment = add_environment(line.given, flags, environment);
  add_config_file(line.given, flags, line.config, hint);
  add_config_file(line.given, flags, command->earlier_flags(line.given), hint);
  check_rivals(line.given, flags);
  options.given = flags.set(line.given);
  for (const auto& [name, value] : options.given) {
    if (!flags.takes_value(name)) options.switches.insert(name);
  }
  check_options(*command, flags, choices);
  return command;
}

}  // namespace cputrain::cli
