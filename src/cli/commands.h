#pragma once

#include <memory>
#include <vector>

#include "cli/command.h"

namespace cputrain::cli {

/// Each is at the end of its command's file.
using MakeCommand = std::unique_ptr<Command>();
MakeCommand make_train, make_eval, make_predict, make_export, make_data, make_data_check,
    make_data_info, make_data_pack, make_data_synth, make_bench, make_bench_step,
    make_bench_allreduce, make_bench_input, make_bench_kernels, make_sweep, make_simulate,
    make_report, make_info, make_selftest;

/// The list of commands, in the order of the overview. The first is the default; topics stand
/// behind the word that they need.
inline constexpr MakeCommand* kCommands[] = {
    make_train,       make_eval,          make_predict,    make_export,
    make_data,        make_data_check,    make_data_info,  make_data_pack,
    make_data_synth,  make_bench,         make_bench_step, make_bench_allreduce,
    make_bench_input, make_bench_kernels, make_sweep,      make_simulate,
    make_report,      make_info,          make_selftest};

std::vector<std::unique_ptr<Command>> make_commands();

/// A word that does nothing without a topic.
std::unique_ptr<Command> make_group(CommandEntry);

}  // namespace cputrain::cli
