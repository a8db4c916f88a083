#include "cli/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/text.h"

namespace cputrain::cli {
namespace {

/// Words that are no flags, where the command takes none.
void check_words(Command& command, const Flags& flags) {
  const Options& options = command.options();
  if (options.files.empty() || !command.help().words.empty()) return;
  const std::string& word = options.files.front();
  std::error_code ignored;
  const bool is_weights = command.begins_with_weights() && options.weights.empty();
  const bool is_data =
      flags.names().contains("data") && std::filesystem::is_directory(word, ignored);
  fail(ExitCode::usage, fmt::format("{} is one word too many (flags begin with --){}", word,
                                    is_weights ? "; weights go after --weights: --weights " + word
                                    : is_data  ? "; a data set goes after --data: --data " + word
                                               : ""));
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
       fmt::format("--out {}: is a file, and not a folder (several files are written there); name "
                   "a new folder, or that of an earlier run",
                   out));
}

void check_results(const std::vector<std::pair<const char*, std::string>>& results) {
  for (auto one = results.begin(); one != results.end(); ++one) {
    for (auto other = one + 1; other != results.end(); ++other) {
      if (one->second.empty() || one->second != other->second) continue;
      fail(ExitCode::usage, fmt::format("{} {} and {} {}: {} carries one of them", one->first,
                                        one->second, other->first, other->second,
                                        one->second == "-" ? "standard output" : "one file"));
    }
  }
}

/// Each backend has its own precisions.
void check_precision(const Options& options, const CommandLineChoices& choices) {
  const auto able = choices.backends_with(options.precision), here = choices.backend_names();
  if (std::ranges::find(able, options.backend) != able.end()) return;
  const bool built = std::ranges::any_of(
      able, [&](const auto& name) { return std::ranges::find(here, name) != here.end(); });
  fail(ExitCode::usage,
       fmt::format("--precision {} needs --backend {}{}", word_of(options.precision),
                   join(able, " or "), built ? "" : ", in a build that has it"));
}

}  // namespace

void check_options(Command& command, const Flags& flags, const CommandLineChoices& choices) {
  Options& options = command.options();
  if (!options.task.trains) options.safety.checkpoint_every = {};  // what measures keeps no state
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

}  // namespace cputrain::cli
