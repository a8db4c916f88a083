#include "backends/sim/simulated_cell.h"

#include <algorithm>
#include <simgrid/s4u.hpp>

#include "backends/mpi/mpi_communicator.h"
#include "backends/sim/no_pixels.h"
#include "backends/sim/sim_backend.h"
#include "backends/sim/sim_program.h"
#include "cli/command_line.h"
#include "comm/solo.h"
#include "job/training_plans.h"
#include "logging/reporter.h"
#include "train/trainer.h"

namespace cputrain {
namespace {

/// A node of the platform, as a rank on it sees it.
Machine simulated_machine(const Platform& platform) {
  Machine machine;
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

/// No library, no helper thread: what a session needs to begin. `communicator` is set once there
/// is one.
Services simulated_services(const SimulationJob& job, Communicator*& communicator) {
  Services services;
  services.backends = {"simulated"};
  services.make_communicator = [&] {
    // As without mpirun; SMPI's choice of algorithms has none for one rank.
    auto made = job.ranks > 1 ? make_mpi_communicator() : make_solo();
    communicator = made.get();
    return made;
  };
  services.make_backend = [&](const BackendRequest&) {
    const NodeMemory& node = communicator->node_memory();
    return std::make_unique<SimBackend>(
        job, communicator->rank(), LocalRank{node.local_rank(), node.local_size(), job.threads});
  };
  services.machine = [&job] { return simulated_machine(job.platform); };
  services.bind_this_thread = [](const std::vector<int>&) { return true; };
  return services;
}

Config parse_arguments(const SimulationJob& job) {
  const auto parsed = parse_command_line(job.arguments, {}, {{{"simulated", {"float", "bf16"}}}});
  return std::get<Config>(parsed);
}

std::vector<NodeRoom> rooms_of(const Session& session, const Platform& platform) {
  std::vector<NodeRoom> rooms = measure_rooms(session);
  for (NodeRoom& room : rooms) {
    room.available = static_cast<std::size_t>(platform.memory_gb * 1e9);
  }
  return rooms;
}

/// Keeps the record of the only epoch.
class LastEpoch final : public Reporter {
 public:
  void begin_epoch(const EpochStart&) override {}
  void step(const StepRecord&) override {}
  void epoch(const EpochRecord& record) override { record_ = record; }
  void summary(const SummaryRecord&) override {}
  const EpochRecord& record() const { return record_; }

 private:
  EpochRecord record_;
};

double mean_over_ranks(Communicator& communicator, double value) {
  communicator.sum(Array::of<double>({&value, 1}));
  return value / communicator.size();
}

/// The steps of every repeat, with a program that is compiled.
SimulationResult run_repeats(const SimulationJob& job, const TrainingParts& parts) {
  const auto& backend = dynamic_cast<const SimBackend&>(parts.backend);
  SimulationResult result;
  result.exchange = parts.exchange.describe();
  result.steps = std::min(static_cast<std::size_t>(job.steps), parts.plan.steps());
  for (std::size_t step = 0; step < result.steps; ++step) result.images += parts.plan.images(step);
  for (int repeat = 0; repeat < job.repeats; ++repeat) {
    const double stalled = backend.memory_stall();
    LastEpoch reporter;
    train(parts, {}, {.epochs = 1, .steps = result.steps, .seed = job.seed}, reporter,
          [] { return false; });
    const EpochRecord& record = reporter.record();
    result.repeats.push_back(
        {record.seconds, record.budget,
         mean_over_ranks(parts.communicator, backend.memory_stall() - stalled)});
  }
  return result;
}

}  // namespace

SimulationResult run_simulated_cell(const SimulationJob& job) {
  const Config config = parse_arguments(job);
  Communicator* made = nullptr;
  const Services services = simulated_services(job, made);
  TrainingSpec spec = choose_training(config);
  const Session session = start_session(config, services);
  fit_to_ranks(spec, session.communicator->size());
  const Graph graph = build_graph(spec, job.classes);
  const int micro_batch = training_micro_batch(spec, session, graph);
  const TrainingPlans plans(session, spec, micro_batch, job.images_per_epoch, 0);
  const CompiledTraining compiled = compile_training(
      session, services, spec, graph, plans.sizes(), rooms_of(session, job.platform),
      {.cache = job.images_per_epoch * spec.image.size(), .batches = 0});
  Optimizer optimizer(spec.optimizer, *session.backend, *compiled.exchange,
                      compiled.program->layout());
  LearningRate learning_rate(spec.learning_rate, 1);
  NoPixels batches(plans.train);
  std::mutex weights_mutex;
  Timeline timeline({});
  SimulationResult result = run_repeats(
      job, {*session.backend, *compiled.program, *compiled.exchange, optimizer, learning_rate,
            *session.communicator, batches, plans.train, weights_mutex, timeline});
  result.work = {compiled.usual_images,
                 dynamic_cast<const SimProgram&>(*compiled.program).sharded()};
  return result;
}

}  // namespace cputrain
