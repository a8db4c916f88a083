#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/flags/flags.h"
#include "data/pipeline.h"
#include "training/session/session.h"

/// What commands read: data sets, saved weights, names of classes and of files to write.
namespace cputrain::commands {

/// What rank 0 does, alone.
using Work = std::function<ExitCode(const cli::Options&, const training::Session&)>;

/// A command in which nothing is computed.
cli::CommandParts<> command_of_rank_0(cli::CommandEntry help, Work);

/// A topic of `data`: rank 0 works on a data set. `needs`: what its words are; `packs`: a data set
/// and a file, whose images are resized.
cli::CommandParts<> command_on_data(cli::CommandEntry help, Work, const char* needs = "a data set",
                                    bool packs = false);

data::DataSource open_data(const cli::Options&, const training::Session&, bool to_check = false);

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
