#include "cli/manual/manual_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "core/version.h"

namespace cputrain::cli {
namespace {

constexpr const char* kSeeAlso = R"(.SH "SEE ALSO"
.BR mpirun (1),
.BR srun (1)
)";

/// Text that man(7) shows as it is: no letter of it begins a macro or an escape.
std::string shown(std::string text) {
  text = replaced(std::move(text), "\\", "\\e");
  text = replaced(std::move(text), "--", "\\-\\-");
  if (text.starts_with('.') || text.starts_with('\'')) text.insert(0, "\\&");
  return text;
}

/// The same for what people type, whose hyphens are to be copied.
std::string typed(const std::string& text) {
  std::string result;
  for (const char letter : text)
    result += letter == '-' ? "\\-" : letter == '\\' ? "\\e" : std::string(1, letter);
  if (result.starts_with('.') || result.starts_with('\'')) result.insert(0, "\\&");
  return result;
}

std::string bold(const std::string& text) { return "\\fB" + typed(text) + "\\fR"; }

/// Names of a value in italics: "N", "none|six".
std::string italic(const std::string& text) { return "\\fI" + typed(text) + "\\fR"; }

std::string section(const std::string& name) { return ".SH " + name + "\n"; }
std::string subsection(const std::string& name) { return ".SS " + shown(name) + "\n"; }
std::string item(const std::string& head, const std::string& body) {
  return ".TP\n" + head + "\n" + body + "\n";
}

/// The help text or the name of the value has them anyway.
bool names_choices(const FlagEntry& flag) {
  return std::ranges::all_of(flag.choices, [&](const std::string& word) {
    return (flag.help + "|" + flag.meta).find(word) != std::string::npos;
  });
}

std::string flag_item(const FlagEntry& flag) {
  std::string head = bold(flag.spelling());
  if (flag.takes_value) head += " " + italic(flag.meta);
  std::string body = shown(flag.help);
  if (!names_choices(flag)) body += "\n(one of " + shown(join(flag.choices, ", ")) + ")";
  if (!flag.standard.empty()) body += "\n(default: " + shown(flag.standard) + ")";
  if (!flag.aliases.empty()) {
    std::vector<std::string> words;
    for (const std::string& word : flag.aliases) words.push_back(bold("--" + word));
    body += "\nAlso " + join(words, ", ") + ".";
  }
  return item(head, body);
}

/// Flags with a heading for each group.
std::string by_group(const std::vector<FlagEntry>& flags) {
  std::string text, group;
  for (const FlagEntry& flag : flags) {
    if (flag.group != group) text += subsection(flag.group);
    group = flag.group;
    text += flag_item(flag);
  }
  return text;
}

bool same(const FlagEntry& a, const FlagEntry& b) {
  return a.name == b.name && a.meta == b.meta && a.help == b.help && a.standard == b.standard &&
         a.negatable == b.negatable;
}

/// What a command has beside those of train, and the names of those that it shares with train.
std::string flags_beside(const CommandEntry& command, const std::vector<FlagEntry>& of_train) {
  std::string text = subsection("Flags of " + command.full_name());
  std::vector<std::string> shared;
  std::string own;
  for (const FlagEntry& flag : command.flags) {
    const bool is_shared =
        std::ranges::any_of(of_train, [&](const FlagEntry& other) { return same(flag, other); });
    if (is_shared) {
      shared.push_back(bold(flag.spelling()));
    } else {
      own += flag_item(flag);
    }
  }
  if (!shared.empty()) text += "As in train: " + join(shared, ",\n") + ".\n";
  return text + own;
}

std::string synopsis(const std::vector<CommandEntry>& commands) {
  std::string text = section("SYNOPSIS");
  for (const CommandEntry& command : commands) {
    if (!command.topics.empty()) continue;
    if (&command != &commands.front()) text += ".br\n";
    text +=
        "\\fBcputrain\\fR " + typed(command.usage.substr(std::string("cputrain ").size())) + "\n";
  }
  return text + ".br\n\\fBmpirun \\-np\\fR \\fIN\\fR \\fBcputrain\\fR [COMMAND] [FLAGS]\n";
}

std::string list_of_commands(const std::vector<CommandEntry>& commands) {
  std::string text = section("COMMANDS");
  for (const CommandEntry& command : commands)
    text += item(bold(command.full_name()), shown(command.about));
  return text;
}

std::string examples(const std::vector<CommandEntry>& commands) {
  std::string text = section("EXAMPLES");
  for (const CommandEntry& command : commands) {
    if (!command.topics.empty()) continue;  // its topics have their own
    for (const auto& [line, does] : command.examples) text += item(bold(line), shown(does));
  }
  return text;
}

}  // namespace

std::string man_page(const std::vector<CommandEntry>& commands) {
  const auto train = std::ranges::find(commands, "train", &CommandEntry::name);
  const std::vector<FlagEntry> of_train =
      train == commands.end() ? std::vector<FlagEntry>{} : train->flags;
  std::string text = fmt::format(
      ".\\\" Written by cputrain_manual from the program's table of flags.\n"
      ".TH CPUTRAIN 1 \"\" \"cputrain {}\" \"User Commands\"\n"
      ".nh\n.ad l\n",  // no hyphens inside of flags and names of files
      kVersion);
  text += section("NAME") + "cputrain \\- train image classifiers on CPUs\n";
  text += synopsis(commands);
  text += kManDescription;
  text += list_of_commands(commands);
  text += section("FLAGS OF TRAIN") + by_group(of_train);
  text += section("FLAGS OF OTHER COMMANDS");
  text += "A flag that works as in train is only named here.\n";
  for (const CommandEntry& command : commands) {
    if (command.name != "train" && command.topics.empty()) text += flags_beside(command, of_train);
  }
  text += kManSurroundings;
  return text + examples(commands) + kSeeAlso;
}

}  // namespace cputrain::cli
