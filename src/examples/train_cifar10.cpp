// Trains a network on CIFAR-10's binary files through the library, alone or under mpirun:
//
//   train_cifar10 cifar-10-batches-bin src/zoo/samples/small-resnet.json weights.safetensors
//
// The program beside it, cputrain, reads the weights: `cputrain eval --weights
// weights.safetensors`.
#include <cstdio>

#include "composition/services.h"
#include "core/error.h"
#include "job/training_job.h"
#include "logging/reporters.h"
#include "system/tell.h"

using namespace cputrain;

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("train_cifar10 FOLDER MODEL WEIGHTS\n", stderr);
    return static_cast<int>(ExitCode::usage);
  }
  try {
    block_signals();  // before any thread starts; Ctrl-C then ends the training after its step
    SignalWatch signals;
    const Launcher launcher = launcher_environment();
    const Services services = make_services(launcher, signals);

    TrainingFlags flags;
    flags.data = std::string("cifar10:") + argv[1];
    flags.model = argv[2];
    flags.image_size = 32;
    flags.epochs = 2;
    const Session session = start_session(flags, services);

    TrainingJob job = open_training(session, choose_training(flags));
    job.compile();
    job.load();
    job.start();
    const auto console =
        console_reporter(stdout, session.leads() ? Verbosity::lines : Verbosity::silent);
    Timeline timeline(StepRange{});  // of nothing
    const auto armed = signals.arm();
    job.run(*console, timeline, [&signals] { return signals.stop_requested(); });
    if (session.leads()) job.save(argv[3]);
    session.communicator->barrier();  // nobody leaves before the weights are on disk
    return static_cast<int>(ExitCode::ok);
  } catch (const Error& error) {
    tell(error.what());
    return static_cast<int>(error.code());
  }
}
