#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

#include "backends/cuda/kernels/losses.h"
#include "backends/cuda/selftest/guarded_array.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "backends/cuda/selftest/plain_losses.h"
#include "compute/selftest_case.h"
#include "compute/tally.h"

namespace cputrain::cuda {
namespace {

using compute::CaseNumbers;
using compute::CasePlan;
using compute::RunOutputs;

constexpr double kScale = 1.0 / 3;

/// Images with their logits, a column for each class but one of two.
struct Logits {
  Numbers format;
  std::size_t classes;
  double smoothing;
  std::vector<std::int32_t> labels;
  std::vector<compute::MixedLabel> mixed;  ///< one an image, or none
  std::vector<float> values;

  std::size_t images() const { return labels.size(); }
  compute::MixedLabel mixed_of(std::size_t image) const {
    return mixed.empty() ? compute::MixedLabel{} : mixed[image];
  }
  LossCall call() const {
    const int columns = static_cast<int>(classes);
    return {static_cast<int>(images()), columns, padded_channels(columns), smoothing, nullptr};
  }
};

/// All images, one behind the other.
struct Loss {
  std::vector<double> probabilities, slopes, losses, correct, among_five, diff;
};

Loss loss_of(const Logits& l) {
  Loss made;
  for (std::size_t image = 0; image < l.images(); ++image) {
    const auto row = std::span<const float>(l.values).subspan(image * l.classes, l.classes);
    const PlainLoss plain = plain_loss(row, l.labels[image], l.smoothing, l.mixed_of(image));
    const std::vector<float> rounded(plain.probabilities.begin(), plain.probabilities.end());
    for (std::size_t c = 0; c < l.classes; ++c) {
      made.probabilities.push_back(static_cast<double>(plain.probabilities[c]));
      made.slopes.push_back(static_cast<double>(plain.slopes[c]));
      made.diff.push_back(kScale * made.slopes.back());
    }
    made.losses.push_back(static_cast<double>(plain.loss));
    made.correct.push_back(compute::predicted_class(std::span<const float>(rounded)) ==
                           static_cast<std::size_t>(l.labels[image]));
    made.among_five.push_back(l.classes > 1 &&
                              compute::among_best(std::span<const float>(rounded),
                                                  static_cast<std::size_t>(l.labels[image]),
                                                  compute::kFive));
  }
  return made;
}

/// The two cases' limits: for numbers that are doubles, and for those that are rounded to floats.
enum class Part { doubles, floats };

/// Numbers between rows are no part of them: here they are NaN.
RunOutputs run_loss(const Logits& l, Part part, int run, const OwnedStream& stream) {
  LossCall call = l.call();
  const auto row = static_cast<std::size_t>(call.row);
  const GuardedArray<std::int32_t> labels("labels", stream, l.labels);
  const GuardedArray<compute::MixedLabel> mixed("mixed labels", stream, l.mixed);
  const GuardedMap logits("logits", stream, l.format,
                          with_padding(l.values, call.classes, poison_of(0)));
  const GuardedArray<float> probabilities("probabilities", stream,
                                          std::vector<float>(l.values.size(), poison_of(run)));
  const GuardedArray<double> slopes("slopes", stream,
                                    std::vector<double>(l.values.size(), poison_of(run)));
  const GuardedArray<ImageLoss> losses(
      "losses", stream, std::vector<ImageLoss>(l.images(), {poison_of(run), -1, -1}));
  const GuardedMap diff("diff_logits", stream, l.format,
                        std::vector<float>(l.images() * row, poison_of(run)));
  const GuardedArray<PassFacts> facts("facts", stream,
                                      {{.labels = labels.data(),
                                        .mixed = l.mixed.empty() ? nullptr : mixed.data(),
                                        .loss_scale = kScale}});
  call.facts = facts.data();
  cross_entropy_forward(stream.get(), l.format, call, logits.data(), probabilities.data(),
                        slopes.data(), losses.data());
  cross_entropy_backward(stream.get(), l.format, call, slopes.data(), diff.data());
  RunOutputs outputs;
  std::vector<double> loss, correct, among_five;
  for (const ImageLoss& image : losses.read(outputs)) {
    loss.push_back(image.loss);
    correct.push_back(image.correct);
    among_five.push_back(image.among_five);
  }
  if (part == Part::doubles) {
    outputs.add("losses", loss);
    outputs.add("correct", correct);
    outputs.add("among five", among_five);
    slopes.put_into(outputs);
  } else {
    probabilities.put_into(outputs);
    check_padding("diff_logits", diff.put_into(outputs), call.classes, outputs);
  }
  return outputs;
}

RunOutputs expected_loss(const Logits& l, Part part) {
  const Loss loss = loss_of(l);
  RunOutputs outputs;
  if (part == Part::doubles) {
    outputs.add("losses", loss.losses);
    outputs.add("correct", loss.correct);
    outputs.add("among five", loss.among_five);
    outputs.add("slopes", loss.slopes);
  } else {
    outputs.add("probabilities", loss.probabilities);
    outputs.add("diff_logits", with_padding(loss.diff, static_cast<int>(l.classes)));
  }
  return outputs;
}

}  // namespace

std::vector<CasePlan> loss_plans(Numbers format, std::uint64_t seed, const OwnedStream& stream) {
  struct Kind {
    int low, high, most_images;
    double smoothing;
    bool mixes = false;
  };
  std::vector<CasePlan> plans;
  for (const auto& [low, high, most_images, smoothing, mixes] :
       {Kind{1, 1, 131, 0}, Kind{1, 1, 9, 0.1}, Kind{2, 2, 70, 0}, Kind{3, 40, 70, 0.1},
        Kind{900, 1100, 5, 0}, Kind{1, 1, 70, 0.1, true}, Kind{3, 40, 70, 0.1, true}}) {
    CaseNumbers numbers(seed, fmt::format("loss {} {}{}", high, smoothing, mixes ? " mixed" : ""));
    const auto made = std::make_shared<Logits>();
    made->format = format;
    made->classes = static_cast<std::size_t>(numbers.between(low, high));
    made->smoothing = smoothing;
    const int images = numbers.between(1, most_images);
    for (int i = 0; i < images; ++i) {
      made->labels.push_back(numbers.between(0, std::max(2, static_cast<int>(made->classes)) - 1));
    }
    for (int i = 0; mixes && i < images; ++i) {
      made->mixed.push_back({numbers.between(0, std::max(2, static_cast<int>(made->classes)) - 1),
                             static_cast<float>(numbers.between(1, 8)) / 4,
                             static_cast<float>(i % 4) / 8});
    }
    made->values = rounded(format, numbers.reals(made->images() * made->classes, -6, 6));
    for (const Part part : {Part::doubles, Part::floats}) {
      const bool doubles = part == Part::doubles;
      plans.push_back(
          {fmt::format("cross-entropy, {}{}: {} images, {} class{}, smoothing {}{}",
                       doubles ? "losses" : "probabilities", in_words(format), images,
                       made->classes, made->classes == 1 ? "" : "es", smoothing,
                       mixes ? ", mixed labels" : ""),
           doubles ? 1e-12 : 1e-6 + limit_of_rounding(format),
           [made, part, &stream](int run) { return run_loss(*made, part, run, stream); },
           [made, part] { return expected_loss(*made, part); }});
    }
  }
  return plans;
}

}  // namespace cputrain::cuda
