#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "cli/flags/foreign_words.h"
#include "cli/help_text.h"
#include "core/error.h"
#include "core/text.h"
#include "core/version.h"
#include "training/run/run_folder.h"

namespace cputrain::cli {
namespace {

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
    const bool is_data = system::is_folder(name);
    fail(ExitCode::usage, "{} is not a command; commands are {}{}", name, join(names, ", "),
         is_data ? "; to train on it, use --data " + name
                 : hint_for_command(name, entries, choices.program));
  }
  for (const CommandEntry& entry : entries) {
    if (entry.name == name && !entry.topic.empty()) topics.push_back(entry.topic);
  }
  const bool asks = !words.empty() && words.front().starts_with("-");
  if (!topics.empty() && !(asks && asks_for_help(words))) {
    if (!words.empty() && !asks) topic = words.front();
    if (std::ranges::find(topics, topic) == topics.end()) {
      fail(ExitCode::usage, "{}{}: the word after {} must be one of {}{}", name,
           topic.empty() ? "" : " " + topic, name, join(topics, ", "),
           topic.empty() ? "" : did_you_mean(topic, topics));
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

/// The words "help" or "help COMMAND [TOPIC]", or an overview that is asked for by a flag or by no
/// word at all: a training is long, and is begun by a flag, or by the word train.
std::optional<std::string> general_help(const std::vector<std::string>& words,
                                        const CommandLineChoices& choices) {
  if (words.empty()) return overview_text(choices);
  const std::string& first = words.front();
  const bool more = words.size() > 1 && !words[1].starts_with("-");
  if (first == "--help" || first == "-h" || (first == "help" && !more))
    return overview_text(choices);
  if (first != "help") return std::nullopt;
  std::vector<std::string> rest(words.begin() + 1, words.end());
  if (rest.size() == 1) rest.push_back("--help");
  return command_help(*take_command(rest, choices), words.back() == "--help-all", choices);
}

/// Words that are no flags, where the command takes none.
void check_words(Command& command, const Flags& flags) {
  const Options& options = command.options();
  if (options.files.empty() || !command.help().words.empty()) return;
  const std::string& word = options.files.front();
  const bool is_weights = command.needs_weights() && options.weights.empty();
  const bool is_data = flags.names().contains("data") && system::is_folder(word);
  fail(ExitCode::usage, "{} is one word too many (flags begin with --){}", word,
       is_weights ? "; weights go after --weights: --weights " + word
       : is_data  ? "; a data set goes after --data: --data " + word
                  : "");
}

/// What --out names must be a folder, or nothing yet.
void check_out(const std::string& out) {
  std::error_code ignored;
  const auto what = std::filesystem::status(out, ignored).type();
  using std::filesystem::file_type;
  if (out.empty() || what == file_type::directory || what == file_type::not_found ||
      what == file_type::none || what == file_type::unknown) {
    return;
  }
  fail(ExitCode::usage,
       "--out {}: is a file, and not a folder (several files are written there); name a new "
       "folder, or that of an earlier run",
       out);
}

/// What a result must not replace: a file of a run, and a photograph, where a flag's own file is
/// forgotten before `*.jpg`.
void check_result(const char* flag, const std::string& file) {
  if (training::is_of_run(file)) {
    fail(ExitCode::usage,
         "{} {}: a run keeps a file of its own under this name (the result would replace it); name "
         "another file",
         flag, printable(file));
  }
  const std::string name = small_letters(file);
  for (const std::string_view ending : {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif",
                                        ".tiff", ".heic", ".heif", ".avif"}) {
    if (!name.ends_with(ending)) continue;
    fail(ExitCode::usage,
         "{} {}: {} is the ending of an image (the result would replace it); name another file",
         flag, printable(file), ending);
  }
}

void check_results(const std::vector<std::pair<const char*, std::string>>& results) {
  for (auto one = results.begin(); one != results.end(); ++one) {
    check_result(one->first, one->second);
    for (auto other = one + 1; other != results.end(); ++other) {
      if (one->second.empty() || one->second != other->second) continue;
      fail(ExitCode::usage, "{} {} and {} {}: {} carries one of them", one->first, one->second,
           other->first, other->second, one->second == "-" ? "standard output" : "one file");
    }
  }
}

/// Each backend has its own precisions.
void check_precision(const Options& options, const CommandLineChoices& choices) {
  const auto able = choices.backends_with(options.precision), here = choices.backend_names();
  if (std::ranges::find(able, options.backend) != able.end()) return;
  const bool built = std::ranges::any_of(
      able, [&](const auto& name) { return std::ranges::find(here, name) != here.end(); });
  fail(ExitCode::usage, "--precision {} needs --backend {}{}", word_of(options.precision),
       join(able, " or "), built ? "" : ", in a build that has it");
}

/// Refuses what makes no sense together, whatever the machine: Error(usage). First what the command
/// itself checks, then what is the same in all.
void check_options(Command& command, const Flags& flags, const CommandLineChoices& choices) {
  Options& options = command.options();
  if (!options.task.trains) {  // what measures keeps no state
    options.safety.checkpoint_every = {};
    options.safety.save_best = false;
  }
  check_words(command, flags);
  command.check(choices);
  check_out(options.out);
  check_results(command.results());
  if (options.task.computes) check_precision(options, choices);
  if (options.balanced && !options.limit_train && !options.limit_val) {
    fail(ExitCode::usage,
         "--balanced changes nothing without --limit-train or --limit-val, which it shares out");
  }
}

}  // namespace

std::variant<std::unique_ptr<Command>, std::string> parse_command_line(
    const std::vector<std::string>& given_words, const Environment& environment,
    const CommandLineChoices& choices) {
  std::vector<std::string> words = given_words;
  const auto files = std::ranges::find(words, "--");
  if (std::find(words.begin(), files, "--version") != files) {
    return fmt::format("cputrain {} ({})\n", kVersion, choices.build);
  }
  if (const auto text = general_help(words, choices)) return *text;
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
  if (line.help || line.help_all) return command_help(*command, line.help_all, choices);
  if (!environment.empty()) check_variables(environment, all_flags(choices));
  const auto earlier = [&command](const Given& given) { return command->earlier_flags(given); };
  add_other_places(line, flags, environment, earlier, hint);
  options.files = line.files;
  options.from_environment = line.from_environment;
  options.from_config = line.from_config;
  options.given = flags.set(line.given);
  for (const auto& [name, value] : options.given) {
    if (!flags.takes_value(name)) options.switches.insert(name);
  }
  check_options(*command, flags, choices);
  return command;
}

}  // namespace cputrain::cli
