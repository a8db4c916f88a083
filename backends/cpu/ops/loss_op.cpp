#include "backends/cpu/ops/loss_op.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "compute/tally.h"
#include "core/casts.h"

namespace cputrain::cpu {

LossOp::LossOp(const Planning& planning, int op, const model::Graph::Node& node,
               const Activation& logits)
    : compute::LossOp(node.name, "from logits, in double"),
      logits_(logits),
      classes_(logits.layout.shape.size()),
      sigmoid_(std::holds_alternative<model::SigmoidCrossEntropy>(node.layer)),
      smoothing_(sigmoid_ ? std::get<model::SigmoidCrossEntropy>(node.layer).smoothing
                          : std::get<model::SoftmaxCrossEntropy>(node.layer).smoothing),
      probabilities_(classes_ * to_size(planning.largest())),
      slopes_(probabilities_.size()) {
  planning.memory.use(logits.value, planning.forward_time(op));
  if (logits.wants_diff) planning.memory.use(logits.diff, planning.backward_time(op));
}

void LossOp::bind(const Bindings& bindings) {
  logits_data_ = bindings.value(logits_);
  diff_ = bindings.diff(logits_);
}

LossOp::Target LossOp::target_of(const Execution& execution, std::size_t image, double smoothing) {
  const std::int32_t label = execution.labels[image];
  if (!execution.mixed) return {label, label, 1, 0, smoothing};
  const compute::MixedLabel& mixed = execution.mixed[image];
  return {label, mixed.other, to_double(mixed.own), to_double(mixed.others), smoothing};
}

void LossOp::sigmoid(std::size_t image, const Target& t, compute::Tally& tally) {
  const double z = logit(image, 0);
  const double target = t.of(1) * (1 - t.smoothing) + t.total() * t.smoothing / 2;
  const double tail = std::exp(-std::abs(z));
  const double probability = z >= 0 ? 1 / (1 + tail) : tail / (1 + tail);
  tally.loss += t.total() * (std::max(z, 0.0) + std::log1p(tail)) - z * target;
  probabilities_[image] = static_cast<float>(probability);
  compute::count_prediction(row(image), to_size(t.label), tally);
  slopes_[image] = t.total() * probability - target;
}

void LossOp::softmax(std::size_t image, const Target& t, compute::Tally& tally) {
  std::size_t best = 0;
  for (std::size_t c = 1; c < classes_; ++c) {
    if (logit(image, c) > logit(image, best)) best = c;
  }
  const double top = logit(image, best);
  double sum = 0, mean = 0;
  for (std::size_t c = 0; c < classes_; ++c) {
    sum += std::exp(logit(image, c) - top);
    mean += logit(image, c) / to_double(classes_);
  }
  const auto truth = to_size(t.label), other = to_size(t.other);
  assert(truth < classes_ && other < classes_);
  double labels = t.own * logit(image, truth);
  if (t.others != 0) labels += t.others * logit(image, other);
  const double total = t.total();
  tally.loss +=
      total * (std::log(sum) + top) - (1 - t.smoothing) * labels - total * t.smoothing * mean;
  const double everywhere = total * t.smoothing / to_double(classes_);
  for (std::size_t c = 0; c < classes_; ++c) {
    const double probability = std::exp(logit(image, c) - top) / sum;
    probabilities_[image * classes_ + c] = static_cast<float>(probability);
    slopes_[image * classes_ + c] =
        total * probability - ((1 - t.smoothing) * t.of(c) + everywhere);
  }
  compute::count_prediction(row(image), truth, tally);
}

void LossOp::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  compute::Tally tally;
  const auto images = to_size(execution.images);
  const double smoothing = execution.pass.phase == compute::Phase::train ? smoothing_ : 0;
  for (std::size_t image = 0; image < images; ++image) {
    const Target target = target_of(execution, image, smoothing);
    sigmoid_ ? sigmoid(image, target, tally) : softmax(image, target, tally);
  }
  tally_ += tally;
}

void LossOp::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!diff_) return;
  const compute::SampleLayout& layout = logits_.layout;
  const auto images = to_size(execution.images);
  std::fill_n(diff_, layout.size() * images, 0.0f);
  for (std::size_t image = 0; image < images; ++image) {
    for (std::size_t c = 0; c < classes_; ++c) {
      diff_[image * layout.size() + layout.position(c)] =
          static_cast<float>(execution.loss_scale * slopes_[image * classes_ + c]);
    }
  }
}

}  // namespace cputrain::cpu
