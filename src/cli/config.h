#pragma once

#include <set>
#include <string>
#include <vector>

#include "scaling/cells/cells.h"
#include "scaling/simulation/simulation_request.h"
#include "scaling/sweep/sweep_request.h"
#include "training/spec/training_flags.h"

namespace cputrain::cli {

/// What a person asked for: the flags of a training, which all that computes begins with, and those
/// of single commands.
struct Config : training::TrainingFlags {
  std::vector<std::string> files;          ///< of `predict` and `report`; data and file of `data`
  std::set<std::string> from_environment;  ///< flags that nobody typed for this command

  // output
  std::string json;
  bool dry_run = false;
  std::optional<int> repeat;
  int repeats() const { return repeat.value_or(5); }
  std::vector<int> micro_batches{1, 2, 4, 8, 11, 32};                  ///< of `bench kernels`
  std::size_t bytes = 52'871'940;                                      ///< of `bench allreduce`
  std::size_t images = 200;                                            ///< of `data synth`
  std::string format = "jpeg";                                         ///< of `data synth`
  std::string onnx, safetensors, model_file, export_layout = "keras";  ///< of `export`
  std::vector<Precision> precisions;                                   ///< of `selftest`
  bool precision_given = false;                                        ///< of `selftest`
  std::string end_with;                                                ///< of `train`
  std::string confusion;                                               ///< of `eval`
  std::string page;                                                    ///< of `eval`
  std::string run;           ///< of `eval`: that wrote the weights; empty for none
  bool data_of_run = false;  ///< of `eval`: it takes the data of that run
  std::string csv;           ///< of `predict`
  std::optional<int> top;    ///< of `predict`

  // tables
  sweep::SweepRequest sweep;
  std::string reference;  ///< of `sweep` and `report`
  cells::Prices prices;
  bool diff = false;  ///< of `report`
  simulation::SimulationRequest simulation;
};

}  // namespace cputrain::cli
