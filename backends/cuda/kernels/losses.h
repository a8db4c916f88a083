#pragma once

#include <cstdint>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/pass_facts.h"

/// Activation and cross-entropy from logits, in double: few numbers, and the loss is what runs are
/// judged by. Logits and their gradients are stored as `Numbers` say.
namespace cputrain::cuda {

struct LossCall {
  int images = 0;
  int classes = 1;       ///< columns; 1 is the sigmoid, whose column is the probability of class 1
  int row = 1;           ///< numbers from one image's logits to the next: the map's padded channels
  double smoothing = 0;  ///< label smoothing: target * (1 - smoothing) + smoothing / classes
  const PassFacts* facts = nullptr;  ///< on the device: labels, and backward the scale of the loss
};

/// What a row of logits gives for its image.
struct ImageLoss {
  double loss;
  std::int32_t correct;     ///< compute::predicted_class() of the row is the label
  std::int32_t among_five;  ///< compute::among_best() of the row; 0 with a sigmoid
};

/// Sums of images, in double; 1 for an image is what counts.
struct LossSums {
  double loss = 0, correct = 0, among_five = 0, images = 0;
};

/// probabilities: images x classes. slopes: d loss / d logit, images x classes, of the mean over
/// nothing: one image each.
void cross_entropy_forward(Stream, Numbers, const LossCall&, const void* logits,
                           float* probabilities, double* slopes, ImageLoss* losses);
/// sums += the sum of these images, which is formed in their order.
void add_losses(Stream, int images, const ImageLoss* losses, LossSums* sums);
/// diff_logits (rows of `row` numbers, padding zero) = loss_scale * slopes.
void cross_entropy_backward(Stream, Numbers, const LossCall&, const double* slopes,
                            void* diff_logits);

}  // namespace cputrain::cuda
