#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "cli/flags/choices.h"
#include "cli/flags/flags.h"
#include "training/request/training_flags.h"

/// Flags of trainings (training/request/training_rows.h) that several commands have, with the words
/// of `train`: a command to which one means something else calls Flags::reword().
namespace cputrain::cli {

/// One flag, with its own help or with another one.
void add_row(Flags&, training::TrainingFlags&, std::string_view name, const std::string& help = "");
/// Those of one part.
void add_part(Flags&, training::TrainingFlags&, std::string_view part);

/// Model, size of images, classes.
void add_network_flags(Flags&, training::TrainingFlags&);
/// The same with dropout.
void add_model_flags(Flags&, training::TrainingFlags&);
/// The same of what trains, which may begin with saved weights.
void add_training_model_flags(Flags&, training::TrainingFlags&);
/// Flags that do nothing without weights.
void add_weights_flag(Flags&, training::TrainingFlags&);
/// Error(usage) for --partial without --weights.
void check_partial(const training::TrainingFlags&);
/// `resizes`: with --resize and --fit among them.
void add_data_flags(Flags&, training::TrainingFlags&, bool resizes);
/// Model, data, these parts of the training, augmentation, update rule, learning rate.
void add_learning_flags(Flags&, training::TrainingFlags&,
                        std::initializer_list<std::string_view> parts);
/// How long ranks wait for each other.
void add_stall_flags(Flags&, training::TrainingFlags&);

/// `usual`: what holds without --precision.
void add_precision_flag(Flags&, training::TrainingFlags&, const CommandLineChoices&,
                        std::string_view usual = word_of(Precision::f32));
/// Backend, precision, threads.
void add_processor_flags(Flags&, training::TrainingFlags&, const CommandLineChoices&,
                         std::string_view usual_precision = word_of(Precision::f32));
/// Those that mean something to one backend alone.
void add_backend_options(Flags&, training::TrainingFlags&, const CommandLineChoices&);
/// Processor, threads for images, options of backends.
void add_machine_flags(Flags&, training::TrainingFlags&, const CommandLineChoices&);
/// The same of what computes with saved weights.
void add_inference_flags(Flags&, training::TrainingFlags&, const CommandLineChoices&);
void add_json_flag(Flags&, std::string& file);

}  // namespace cputrain::cli
