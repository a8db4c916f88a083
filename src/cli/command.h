#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/flags/choices.h"
#include "cli/flags/entries.h"
#include "cli/flags/flags.h"
#include "core/error.h"
#include "training/request/training_flags.h"
#include "training/session/services.h"

namespace cputrain::cli {

/// What --weights takes for weights of another program that are kept here (zoo/published.h).
inline constexpr const char* kImageNet = "imagenet";

/// What every command may be asked: the flags of a training are what all that computes begins with.
struct Options : training::TrainingFlags {
  std::vector<std::string> files;          ///< words that are no flags
  std::set<std::string> from_environment;  ///< flags that were not typed for this command
  std::set<std::string> from_config;       ///< flags of a --config file
  std::string json;

  /// Standard output is for a person, and not for a result alone.
  bool prints() const { return json != "-"; }
};

/// A command with what it was asked. It has flags, reads them into its options, checks them, and
/// runs.
class Command {
 public:
  virtual ~Command() = default;

  /// What help shows of it, without its usage and its flags.
  virtual CommandEntry help() const = 0;
  /// Each flag writes into its member of the options.
  virtual void add_flags(Flags&, const CommandLineChoices&) = 0;
  virtual Options& options() = 0;
  /// A file of flags that hold where none is given, which those that are choose; "" for none.
  virtual std::string earlier_flags(const std::map<std::string, std::string>&) const { return ""; }
  /// Error(usage) for what makes no sense together, whatever the machine.
  virtual void check(const CommandLineChoices&) {}
  /// Without weights it does nothing, so a word too many may be meant for --weights.
  virtual bool needs_weights() const { return false; }
  /// Flags that name a file for a result, with the file: empty for none, "-" for standard output.
  virtual std::vector<std::pair<const char*, std::string>> results() {
    return {{"--json", options().json}};
  }
  /// Results are files, and lines on standard output only tell of them: it is done whether these
  /// are read or not.
  virtual bool results_are_files() const { return false; }
  /// What --weights names becomes a file. Rank 0 `leads`, and alone refuses and reports.
  /// Trainings load weights there: Error(data) for what cannot be read, or that of read_keras.
  virtual void choose_files(bool leads, const training::Services&);
  /// The run that wrote them; empty where there is none.
  virtual void take_run_of_weights(const std::filesystem::path&) {}
  /// Why a flag that was given has no effect; empty where it has one.
  virtual std::string why_idle(const std::string&) const { return ""; }
  /// Bad news comes as Error.
  virtual ExitCode run(const training::Services&) = 0;
};

/// A command that is a few functions of its options: what Command says of each.
template <class Own = Options>
struct CommandParts {
  CommandEntry help;
  training::Task task{};
  std::function<void(Flags&, Own&, const CommandLineChoices&)> add_flags = [](auto&&...) {};
  std::function<void(Own&, const CommandLineChoices&)> check = [](auto&&...) {};
  /// `choose` does what other commands do.
  std::function<void(Own&, const std::function<void()>& choose)> choose_files =
      [](Own&, const auto& choose) { choose(); };
  std::function<std::string(const Own&, const std::string& flag)> why_idle = [](auto&&...) {
    return std::string();
  };
  std::function<ExitCode(const Own&, const training::Services&)> run;
  std::function<bool(const Own&)> results_are_files = [](auto&&...) { return false; };
  std::function<std::vector<std::pair<const char*, std::string>>(const Own&)> results =
      [](const Own& options) { return std::vector{std::pair("--json", options.json)}; };
  bool needs_weights = false;
  std::function<void(Own&, const std::filesystem::path&)> take_run_of_weights = [](auto&&...) {};
  std::function<std::string(const std::map<std::string, std::string>&)> earlier_flags =
      [](auto&&...) { return std::string(); };
};

template <class Own>
class CommandOf final : public Command {
 public:
  explicit CommandOf(CommandParts<Own> parts) : parts_(std::move(parts)) {
    options_.task = parts_.task;
  }
  Options& options() override { return options_; }
  CommandEntry help() const override { return parts_.help; }
  void add_flags(Flags& flags, const CommandLineChoices& choices) override {
    parts_.add_flags(flags, options_, choices);
  }
  void check(const CommandLineChoices& choices) override { parts_.check(options_, choices); }
  void choose_files(bool leads, const training::Services& services) override {
    parts_.choose_files(options_, [&] { Command::choose_files(leads, services); });
  }
  std::string why_idle(const std::string& flag) const override {
    return parts_.why_idle(options_, flag);
  }
  bool results_are_files() const override { return parts_.results_are_files(options_); }
  std::vector<std::pair<const char*, std::string>> results() override {
    return parts_.results(options_);
  }
  bool needs_weights() const override { return parts_.needs_weights; }
  void take_run_of_weights(const std::filesystem::path& run) override {
    parts_.take_run_of_weights(options_, run);
  }
  std::string earlier_flags(const std::map<std::string, std::string>& given) const override {
    return parts_.earlier_flags(given);
  }
  ExitCode run(const training::Services& services) override {
    return parts_.run(options_, services);
  }

 private:
  CommandParts<Own> parts_;
  Own options_;
};

template <class Own = Options>
std::unique_ptr<Command> make_command(CommandParts<Own> parts) {
  return std::make_unique<CommandOf<Own>>(std::move(parts));
}

/// Error(data), or that of read_keras, where --weights is given and names nothing that can be used.
/// For rank 0.
void check_named_weights(Options, const training::Services&);

/// A word that does nothing without a topic.
std::unique_ptr<Command> make_group(CommandEntry);

/// All that there are, in the order of the choices.
std::vector<std::unique_ptr<Command>> make_commands(const CommandLineChoices&);

}  // namespace cputrain::cli
