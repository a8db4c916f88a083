#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "compute/program.h"
#include "compute/tally.h"
#include "data/batch_plan.h"
#include "data/batch_source.h"

/// Evaluations, predictions from the outputs of a network, and their counts by class.
namespace cputrain::loop {

/// Hears this rank's predictions: labels of some images, and what the network said about each (one
/// row an image). On a device probabilities take time to fetch.
using PredictionObserver =
    std::function<void(std::span<const std::int32_t> labels, std::span<const float> outputs)>;

/// What an evaluation asks and calls as it goes on; what is empty is left out.
struct EvaluationCalls {
  /// Before each batch: false ends it. All ranks answer alike.
  std::function<bool()> goes_on{};
  /// After each micro-batch: how many images of this rank it had.
  std::function<void(int images)> progress{};
  PredictionObserver predictions{};
};

/// Loss and accuracy over every image exactly once, whatever the number of ranks; nothing where it
/// did not go on, or some image was not the data's any more.
std::optional<compute::Tally> evaluate_while(const EvaluationCalls&, compute::Program&,
                                             data::BatchSource&, const data::BatchPlan&,
                                             comm::Communicator&);
/// The same to its end. Error(data) where some image was not the data's any more.
compute::Tally evaluate(compute::Program&, data::BatchSource&, const data::BatchPlan&,
                        comm::Communicator&, const PredictionObserver& observer = {});

/// Collective: adds the L2 penalty to a tally over all ranks. Where weights of some rank are
/// NaN or infinite, the loss is NaN, whatever the images gave: layers can hide such weights.
void add_loss_of_weights(compute::Tally&, compute::Backend&, const compute::ParameterLayout&,
                         const Array& weights, comm::Communicator&);

/// One probability a class; a single output is the probability of class 1 of two.
std::vector<float> class_probabilities(std::span<const float> outputs);

/// The means of an image's outputs and those of its mirror image, in the first.
void average_outputs(std::span<float> outputs, std::span<const float> of_mirrored);

/// What predictions of one class came to.
struct ClassCounts {
  double images = 0, predictions = 0, correct = 0;
  std::string name{};  ///< of the class, for who prints it

  /// Part of the images that were predicted rightly; nothing where there is no image.
  std::optional<double> recall() const;
  /// Part of the predictions that were right; nothing where there is no prediction.
  std::optional<double> precision() const;
  /// The harmonic mean of both; nothing where there is neither an image nor a prediction.
  std::optional<double> f1() const;
};

/// Means over the classes that have an image or a prediction. A ratio of nothing counts as 0: a
/// class that is never predicted does not make the mean precision better.
struct MacroAverages {
  double recall = 0, precision = 0, f1 = 0;
};

/// Counts of predictions over a data set. Counts are whole numbers, so their sums over ranks are
/// exact at any number of processes.
class PredictionCounts {
 public:
  /// A matrix of more classes takes too much memory (1000: 8 MB); totals by class are kept anyway.
  static constexpr std::size_t kMostInMatrix = 1000;

  explicit PredictionCounts(std::size_t classes);

  /// `outputs`: labels.size() rows of a network, one or `classes` columns.
  void add(std::span<const std::int32_t> labels, std::span<const float> outputs);
  /// Collective: adds the counts of all ranks up.
  void sum(comm::Communicator&);

  std::size_t classes() const { return classes_; }
  bool has_matrix() const { return classes_ <= kMostInMatrix; }
  double images() const { return sums_[kImages]; }
  double correct() const { return sums_[kCorrect]; }
  double among_five() const { return sums_[kAmongFive]; }
  /// Part of all images; nothing where compute::counts_top_five() says no, or nothing was counted.
  std::optional<double> top_five() const {
    const bool known = compute::counts_top_five(classes_) && images() > 0;
    return known ? std::optional(among_five() / images()) : std::nullopt;
  }
  /// Images whose probabilities were NaN: wrong, and no prediction.
  double undecided() const { return sums_[kUndecided]; }
  /// Images of the class, and those that were predicted with it.
  double actual(std::size_t label) const { return sums_[place(kActual, label)]; }
  double predicted(std::size_t label) const { return sums_[place(kPredicted, label)]; }
  double correct(std::size_t label) const { return sums_[place(kRight, label)]; }
  ClassCounts of_class(std::size_t label) const {
    return {actual(label), predicted(label), correct(label)};
  }
  /// Nothing where nothing was counted.
  std::optional<MacroAverages> macro_averages() const;
  /// Images of class `label` that were predicted with `prediction`; needs has_matrix().
  double cell(std::size_t label, std::size_t prediction) const {
    return sums_[place(kMatrix + label, prediction)];
  }

 private:
  enum Total : std::size_t { kImages, kCorrect, kAmongFive, kUndecided, kTotals };
  /// Rows of one count a class, behind the totals; from kMatrix on a row for each class.
  enum Row : std::size_t { kActual, kPredicted, kRight, kMatrix };

  std::size_t place(std::size_t row, std::size_t column) const {
    return kTotals + row * classes_ + column;
  }

  std::size_t classes_;
  std::vector<double> sums_;  ///< all counts in one array, for one sum over ranks
};

/// Probabilities of the second of two classes, for the area under the ROC curve: the probability
/// that an image of that class has a higher one than an image of the other, where an equal one
/// counts half (Hanley and McNeil, "The Meaning and Use of the Area under a Receiver Operating
/// Characteristic (ROC) Curve", 1982). Counts alone decide it, so it is the same at any number of
/// ranks.
class RocScores {
 public:
  /// Rows of a network of two classes, of one or two columns.
  void add(std::span<const std::int32_t> labels, std::span<const float> outputs);
  /// Over all ranks; nothing where a class has no image, or an output is NaN. Collective.
  std::optional<double> area(comm::Communicator&) const;

 private:
  std::array<std::vector<float>, 2> scores_;  ///< by class
};

/// A wrong prediction, and what the network made of it.
struct WrongPrediction {
  std::uint64_t image = 0;  ///< its place in the samples of the plan
  std::uint32_t truth = 0, prediction = 0;
  float probability = 0;           ///< the prediction's
  float probability_of_truth = 0;  ///< that of the class that it is

  bool operator==(const WrongPrediction&) const = default;
};

/// Keeps the wrong predictions with the highest probabilities; of equal ones those of earlier
/// images, so that any number of ranks keeps the same. NaN is no prediction.
class SurestErrors {
 public:
  explicit SurestErrors(std::size_t most) : most_(most) {}

  /// Predictions about these images: `outputs` are as many rows of a network.
  void add(std::span<const std::uint64_t> images, std::span<const std::int32_t> labels,
           std::span<const float> outputs);
  /// Those of all ranks, the surest first. Collective.
  std::vector<WrongPrediction> gather(comm::Communicator&) const;

 private:
  void keep(const WrongPrediction&);

  std::size_t most_;
  std::vector<WrongPrediction> kept_;  ///< sorted
};

/// Places of this rank's images in the order in which an evaluation without shuffling has them.
std::vector<std::uint64_t> evaluation_order(const data::BatchPlan&);

}  // namespace cputrain::loop
