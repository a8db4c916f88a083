#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/command.h"
#include "compute/selftest/selftest.h"
#include "training/run/run_logs.h"

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

/// Prints what a compiled training would do, as text or with --json as an object: rank 0 only.
void print_dry_run(const training::Training&, const std::string& json_file);

}  // namespace cputrain::commands
