#pragma once

#include <cstddef>
#include <optional>

#include "model/graph.h"
#include "training/session/session.h"

/// How many images a rank computes at once.
namespace cputrain::training {

/// What was asked, else 8 on one thread and 14 per thread up to 32 on several, with several ranks
/// 16; twice the threads at least; 4 where ranks are many times more than hardware threads; 128 on
/// a device.
int micro_batch_size(const TrainingFlags&, const Session&);

/// The same for a training of this network. Every pass reads all weights of a dense layer and
/// writes their gradient. So on CPUs it is 128 images where such layers are large, with more than
/// 16 threads 8 per thread. A quarter of a rank's memory must do for them; without a figure it
/// does.
int training_micro_batch(const TrainingFlags&, const Session&, const model::Graph&,
                         std::optional<std::size_t> rank_memory);

/// About what a training pass keeps of one image in bytes: activations and their gradients, but for
/// those that operators change in place or pool at once.
std::size_t activation_bytes(const model::Graph&);

}  // namespace cputrain::training
