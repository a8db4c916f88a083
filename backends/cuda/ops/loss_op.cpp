#include "backends/cuda/ops/loss_op.h"

#include <cassert>

#include "compute/tally.h"
#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

double smoothing_of(const model::Layer& layer) {
  if (const auto* sigmoid = std::get_if<model::SigmoidCrossEntropy>(&layer)) {
    return to_double(sigmoid->smoothing);
  }
  return to_double(std::get<model::SoftmaxCrossEntropy>(layer).smoothing);
}

}  // namespace

LossOp::LossOp(const Planning& planning, int op, const model::Graph::Node& node,
               const Activation& logits)
    : OnDevice(planning, node.name, "from logits, in double"),
      logits_(logits),
      classes_(to_int(logits.layout.shape.size())),
      smoothing_(smoothing_of(node.layer)),
      facts_(planning.facts),
      taken_{Taken(planning.stream), Taken(planning.stream)} {
  const auto images = to_size(planning.largest());
  const std::size_t numbers = images * to_size(classes_);
  probabilities_ = DeviceBlock(numbers * sizeof(float), "probabilities");
  slopes_ = DeviceBlock(numbers * sizeof(double), "slopes of the loss");
  losses_ = DeviceBlock(images * sizeof(ImageLoss), "losses");
  host_probabilities_ = PinnedBlock(numbers * sizeof(float));
  sums_ = DeviceBlock(sizeof(LossSums), "sums of losses");
  clear_async(sums_.data(), sizeof(LossSums), stream());
  planning.memory.use(logits.value, planning.forward_time(op));
  if (logits.wants_diff) planning.memory.use(logits.diff, planning.backward_time(op));
}

void LossOp::bind(const Bindings& bindings) {
  logits_data_ = bindings.value<void>(logits_);
  diff_ = bindings.diff<void>(logits_);
}

LossCall LossOp::call(const Execution& execution) const {
  return {.images = execution.images,
          .classes = classes_,
          .row = to_int(logits_.layout.size()),
          .smoothing = execution.pass.phase == compute::Phase::train ? smoothing_ : 0,
          .facts = facts_};
}

void LossOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    cross_entropy_forward(stream(), numbers(), call(execution), logits_data_,
                          probabilities_.as<float>(), slopes_.as<double>(),
                          losses_.as<ImageLoss>());
    add_losses(stream(), execution.images, losses_.as<const ImageLoss>(), sums_.as<LossSums>());
    if (!execution.pass.probabilities) return;
    copy_async(host_probabilities_.data(), probabilities_.data(), count(execution) * sizeof(float),
               stream());
  });
}

void LossOp::backward(const Execution& execution) {
  if (!diff_) return;
  timed(data_time_, [&] {
    cross_entropy_backward(stream(), numbers(), call(execution), slopes_.as<const double>(), diff_);
  });
}

compute::Pending<compute::Tally> LossOp::take_tally() {
  const std::size_t number = tallies_++;
  Taken& taken = taken_[number % taken_.size()];
  copy_async(taken.sums.data(), sums_.data(), sizeof(LossSums), stream());
  clear_async(sums_.data(), sizeof(LossSums), stream());
  taken.arrived.record(stream());
  return compute::Pending<compute::Tally>([this, number] { return fetch(number); });
}

compute::Tally LossOp::fetch(std::size_t number) {
  assert(tallies_ - number <= taken_.size() && "a tally that later ones have overwritten");
  Taken& taken = taken_[number % taken_.size()];
  taken.arrived.wait();
  const auto& sums = *taken.sums.as<const LossSums>();
  compute::Tally tally{.loss = sums.loss, .correct = sums.correct, .images = sums.images};
  if (compute::counts_top_five(to_size(classes_))) {
    tally.among_five = sums.among_five;
    tally.ranked = sums.images;
  }
  return tally;
}

std::span<const float> LossOp::probabilities(const Execution& last) const {
  if (!last.pass.probabilities && last.images != 0) {
    fail(ExitCode::internal,
         time_.name + ": its last pass was not told to send probabilities, so there are none");
  }
  return {host_probabilities_.as<const float>(), count(last)};
}

}  // namespace cputrain::cuda
