#include "job/training_plans.h"

#include "system/process_limits.h"

namespace cputrain {
namespace {

/// Validation runs as many images at once on every rank as training does.
std::size_t evaluated_at_once(const Session& session, int micro_batch) {
  return static_cast<std::size_t>(micro_batch) *
         static_cast<std::size_t>(session.communicator->size());
}

std::size_t bytes_in_flight(const Session& session, const Services& services,
                            const TrainingSpec& spec, const DataSource& source,
                            const TrainingPlans& plans) {
  return services.data.batch_bytes(source, spec.image, plans.train, batch_request(session, spec));
}

/// Where `ulimit` lets this process have less than the machine: what is mapped later than now, and
/// the threads that start then. Error(usage).
void require_room(const Session& session, const TrainingSpec& spec, const TrainingMemory& memory) {
  constexpr std::size_t kHeap = std::size_t{64} << 20;  // of libraries, reports, messages
  const RankMemory& mine = memory.ranks[static_cast<std::size_t>(session.communicator->rank())];
  const std::size_t state = mine.elsewhere > 0 ? 0 : mine.state;
  MemoryToCome room{.own = state + mine.batches + kHeap, .shared = 0};
  const bool alone = session.communicator->size() == 1;
  (alone ? room.own : room.shared) += memory.shared.cache;
  require_threads(threads_beside(spec.flags, session), room);
}

}  // namespace

TrainingPlans::TrainingPlans(const Session& session, const TrainingSpec& spec, int micro_batch,
                             std::size_t train_images, std::size_t validation_images)
    : train(train_images, spec.batch, micro_batch, session.communicator->rank(),
            session.communicator->size(), spec.plan),
      validation(validation_images, evaluated_at_once(session, micro_batch), micro_batch,
                 session.communicator->rank(), session.communicator->size()) {
  check_steps(spec, train);
}

CompiledTraining compile_before_decoding(const Session& session, const Services& services,
                                         const TrainingSpec& spec, const Graph& graph,
                                         const DataSource& source, const TrainingPlans& plans) {
  std::vector<NodeRoom> rooms = measure_rooms(session);
  const std::size_t cache =
      services.data.cache_bytes(source, spec.image, spec.resize, least_available(rooms));
  CompiledTraining compiled =
      compile_training(session, services, spec, graph, plans.sizes(), std::move(rooms),
                       {cache, bytes_in_flight(session, services, spec, source, plans)});
  require_room(session, spec, compiled.memory);
  const auto folders = image_folders(session, cache);  // of what the exchange leaves of memory
  for (NodeRoom& room : compiled.memory.rooms) {
    room.image_folder = folders[static_cast<std::size_t>(room.ranks.front())];
  }
  return compiled;
}

CompiledTraining compile_after_decoding(const Session& session, const Services& services,
                                        const TrainingSpec& spec, const Graph& graph,
                                        const DataSource& source, const TrainingPlans& plans) {
  return compile_training(session, services, spec, graph, plans.sizes(), measure_rooms(session),
                          {0, bytes_in_flight(session, services, spec, source, plans)});
}

}  // namespace cputrain
