#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/devices.h"
#include "core/precision.h"
#include "data/pipeline.h"
#include "loop/parts.h"
#include "model/exported_model.h"
#include "system/clock.h"
#include "system/files.h"
#include "system/placement/launcher.h"
#include "system/placement/placement.h"
#include "system/signals.h"
#include "weights/keras_file.h"

namespace cputrain::training {

struct BackendRequest {
  std::string name;  ///< "cpu", "reference", "cuda"
  Precision precision = Precision::f32;
  int threads = 1;
  bool reproducible = false;        ///< nothing is chosen by measuring: always the same bits
  bool brief = false;               ///< --steps has too few for trials on a device to pay
  std::set<std::string> options{};  ///< words of BackendChoice::options
  int device = 0;                   ///< for a backend of devices: compute::Device::index
  int ranks_on_device = 1;          ///< that share it
};

/// A backend that --backend may name.
struct BackendChoice {
  std::string name;
  std::vector<Precision> precisions;  ///< that --precision may ask it for
  bool built = true;                  ///< this build has it
  std::string lack{};                 ///< the refusal where it is asked for all the same
  /// Flags without a value that mean something to it alone, with their help.
  std::vector<std::pair<std::string, std::string>> options{};
};

/// What the build has behind the contracts (composition/services.h makes it). Jobs and commands
/// know these functions and no concrete type.
struct Services {
  std::vector<std::string> backends;  ///< names that this build has, the default first
  std::function<std::unique_ptr<compute::Backend>(const BackendRequest&)> make_backend;
  /// Those of a backend that computes on devices; nothing for one that computes on the CPUs, and
  /// where this is empty. Where there are none the list has the reason; it does not fail.
  std::function<std::optional<compute::DeviceList>(const std::string& backend)> devices{};
  /// Adds what they are at, and how they sum; takes nothing of them. May be empty.
  std::function<void(compute::DeviceList&)> survey{};
  /// Starts communication; called once, after the command line proved right. Where the ranks have
  /// not met after so many seconds, prints which ranks are missing and ends the process; 0: waits
  /// for ever.
  std::function<std::unique_ptr<comm::Communicator>(double start_timeout)> make_communicator;
  data::DataPipeline data;
  /// Writes an ONNX file; Error(usage) in a build without it.
  std::function<void(const model::ExportedModel&, system::OutputFile&)> write_onnx;
  /// Weights of Keras; Error(usage) in a build without HDF5.
  weights::ReadKeras read_keras{};
  /// 64 hexadecimal digits of a file. Error(data).
  std::function<std::string(const std::filesystem::path&)> sha256{};
  std::function<placement::Machine()> machine;
  /// Binds the calling thread, and those it starts later, to these hardware threads; false where
  /// the system refuses.
  std::function<bool(const std::vector<int>& cpus)> bind_this_thread;
  bool mpi = false;                        ///< this build has it
  std::string mpi_version;                 ///< "Open MPI 4.1.4", or "no MPI"
  placement::Launcher launcher;            ///< what started this process
  std::vector<std::string> libraries;      ///< with versions, for `info` and environment.json
  system::Stopwatch since_start{};         ///< the process's start, as far as it is known
  system::SignalWatch* signals = nullptr;  ///< borrowed; null in the simulator
  bool simulated = false;                  ///< time is not this machine's, and no thread is started
  std::string program_build{};             ///< "commit abc1234, Release"; empty in other programs
  loop::FaultPoint fault_point{};          ///< of tests; empty elsewhere
};

}  // namespace cputrain::training
