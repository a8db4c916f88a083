#include "cli/flags/given_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "cli/flags/foreign_words.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "optim/update_rule.h"
#include "system/bounded_file.h"

namespace cputrain::cli {
namespace {

constexpr std::string_view kPrefix = "CPUTRAIN_";

/// Read by scripts and tests, and passed on to the program that they start; and those that say
/// where the program finds its plugins (backends/cuda).
constexpr std::string_view kOfOthers[] = {
    "CPUTRAIN_CLEAN_ROOT",   "CPUTRAIN_DAY_PYTHON",       "CPUTRAIN_DAY_TOOLS",
    "CPUTRAIN_EMULATED",     "CPUTRAIN_EMULATED_COUNTS",  "CPUTRAIN_EMULATED_DEVICES",
    "CPUTRAIN_EMULATED_GPU", "CPUTRAIN_EMULATED_KERNELS", "CPUTRAIN_EMULATED_ORDER",
    "CPUTRAIN_FAULT",        "CPUTRAIN_METADATA_URL",     "CPUTRAIN_MIRROR",
    "CPUTRAIN_MPIEXEC",      "CPUTRAIN_MPIRUN",           "CPUTRAIN_PLUGINS",
    "CPUTRAIN_SIMULATES",    "CPUTRAIN_SKIP_SETUP",       "CPUTRAIN_STARTED_BY",
    "CPUTRAIN_TWO_HOSTS"};

std::string capitals(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

/// In every pod beside a service "cputrain" or "cputrain-x": CPUTRAIN_SERVICE_HOST,
/// CPUTRAIN_SERVICE_PORT, CPUTRAIN_PORT, CPUTRAIN_PORT_80_TCP_ADDR, CPUTRAIN_X_PORT, ...
bool is_of_kubernetes(const std::string& name) {
  const std::string words = name + "_";
  return words.find("_SERVICE_HOST_") != std::string::npos ||
         words.find("_SERVICE_PORT_") != std::string::npos ||
         words.find("_PORT_") != std::string::npos;
}

std::string hyphens(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string flag_of(const std::string& variable) {
  return "--" + hyphens(small_letters(variable.substr(kPrefix.size())));
}

/// The variable that stands for a flag: "batch-size" -> "CPUTRAIN_BATCH_SIZE".
std::string variable_of(const std::string& flag) { return std::string(kPrefix) + capitals(flag); }

/// A word that begins with -- and names a flag of the command: "--steps", "--batch_size=4".
bool is_flag(const std::string& word, const Flags& flags) {
  if (!word.starts_with("--")) return false;
  const std::string name = flags.resolved(hyphens(word.substr(2, word.find('=') - 2)));
  return flags.names().contains(name) || name == "help" || name == "help-all" || name == "config";
}

/// A switch that is turned off is not given. `where`: "CPUTRAIN_SHUFFLE: ", or nothing where it is
/// the command line.
void add(Given& given, const Flags& flags, const std::string& name, const std::string& value,
         const std::string& where) {
  constexpr std::string_view kYes[] = {"true", "1", "yes", "on"},
                             kNo[] = {"false", "0", "no", "off"};
  if (value.empty()) {
    fail(ExitCode::usage, "{}--{} needs a value (see --help)", where, name);
  }
  const std::string word = small_letters(value);
  if (flags.takes_value(name)) {
    given[name] = value;
  } else if (std::ranges::find(kYes, word) != std::end(kYes)) {
    given[name] = "true";
  } else if (std::ranges::find(kNo, word) == std::end(kNo)) {
    fail(ExitCode::usage, "{}--{} {}: must be true, yes, on, 1, false, no, off or 0", where, name,
         value);
  }
}

/// Two words for one flag with different values: which is meant cannot be told. The same word twice
/// is no mistake, since people add flags to lines that they have.
/// `before`: the last word and value of this flag, empty at first.
void check_spelling(std::pair<std::string, std::string>& before, const std::string& word,
                    const std::string& value) {
  const auto& [word_before, value_before] = before;
  if (!word_before.empty() && word_before != word && value_before != value) {
    fail(ExitCode::usage,
         "--{} {} and --{} {} are one flag with two values (which is meant cannot be told); leave "
         "one out",
         word_before, value_before, word, value);
  }
  before = {word, value};
}

[[noreturn]] void refuse_flag(const std::string& word, const std::string& name, const Flags& flags,
                              const Hint& hint) {
  const bool is_file = system::is_present(word);
  fail(ExitCode::usage, "{} is not a flag of this command{} (see --help)", word,
       is_file ? "; a file of this name stands behind --" : hint(name, flags));
}

/// The flag itself, or the one that excludes it.
bool is_decided(const Given& given, const Flags& flags, const std::string& name) {
  return given.contains(name) || given.contains(flags.rival(name));
}

void check_variables_of_one_flag(const Environment& environment, const std::string& name,
                                 const std::string& alias) {
  const auto one = value_of(environment, name), other = value_of(environment, alias);
  if (!one || !other || *one == *other) return;
  fail(ExitCode::usage,
       "{}={} and {}={} in the environment are one flag with two values (which is meant cannot be "
       "told); unset one",
       variable_of(name), *one, variable_of(alias), *other);
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
    fail(ExitCode::usage, "--config {}: {} must be a number, a text or a list of texts", path, key);
  }
  return join(parts, ",");
}

/// Returns the flags that were added, as add_config_file() does.
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

/// A flag's value, which is taken out of the file; empty where it has none. stall_timeout is
/// stall-timeout.
std::string take_setting(nlohmann::json& settings, const std::string& path,
                         const std::string& name) {
  for (auto entry = settings.begin(); entry != settings.end(); ++entry) {
    if (hyphens(entry.key()) != name) continue;
    std::string text = flag_text(*entry, path, entry.key());
    settings.erase(entry);
    return text;
  }
  return "";
}

/// Flags of older runs as they are called now, so that their config.json still repeats them.
void rename_old_flags(nlohmann::json& settings, const std::string& path) {
  constexpr std::pair<const char*, const char*> kStalls[] = {
      {"stall-warning", "warn"}, {"stall-timeout", "end"}, {"start-timeout", "start"}};
  std::vector<std::string> stalls;
  for (const auto& [old, name] : kStalls) {
    if (settings.contains("stall")) continue;
    const std::string time = take_setting(settings, path, old);
    if (!time.empty()) stalls.push_back(fmt::format("{}={}", name, time));
  }
  if (!stalls.empty()) settings["stall"] = join(stalls, ",");
  std::vector<std::string> figures;
  for (const std::string& name : optim::figure_names()) {
    const std::string value = take_setting(settings, path, name);
    if (!value.empty() && value != "false") figures.push_back(name + "=" + value);
  }
  if (!figures.empty()) {
    std::string rule = take_setting(settings, path, "optimizer");
    if (!rule.empty()) rule += rule.find(':') == std::string::npos ? ":" : ",";
    settings["optimizer"] = rule + join(figures, ",");
  }
  if (!settings.contains("timeline")) return;
  const std::string steps = take_setting(settings, path, "timeline-steps");
  if (steps.empty()) return;
  settings["timeline"] =
      fmt::format("{}:{}", flag_text(settings["timeline"], path, "timeline"), steps);
}

std::set<std::string> add_config_file(Given& given, const Flags& flags, const std::string& path,
                                      const Hint& hint) {
  if (path.empty()) return {};
  const Given before = given;
  nlohmann::json settings = read_settings(path);
  rename_old_flags(settings, path);
  std::set<std::string> named, added;  // image-size and image_size are one
  for (const auto& [key, value] : settings.items()) {
    const std::string name = flags.resolved(hyphens(key));
    if (!flags.names().contains(name)) {
      fail(ExitCode::usage, "--config {}: {} is not a flag of this command{}", path, key,
           hint(name, flags));
    }
    if (!named.insert(name).second) {
      fail(ExitCode::usage, "--config {}: {} says {} a second time; leave one out", path, key,
           name);
    }
    if (is_decided(before, flags, name)) continue;
    add(given, flags, name, flag_text(value, path, key), "--config " + path + ": ");
    added.insert(name);
  }
  return added;
}

void check_rivals(const Given& given, const Flags& flags) {
  for (const auto& [name, value] : given) {
    const std::string rival = flags.rival(name);
    if (given.contains(rival)) {
      fail(ExitCode::usage, "--{} and --{} exclude each other; leave one out", name, rival);
    }
  }
}

}  // namespace

Environment program_variables(const char* const* variables) {
  Environment ours;
  for (; *variables; ++variables) {
    const std::string_view variable = *variables;
    const std::size_t equals = std::min(variable.find('='), variable.size());
    const std::string name(variable.substr(0, equals));
    // The first of two of one name is the one that getenv() finds, too.
    if (capitals(name).starts_with(kPrefix) && equals < variable.size()) {
      ours.emplace(name, variable.substr(equals + 1));
    }
  }
  return ours;
}

std::optional<std::string> value_of(const Environment& environment, const std::string& flag) {
  const auto variable = environment.find(variable_of(flag));
  if (variable == environment.end()) return std::nullopt;
  if (variable->second.empty()) {
    fail(ExitCode::usage,
         "{} is empty in the environment (it needs a value, as --{} does); unset it",
         variable->first, flag);
  }
  return variable->second;
}

void check_variables(const Environment& environment, const std::set<std::string>& flags) {
  std::set<std::string> known;
  std::vector<std::string> words;
  for (const std::string& flag : flags) {
    known.insert(variable_of(flag));
    words.push_back("--" + flag);
  }
  for (const auto& [name, value] : environment) {
    if (known.contains(name)) continue;
    if (known.contains(capitals(name))) {
      fail(ExitCode::usage,
           "{}: variables are in capitals, with underscores (this one would be ignored); write {}",
           name, capitals(name));
    }
    const bool meant = name.starts_with(kPrefix) && !is_of_kubernetes(name) &&
                       std::ranges::find(kOfOthers, name) == std::end(kOfOthers);
    if (!meant) continue;
    const std::string flag = flag_of(name);
    const std::string foreign = hint_for_flag(flag.substr(2), flags, "cputrain");
    fail(ExitCode::usage,
         "the environment's {}: no command has a flag {} (it would be ignored){}; unset it, or see "
         "--help",
         name, flag, foreign.empty() ? did_you_mean(flag, words) : foreign);
  }
}

CommandLine read_line(const std::vector<std::string>& words, const Flags& flags, const Hint& hint) {
  CommandLine line;
  std::map<std::string, std::pair<std::string, std::string>> spellings;
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
    if (takes_value) check_spelling(spellings[name], typed, value);
    if (name == "config" && !value.empty()) {
      line.config = value;
    } else {
      add(line.given, flags, name, value, "");
    }
  }
  return line;
}

void add_other_places(CommandLine& line, const Flags& flags, const Environment& environment,
                      const std::function<std::string(const Given&)>& earlier, const Hint& hint) {
  line.from_environment = add_environment(line.given, flags, environment);
  line.from_config = add_config_file(line.given, flags, line.config, hint);
  add_config_file(line.given, flags, earlier(line.given), hint);
  check_rivals(line.given, flags);
}

nlohmann::json read_settings(const std::string& path) {
  constexpr std::uintmax_t kMostBytes = 1 << 20;
  const auto refuse = [&](const std::string& what) {
    fail(ExitCode::usage,
         "--config {}: {} (its flags would not count); give a file that holds a JSON object of "
         "flags and values, as config.json does",
         path, what);
  };
  std::string text;
  try {
    text = system::read_bounded(path, kMostBytes);
  } catch (const std::runtime_error& mistake) {
    refuse(mistake.what());
  }
  nlohmann::json settings;
  try {
    settings = parse_strict_json(text);
  } catch (const std::runtime_error& mistake) {
    refuse(std::string("is not valid JSON: ") + mistake.what());
  }
  if (!settings.is_object()) refuse("must hold a JSON object");
  return settings;
}

}  // namespace cputrain::cli
