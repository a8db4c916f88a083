#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compute/parameters/parameters.h"
#include "loop/parts.h"

namespace cputrain::loop {

/// Collective: Error(disagree) on all ranks where what a rank has learnt is not the same bits on
/// all of them. The message names the step and the ranks that differ from the majority, or all
/// groups where there is none. `hosts`: by rank, as far as they are known.
void check_replicas(const RankProgram&, std::uint64_t step, const std::vector<std::string>& hosts);

/// Which ranks differ, by the hashes of all ranks: "rank 2 (host h) differs from the other 3";
/// empty where all are the same.
std::string odd_ranks(std::span<const std::uint64_t> hashes, const std::vector<std::string>& hosts);

/// Why an image of the micro-batches so far was not the data's on some rank, on all ranks alike;
/// empty where all were. Settles images that were being decoded and have all come. Collective, and
/// free where images cannot change.
std::string lost_input(data::BatchSource&, comm::Communicator&);

/// Collective: whether no value of any rank is NaN or infinite, in arrays of this memory.
bool all_numbers(compute::Memory&, const Array&, comm::Communicator&);

/// The weights of a rank, and how and where they lie.
struct WeightsArena {
  const compute::ParameterLayout& layout;
  Array values;
  compute::Memory& memory;
};

/// Makes moving statistics (batch normalization's) the same on every rank: their mean, weighted by
/// the images that each rank trained on since the last call. Collective. With no images at all, or
/// none of such parameters, nothing changes, and the answer is false.
/// `weights_mutex` is held while the weights change.
bool average_statistics(const WeightsArena&, double own_images, comm::Communicator&,
                        std::mutex& weights_mutex);

/// Calls work() while the averages of the weights (OptimizerOptions::ema) lie in the place of the
/// weights, on all ranks, and puts both back. Meanwhile Parts::aside has the weights on rank 0.
/// Collective, between two steps; work() does not throw on some ranks alone.
void with_averages(Parts&, const std::function<void()>& work);

}  // namespace cputrain::loop
