#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "comm/allreduce.h"
#include "comm/allreduce_choice.h"
#include "comm/communicator.h"
#include "model/graph.h"

/// How a training would sum gradients, without one: for who times or forecasts that.
namespace cputrain::training {

/// Gradients that are summed together.
struct GradientBucket {
  double bytes = 0;
  std::size_t last_node = 0;  ///< the one in the graph whose gradient is final last
};

/// The network's gradients in float32 by buckets of about so many bytes each, in the order in which
/// backward is done with them.
std::vector<GradientBucket> gradient_buckets(const model::Graph&, std::size_t bytes);

/// What --allreduce auto takes for one parameter of so many float32. Collective.
std::string automatic_allreduce(comm::Communicator&, std::size_t elements,
                                const comm::SumArrays& sum);

/// Values of --compress that change something, each as it is by default: "topk:0.01".
std::vector<std::string> compressions();

/// A sum over ranks of a gradient in float32, in place and collective, and how many times fewer
/// bytes than a plain one it sends. By a value of --compress, `none` included: of a dense layer
/// with 512 outputs, as the largest layer of the paper's network has them, and of the elements that
/// fill no row of it.
std::pair<std::function<void(const Array& gradient)>, double> compressed_sum(
    const std::string& compression, std::size_t elements, comm::Channel);

}  // namespace cputrain::training
