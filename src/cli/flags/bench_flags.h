#pragma once

#include "cli/command_line.h"
#include "cli/config.h"
#include "cli/flags/flags.h"

/// Flags of the measurements that are no training.
namespace cputrain::cli {

void add_allreduce_flags(Flags&, Config&, const CommandLineChoices&);
void add_input_bench_flags(Flags&, Config&, const CommandLineChoices&);
void add_kernel_bench_flags(Flags&, Config&, const CommandLineChoices&);
void add_selftest_flags(Flags&, Config&, const CommandLineChoices&);

}  // namespace cputrain::cli
