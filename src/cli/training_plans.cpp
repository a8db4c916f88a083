#include "cli/training_plans.h"

#include "core/process_limits.h"

namespace cputrain {
namespace {

/// Validation runs as many images at once on every rank as training does.
std::size_t evaluated_at_once(const Session& session, int micro_batch) {
  return static_cast<std::size_t>(micro_batch) *
         static_cast<std::size_t>(session.communicator->size());
}

std::size_t bytes_in_flight(const Session& session, const Services& services,
                            const TrainingChoices& choices, const DataSource& source,
                            const TrainingPlans& plans) {
  return services.data.batch_bytes(source, choices.image, plans.train,
                                   batch_request(session, choices));
}

/// Where `ulimit` lets this process have less than the machine: what is mapped later than now, and
/// the threads that start then. Error(usage).
void require_room(const Session& session, const Config& config, const TrainingMemory& memory) {
  constexpr std::size_t kHeap = std::size_t{64} << 20;  // of libraries, reports, messages
  const RankMemory& mine = memory.ranks[static_cast<std::size_t>(session.communicator->rank())];
  MemoryToCome room{.own = mine.state + mine.batches + kHeap, .shared = 0};
  const bool alone = session.communicator->size() == 1;
  (alone ? room.own : room.shared) += memory.shared.cache;
  require_threads(threads_beside(config, session), room);
}

}  // namespace

TrainingPlans::TrainingPlans(const Session& session, const Config& config,
                             const TrainingChoices& choices, int micro_batch,
                             std::size_t train_images, std::size_t validation_images)
    : train(train_images, choices.batch, micro_batch, session.communicator->rank(),
            session.communicator->size(), choices.plan),
      validation(validation_images, evaluated_at_once(session, micro_batch), micro_batch,
                 session.communicator->rank(), session.communicator->size()) {
  check_steps(config, choices, train);
}

CompiledTraining compile_before_decoding(const Session& session, const Services& services,
                                         const Config& config, const TrainingChoices& choices,
                                         const Graph& graph, const DataSource& source,
                                         const TrainingPlans& plans) {
  std::vector<NodeRoom> rooms = measure_rooms(session);
  const std::size_t cache =
      services.data.cache_bytes(source, choices.image, choices.resize, least_available(rooms));
  CompiledTraining compiled =
      compile_training(session, services, config, choices, graph, plans.sizes(), std::move(rooms),
                       {cache, bytes_in_flight(session, services, choices, source, plans)});
  require_room(session, config, compiled.memory);
  const auto folders = image_folders(session, cache);  // of what the exchange leaves of memory
  for (NodeRoom& room : compiled.memory.rooms) {
    room.image_folder = folders[static_cast<std::size_t>(room.ranks.front())];
  }
  return compiled;
}

CompiledTraining compile_after_decoding(const Session& session, const Services& services,
                                        const Config& config, const TrainingChoices& choices,
                                        const Graph& graph, const DataSource& source,
                                        const TrainingPlans& plans) {
  return compile_training(session, services, config, choices, graph, plans.sizes(),
                          measure_rooms(session),
                          {0, bytes_in_flight(session, services, choices, source, plans)});
}

}  // namespace cputrain
