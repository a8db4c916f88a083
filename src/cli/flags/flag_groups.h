#pragma once

#include <string>
#include <string_view>

#include "cli/choices.h"
#include "cli/flags/flags.h"
#include "job/spec/training_flags.h"

/// Groups of flags that several commands have, with the words of `train`: a command to which one
/// means something else calls Flags::reword().
namespace cputrain::cli {

/// Model, size of images, classes.
void add_network_flags(Flags&, job::TrainingFlags&);
/// The same with dropout.
void add_model_flags(Flags&, job::TrainingFlags&);
/// The same of what trains, which may begin with saved weights.
void add_training_model_flags(Flags&, job::TrainingFlags&);
/// Of what does nothing without weights.
void add_weights_flag(Flags&, job::TrainingFlags&);

/// `resizes`: with --resize among them.
void add_data_flags(Flags&, job::TrainingFlags&, bool resizes);
void add_resize_flag(Flags&, job::TrainingFlags&);
void add_exif_flag(Flags&, job::TrainingFlags&);
void add_seed_flag(Flags&, job::TrainingFlags&, const std::string& help);
/// `standard`: what holds without the flag.
void add_augment_flag(Flags&, job::TrainingFlags&, const std::string& standard);

void add_batch_flags(Flags&, job::TrainingFlags&);
void add_micro_batch_flags(Flags&, job::TrainingFlags&);
void add_growth_flag(Flags&, job::TrainingFlags&);
void add_rule_flags(Flags&, job::TrainingFlags&);
void add_rate_flags(Flags&, job::TrainingFlags&);

/// Backend, precision, threads. `usual_precision`: what holds without --precision.
void add_processor_flags(Flags&, job::TrainingFlags&, const CommandLineChoices&,
                         std::string_view usual_precision = word_of(Precision::f32));
void add_precision_flag(Flags&, job::TrainingFlags&, const CommandLineChoices&,
                        std::string_view usual = word_of(Precision::f32));
void add_bind_flag(Flags&, job::TrainingFlags&);
void add_io_threads_flag(Flags&, job::TrainingFlags&);
/// Those that mean something to one backend alone.
void add_backend_options(Flags&, job::TrainingFlags&, const CommandLineChoices&);
/// How images get to the processor in steps.
void add_input_flags(Flags&, job::TrainingFlags&);
/// How gradients are summed over ranks.
void add_exchange_flags(Flags&, job::TrainingFlags&);

/// --timeline and --log-format.
void add_log_flags(Flags&, job::TrainingFlags&);
/// Checkpoints, resuming, NaN.
void add_safety_flags(Flags&, job::TrainingFlags&);
/// How long ranks wait for each other.
void add_stall_flags(Flags&, job::TrainingFlags&);
/// The machine of what computes with saved weights.
void add_inference_flags(Flags&, job::TrainingFlags&, const CommandLineChoices&);
void add_json_flag(Flags&, std::string& file);

}  // namespace cputrain::cli
