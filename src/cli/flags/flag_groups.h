#pragma once

#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/config.h"
#include "cli/flags/flags.h"
#include "cli/flags/sweep_flags.h"

/// Groups of flags that several commands have (command_flags.cpp).
namespace cputrain::cli {

void add_model_flags(Flags&, Config&);
void add_exif_flag(Flags&, Config&);
/// Where weights come from, and which of them stay.
void add_weights_flags(Flags&, Config&);
void add_data_flags(Flags&, Config&);
/// `usual_precision`: what holds without --precision.
void add_processor_flags(Flags&, Config&, const CommandLineChoices&,
                         std::string_view usual_precision = word_of(Precision::f32));
/// Those that mean something to one backend alone.
void add_backend_options(Flags&, Config&, const CommandLineChoices&);
/// How gradients are summed over ranks.
void add_exchange_flags(Flags&, Config&);
/// Checkpoints, resuming, NaN.
void add_safety_flags(Flags&, Config&);
/// How long ranks wait for each other.
void add_stall_flags(Flags&, Config&);
/// What a command writes, and where.
void add_output_flags(Flags&, Config&);

}  // namespace cputrain::cli
