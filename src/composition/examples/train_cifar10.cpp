// Trains a network on CIFAR-10's binary files through the library, alone or under mpirun:
//
//   train_cifar10 cifar-10-batches-bin src/zoo/samples/small-resnet.json weights.safetensors
//
// `scripts/build release train_cifar10` makes it, as build/src/composition/examples/train_cifar10.
// The program cputrain reads the weights: `cputrain eval --weights weights.safetensors`. A program
// in another tree uses CMake's add_subdirectory() and links the target cputrain_composition.
#include <cstdio>
#include <exception>

#include "composition/services.h"
#include "core/error.h"
#include "logging/reporters.h"
#include "system/print.h"
#include "training/training.h"

using namespace cputrain;

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("train_cifar10 FOLDER MODEL WEIGHTS\n", stderr);
    return static_cast<int>(ExitCode::usage);
  }
  system::block_signals();  // before any thread starts; Ctrl-C then ends the training after its
                            // step
  const placement::Launcher launcher = placement::launcher_environment();
  try {
    system::SignalWatch signals;
    const training::Services services = composition::make_services(launcher, signals);

    training::TrainingFlags flags;
    flags.data = std::string("cifar10:") + argv[1];
    flags.model = argv[2];
    flags.image_size = 32;
    flags.epochs = 2;
    flags.safety.checkpoint_every = {};  // cputrain takes them (training/run/run_control.h)
    const training::Session session = training::start_session(flags, services);

    training::Training training =
        training::open_training(session, training::choose_training(flags));
    training.compile();
    training.load();
    training.start();
    const auto console = logging::console_reporter(
        stdout, stderr, session.leads() ? logging::Verbosity::lines : logging::Verbosity::silent);
    const auto armed = signals.arm();
    training.run(*console, [&signals] { return signals.stop_requested(); });
    if (session.leads()) training.save(argv[3]);
    session.communicator->barrier();  // no rank leaves before the weights are on disk
    return static_cast<int>(ExitCode::ok);
  } catch (const std::exception& error) {
    if (launcher.rank == 0) system::tell(error.what());  // most mistakes meet all ranks alike
    const auto* known = dynamic_cast<const Error*>(&error);
    return static_cast<int>(known ? known->code() : ExitCode::internal);
  }
}
