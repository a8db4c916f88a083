#include "backends/sim/simulated_cell.h"

#include <algorithm>
#include <simgrid/s4u.hpp>

#include "backends/mpi/mpi_communicator.h"
#include "backends/sim/core.h"
#include "backends/sim/no_pixels.h"
#include "backends/sim/sim_backend.h"
#include "backends/sim/sim_program.h"
#include "comm/communicator.h"
#include "core/casts.h"
#include "loop/loop.h"
#include "training/plan/compiled_training.h"
#include "training/plan/training_plan.h"

namespace cputrain::sim {
namespace {

/// A node of the platform, as a rank on it sees it.
placement::Machine simulated_machine(const simulation::Platform& platform) {
  placement::Machine machine;
  machine.host = simgrid::s4u::this_actor::get_host()->get_name();
  machine.cpu_model = platform.description;
  machine.sockets = machine.numa_nodes = 1;
  machine.cores = machine.allowed_cores = platform.cores;
  machine.hardware_threads = platform.hardware_threads();
  machine.memory_gb = platform.memory_gb;
  for (int cpu = 0; cpu < platform.hardware_threads(); ++cpu) {
    machine.allowed_cpus.push_back(cpu);
    machine.core_of_cpu.push_back(cpu % platform.cores);
    machine.numa_of_cpu.push_back(0);
  }
  return machine;
}

/// What comes is added up in the time of its bytes; no array is touched.
void add_simulated(const Array& dst, const Array&) {
  constexpr double kPasses = 3;  // two are read, one is written
  move_memory(kPasses * to_double(dst.bytes().size()));
}

/// No library, no helper thread: what a session needs to begin. `communicator` is set once there
/// is one.
training::Services simulated_services(const simulation::SimulationJob& job,
                                      comm::Communicator*& communicator) {
  training::Services services;
  services.backends = {kSimulated};
  services.make_communicator = [&](double) {
    // As without mpirun; SMPI's choice of algorithms has none for one rank.
    auto made =
        job.ranks > 1 ? mpi::make_mpi_communicator({}, {}, {}, add_simulated) : comm::make_solo();
    communicator = made.get();
    return made;
  };
  services.make_backend = [&](const training::BackendRequest&) {
    const comm::NodeMemory& node = communicator->node_memory();
    return std::make_unique<SimBackend>(job, communicator->rank(), node.local_rank(),
                                        node.local_size());
  };
  services.machine = [&job] { return simulated_machine(job.platform); };
  services.bind_this_thread = [](const std::vector<int>&) { return true; };
  services.simulated = true;
  return services;
}

std::vector<training::NodeCapacity> capacities_of(const training::Session& session,
                                                  const simulation::Platform& platform) {
  std::vector<training::NodeCapacity> capacities = training::measure_capacities(session);
  for (training::NodeCapacity& capacity : capacities) {
    capacity.available = to_size(platform.memory_gb * 1e9);
  }
  return capacities;
}

/// Keeps the record of the only epoch.
class LastEpoch final : public loop::Reporter {
 public:
  void epoch(const loop::EpochRecord& record) override { record_ = record; }
  const loop::EpochRecord& record() const { return record_; }

 private:
  loop::EpochRecord record_;
};

/// The steps of every repeat, with a program that is compiled.
simulation::SimulationResult run_repeats(const simulation::SimulationJob& job, loop::Parts& parts) {
  const auto& backend = dynamic_cast<const SimBackend&>(parts.backend);
  simulation::SimulationResult result;
  result.exchange = parts.exchange.describe();
  result.steps = std::min(to_size(job.steps), parts.plan.steps());
  for (std::size_t step = 0; step < result.steps; ++step) result.images += parts.plan.images(step);
  for (int repeat = 0; repeat < job.repeats; ++repeat) {
    const double stalled = backend.memory_stall();
    LastEpoch reporter;
    loop::Control control;
    const loop::LoopOptions options{{.epochs = 1, .steps = result.steps}, job.seed};
    loop::train(parts, {}, options, {}, reporter, control);
    const loop::EpochRecord& record = reporter.record();
    result.repeats.push_back(
        {record.seconds, record.budget,
         comm::mean_of_ranks(parts.communicator, backend.memory_stall() - stalled)});
  }
  return result;
}

}  // namespace

simulation::SimulationResult run_simulated_cell(const simulation::SimulationJob& job,
                                                const training::TrainingFlags& flags) {
  comm::Communicator* made = nullptr;
  const training::Services services = simulated_services(job, made);
  const training::TrainingSpec spec = training::choose_training(flags);
  const training::Session session = training::start_session(flags, services);
  std::vector<training::NodeCapacity> capacities = capacities_of(session, job.platform);
  const std::size_t cache = (job.images_per_epoch + job.validation_images) * spec.image.size();
  const training::TrainingPlan plan =
      training::plan_training(session, spec, job.classes, training::rank_memory(capacities, cache));
  const training::BatchPlans batches =
      training::cut_batches(session, plan, job.images_per_epoch, 0);
  const training::CompiledTraining compiled = training::compile_training(
      session, plan, batches.sizes(), {.capacities = std::move(capacities), .cache = cache});
  loop::Timeline timeline({});
  loop::Parts parts(
      training::program_of(session, compiled), plan.spec.optimizer,
      optim::LearningRate(plan.spec.learning_rate,
                          data::training_epochs(batches.train, plan.spec.epochs, flags.steps)),
      std::make_unique<NoPixels>(batches.train), batches.train, timeline);
  simulation::SimulationResult result = run_repeats(job, parts);
  result.images_at_once = plan.usual_images;
  result.sharded = dynamic_cast<const SimProgram&>(*compiled.program).sharded();
  return result;
}

}  // namespace cputrain::sim
