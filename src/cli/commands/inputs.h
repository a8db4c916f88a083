#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/flags/flags.h"
#include "data/pipeline.h"
#include "training/session/session.h"

/// What commands read: data sets, saved weights, names of classes and of files to write.
namespace cputrain::commands {

/// What topics of `data` have in common: rank 0 works on a data set, and nothing is computed.
class DataCommand : public cli::CommandWith<> {
 public:
  DataCommand() : CommandWith({.trains = false, .computes = false, .one_job = false}) {}

  void add_flags(cli::Flags&, const cli::CommandLineChoices&) override;
  void check(const cli::CommandLineChoices&) override;
  std::string why_idle(const std::string& flag) const override;

  ExitCode run(const training::Services&) override;

 protected:
  virtual ExitCode work(const training::Session&) = 0;
  virtual std::string needs() const { return "a data set"; }
  virtual std::string example() const { return "FOLDER"; }

  virtual std::size_t most_words() const { return 1; }
  virtual bool resizes() const { return false; }
  data::DataSource open(const training::Session&, bool to_check = false) const;
};

inline constexpr const char* kFlip = "flip";  ///< --tta
/// --tta: whether each image is looked at with its mirror image, too.
void add_test_time_flag(cli::Flags&, bool& flips);

/// Error(usage) for what does nothing without --weights.
void check_weights_named(const cli::Options&);

/// Where no data were named: a line that says what is taken instead, and what to type for other
/// data.
void ask_for_data(const training::Session&, const training::TrainingFlags&);

/// The options take the data that a run trained on; false where its files do not say. Error(data)
/// where they have moved since.
bool take_data_of_run(cli::Options&, const std::filesystem::path& run);

/// Error(usage) where the file's name has the ending of another format than `ending`, the one of
/// what the flag writes: a program that opens it would take it for that.
void check_ending(const std::string& flag, const std::string& file, const std::string& ending);

/// --class-names: "cat,dog", or a file with a name a line, where there is no comma. Error(usage)
/// where names are empty, doubled or not printable, Error(data) where the file cannot be read.
std::vector<std::string> parse_names_of_classes(const std::string& text);

}  // namespace cputrain::commands
