// Every built-in model against PyTorch: `reference` in double against double, and the float error
// of the cpu backend beside PyTorch's own, for the same images and weights. Dropout is off; L2 is
// not in a program's gradients.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "model/rewrite.h"
#include "tests/golden/model_figures.h"
#include "tests/golden/replica.h"

namespace cputrain::golden::models_test {
namespace {

constexpr double kTolerance = 1e-9;  // of a loss, or of a tensor's norm
/// Where the truth is 0 (a bias whose shift the next batch norm removes), rounding is left: this
/// much of the whole gradient's norm.
constexpr double kNoise = 1e-14;
/// Tensors this small beside the whole gradient are such noise in float. make_models.py leaves them
/// out, too.
constexpr double kNegligible = 1e-9;
/// Probabilities are floats on every backend: what that does to logits.
constexpr double kFloatProbability = 5e-7;

Samples samples(const ModelFigures& model, int first, int count) {
  return {model.graph.image(), model.classes, model.seed, first, count};
}

/// Gradients of what is learnt, and moving statistics after the pass.
void expect_tensors(const ModelFigures& model, const TrainingPass& pass, const Replica& replica) {
  const auto& parameters = replica.parameters();
  ASSERT_EQ(pass.tensors.size(), parameters.size());
  double square = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].learnt) square += std::pow(pass.tensors[i].value().norm, 2);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    SCOPED_TRACE(parameters[i].name);
    if (!pass.tensors[i]) {
      EXPECT_FALSE(parameters[i].learnt);
      continue;
    }
    const auto values = parameters[i].learnt ? replica.gradients(i) : replica.weights(i);
    const Sums ours = sums(values, model.seed, name_key(parameters[i].name));
    const Sums theirs = *pass.tensors[i];
    const double tolerance = kTolerance * theirs.norm + kNoise * std::sqrt(square);
    EXPECT_NEAR(ours.norm, theirs.norm, tolerance);
    EXPECT_NEAR(ours.dot, theirs.dot, tolerance);
  }
}

/// The error of tensors taken together.
double relative(const std::vector<Difference>& tensors) {
  Difference square{0, 0};
  for (const Difference& tensor : tensors) {
    square.error += std::pow(tensor.error, 2);
    square.norm += std::pow(tensor.norm, 2);
  }
  return std::sqrt(square.error / square.norm);
}

/// How far `replica`'s gradients and moving statistics are from those of `exact`, which has run the
/// same batches.
FloatError tensor_error(const Replica& replica, const Replica& exact) {
  std::vector<Difference> gradients, moving;
  for (std::size_t i = 0; i < exact.parameters().size(); ++i) {
    if (exact.parameters()[i].learnt) {
      gradients.push_back(difference(replica.gradients(i), exact.gradients(i)));
    } else if (exact.parameters()[i].name.find("/moving_") != std::string::npos) {
      moving.push_back(difference(replica.weights(i), exact.weights(i)));
    }
  }
  FloatError error{};
  error.whole = relative(gradients);
  if (!moving.empty()) error.moving = relative(moving);
  double square = 0;
  for (const Difference& gradient : gradients) square += std::pow(gradient.norm, 2);
  for (const Difference& gradient : gradients) {
    if (gradient.norm <= kNegligible * std::sqrt(square)) continue;
    error.worst = std::max(error.worst, gradient.relative());
  }
  return error;
}

FloatError float_error(Replica& replica, const ModelFigures& model, const TrainingPass& pass,
                       const Replica& exact) {
  const Samples images = samples(model, pass.first, pass.batch);
  const double loss = replica.step(images, nullptr, 0).mean_loss();
  FloatError error = tensor_error(replica, exact);
  error.loss = std::abs(loss - pass.loss) / pass.loss;
  const auto logits = logits_from(replica.probabilities(), pass.batch, model.classes);
  error.logits = difference(logits, pass.logits).relative();
  return error;
}

/// Errors of a gradient where rounding moves an input of a ReLU past its kink.
struct Kink {
  double whole = 0, worst = 0;
};

/// The reference in double has 6.2e-5 and 2.4e-4 in the better pass of resnet18 once its weights
/// are moved by 1e-6 of themselves. That changes logits by 7e-6, as much as Winograd kernels do.
constexpr Kink kKinkOfResNet18{7e-5, 2.7e-4};

/// A backend in float, and how many times PyTorch's error it may have.
struct Contender {
  std::string name;
  double times;
  std::unique_ptr<compute::Backend> backend;
  std::vector<FloatError> errors;
  Kink kink{};
};

std::vector<Contender> contenders(const std::string& model) {
  std::vector<Contender> all;
  if (!cpu::cpu_backend_available()) return all;
  all.push_back({"direct", 2, cpu::make_cpu_backend(1, {}), {}});
  // The deeper residual networks have the blocks of resnet50v2, only more of them.
  if (model == "resnet101v2" || model == "resnet152v2" || model == "resnet50") return all;
  all.push_back({"zeros skipped", 2, cpu::make_cpu_backend(1, {.skip_zeros = true}), {}});
  all.push_back({"winograd allowed", 5, cpu::make_cpu_backend(1, {.winograd = true}), {}});
  if (model == "resnet18") all.back().kink = kKinkOfResNet18;
  return all;
}

void expect_pass(const ModelFigures& model, const TrainingPass& pass, Replica& exact) {
  const compute::Tally tally = exact.step(samples(model, pass.first, pass.batch), nullptr, 0);
  EXPECT_NEAR(tally.mean_loss(), pass.loss, kTolerance * pass.loss);
  EXPECT_EQ(tally.correct, pass.correct);
  const auto logits = logits_from(exact.probabilities(), pass.batch, model.classes);
  EXPECT_LE(difference(logits, pass.logits).relative(), kFloatProbability);
  if (!pass.tensors.empty()) expect_tensors(model, pass, exact);
}

/// The passes with the same frozen layers, all with the same first weights.
void run_passes(const ModelFigures& model, const std::vector<TrainingPass>& passes,
                std::vector<Contender>& contenders) {
  const model::Graph graph = model::with_frozen(model.graph, passes.front().frozen);
  const auto replica = [&](compute::Backend& backend) {
    return Replica(backend, graph, varied_start(model.seed), {passes.front().batch});
  };
  const auto exact_backend = reference::make_reference_backend(DType::f64);
  Replica exact = replica(*exact_backend);
  std::vector<Replica> replicas;
  for (const Contender& contender : contenders) replicas.push_back(replica(*contender.backend));
  for (const TrainingPass& pass : passes) {
    SCOPED_TRACE("from image " + std::to_string(pass.first));
    expect_pass(model, pass, exact);
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      contenders[i].errors.push_back(float_error(replicas[i], model, pass, exact));
    }
  }
}

/// In each figure the worst pass is at most `times` PyTorch's worst one (a changed winner of a pool
/// is a jump, and a matter of luck), and the best pass at most so much worse than PyTorch's best
/// one of the same (which shows the level of rounding).
void expect_near_pytorch(const ModelFigures& model, const Contender& contender) {
  const auto compare = [&](const char* figure, double FloatError::*member, double floor) {
    std::vector<double> ours, theirs;
    for (const FloatError& error : contender.errors) ours.push_back(error.*member);
    for (const TrainingPass& pass : model.passes) theirs.push_back(pass.pytorch.*member);
    const auto [our_best, our_worst] = std::ranges::minmax(ours);
    const double their_best = std::ranges::min(theirs), their_worst = model.pytorch.*member;
    std::printf("  %s %.1e to %.1e (PyTorch %.1e to %.1e)", figure, our_best, our_worst, their_best,
                their_worst);
    EXPECT_LE(our_best, contender.times * their_best + floor) << figure;
    EXPECT_LE(our_worst, contender.times * their_worst + floor) << figure;
  };
  SCOPED_TRACE(contender.name);
  std::printf("%s:", contender.name.c_str());
  // Errors of logits can cancel in the loss, so that one is as much worse as luck will have it.
  compare("loss", &FloatError::loss, contender.times * model.pytorch.logits);
  compare("logits", &FloatError::logits, kFloatProbability);
  compare("moving", &FloatError::moving, 0);
  compare("whole gradient", &FloatError::whole, contender.kink.whole);
  compare("worst tensor", &FloatError::worst, contender.kink.worst);
  std::printf("\n");
}

class Models : public ::testing::TestWithParam<std::string> {};

TEST_P(Models, ParametersHaveKerasNamesAndOrder) {
  const ModelFigures model = load_model(GetParam());
  std::vector<std::string> names;
  for (const auto& node : model.graph.nodes()) {
    for (const auto& parameter : node.parameters) names.push_back(parameter.name);
  }
  EXPECT_EQ(names, model.parameters);
}

TEST_P(Models, TrainingPassesArePyTorchs) {
  const ModelFigures model = load_model(GetParam());
  std::vector<Contender> rivals = contenders(GetParam());
  std::vector<TrainingPass> all_learn, some_frozen;
  for (const TrainingPass& pass : model.passes) {
    (pass.frozen.empty() ? all_learn : some_frozen).push_back(pass);
  }
  run_passes(model, all_learn, rivals);
  if (!some_frozen.empty()) {
    SCOPED_TRACE("with frozen layers");
    run_passes(model, some_frozen, rivals);
  }
  for (const Contender& contender : rivals) expect_near_pytorch(model, contender);
}

/// In double, through the losses of every image with every label.
TEST_P(Models, LogitsInEvaluationArePyTorchs) {
  const ModelFigures model = load_model(GetParam());
  const auto& evaluation = model.evaluation;
  const auto backend = reference::make_reference_backend(DType::f64);
  Evaluator evaluator(*backend, model.graph, varied_start(model.seed), {1});
  Samples images = samples(model, evaluation.first, evaluation.batch);
  std::vector<double> logits;
  for (int image = 0; image < evaluation.batch; ++image) {
    for (int label = 0; label < model.classes; ++label) {
      logits.push_back(-evaluator.run(images.labelled(image, label)).loss);
    }
  }
  centre(logits, model.classes);
  EXPECT_LE(difference(logits, evaluation.logits).relative(), kTolerance);
}

/// The same in training mode, where images depend on each other: the batch's loss with every label
/// of its last image.
TEST_P(Models, LogitsInTrainingArePyTorchs) {
  const ModelFigures model = load_model(GetParam());
  const TrainingPass& pass = model.passes.front();
  ASSERT_TRUE(pass.frozen.empty());
  const auto backend = reference::make_reference_backend(DType::f64);
  Evaluator trainer(*backend, model.graph, varied_start(model.seed), {pass.batch},
                    compute::Phase::train);
  const Samples images = samples(model, pass.first, pass.batch);
  compute::MicroBatch batch = images.all();
  std::vector<std::int32_t> labels(batch.labels.begin(), batch.labels.end());
  batch.labels = labels;
  std::vector<double> logits;
  for (int label = 0; label < model.classes; ++label) {
    labels.back() = label;
    logits.push_back(-trainer.run(batch).loss);
  }
  centre(logits, model.classes);
  const std::vector<double> expected(pass.logits.end() - model.classes, pass.logits.end());
  EXPECT_LE(difference(logits, expected).relative(), kTolerance);
}

TEST_P(Models, FloatLogitsInEvaluationAreNearPyTorchs) {
  const ModelFigures model = load_model(GetParam());
  const auto& evaluation = model.evaluation;
  for (const Contender& contender : contenders(GetParam())) {
    Evaluator evaluator(*contender.backend, model.graph, varied_start(model.seed),
                        {evaluation.batch});
    evaluator.run(samples(model, evaluation.first, evaluation.batch).all());
    const auto logits = logits_from(evaluator.probabilities(), evaluation.batch, model.classes);
    const double error = difference(logits, evaluation.logits).relative();
    std::printf("%s: logits %.1e (PyTorch %.1e)\n", contender.name.c_str(), error,
                evaluation.pytorch);
    EXPECT_LE(error, contender.times * evaluation.pytorch + kFloatProbability) << contender.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, Models,
                         ::testing::Values("dogcat", "nature7", "chips", "vgg16", "resnet50v2",
                                           "resnet101v2", "resnet152v2", "resnet18", "resnet50",
                                           "mobilenetv2", "efficientnet-lite0", "densenet121"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace cputrain::golden::models_test
