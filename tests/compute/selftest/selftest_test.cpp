#include "compute/selftest/selftest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "backends/reference/reference_backend.h"
#include "compute/selftest/cases.h"
#include "compute/selftest/layer_plans.h"
#include "core/error.h"
#include "model/rewrite.h"

namespace cputrain::selftest {
namespace {

using reference::Factors;

/// A backend with a mistake: what a case must find.
class Mistaken : public compute::Backend {
 public:
  explicit Mistaken(Factors factors = Factors::as_they_are)
      : right_(reference::make_reference_backend(DType::f32, factors)) {}
  const compute::BackendFacts& facts() const override { return facts_; }
  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& arenas) override {
    return right_->compile(graph, options, arenas);
  }
  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan& plan) override {
    return right_->make_update(plan);
  }
  void change_gradients(const optim::GradientOperation& operation,
                        const optim::UpdateSlice& slice) override {
    right_->change_gradients(operation, slice);
  }
  void sum(std::span<const Array> src, const Array& dst) override { right_->sum(src, dst); }
  compute::Pending<std::vector<double>> block_norms(
      std::span<const compute::ArenaPart> parts) override {
    return right_->block_norms(parts);
  }
  compute::Limits measure_limits(const compute::Together& together) override {
    return right_->measure_limits(together);
  }

 protected:
  compute::Backend& right() { return *right_; }

 private:
  std::unique_ptr<compute::Backend> right_;
  compute::BackendFacts facts_{.name = "mistaken",
                               .description = "the reference backend with a mistake",
                               .dtype = right_->dtype()};
};

/// Another network than the one that was asked for.
class DropsNothing final : public Mistaken {
  using Mistaken::Mistaken;
  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& arenas) override {
    return right().compile(model::with_dropout(graph, 0), options, arenas);
  }
};
class HasNoRelu final : public Mistaken {
  using Mistaken::Mistaken;
  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& arenas) override {
    return right().compile(model::without_relus(graph), options, arenas);
  }
};
class RefusesBatchNorm final : public Mistaken {
  using Mistaken::Mistaken;
  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& arenas) override {
    if (graph.has_batch_norm()) fail(ExitCode::usage, "batch_norm is not among its layers");
    return right().compile(graph, options, arenas);
  }
};
/// The last element of a slice.
class ForgetsTheLast final : public Mistaken {
  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan& plan) override {
    optim::UpdatePlan shorter = plan;
    for (optim::UpdateSlice& slice : shorter.slices) {
      slice.weights = slice.weights.slice(0, slice.weights.size - 1);
      slice.gradients = slice.gradients.slice(0, slice.gradients.size - 1);
    }
    return Mistaken::make_update(shorter);
  }
};
class WritesBehindTheEnd final : public Mistaken {
  void change_gradients(const optim::GradientOperation& operation,
                        const optim::UpdateSlice& slice) override {
    Mistaken::change_gradients(operation, slice);
    static_cast<float*>(slice.gradients.data)[slice.gradients.size] = 0;
  }
};
class AddsSevenArrays final : public Mistaken {
  void sum(std::span<const Array> src, const Array& dst) override {
    Mistaken::sum(src.size() < 8 ? src : src.subspan(src.size() - 7), dst);
  }
};

/// Nothing works after some calls, as on a GPU after a kernel used a wrong address.
class Breaks final : public Mistaken {
 public:
  using Mistaken::Mistaken;
  static inline int calls_left = 0;
  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& arenas) override {
    call();
    return right().compile(graph, options, arenas);
  }
  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan& plan) override {
    call();
    return right().make_update(plan);
  }

 private:
  static void call() {
    if (calls_left-- <= 0) fail(ExitCode::internal, "an illegal address");
  }
};

struct Found {
  std::set<std::string> passed, failed, left_out;
  /// Only cases with these words failed, and all of them. "relu" is no word of "relu6" or
  /// "leaky_relu".
  bool failed_alone(const std::string& words) const {
    const auto has = [&](const std::string& name) {
      const std::size_t at = name.find(words);
      return at != std::string::npos && !std::isdigit(name[at + words.size()]) &&
             (at == 0 || name[at - 1] != '_');
    };
    return !failed.empty() && std::ranges::all_of(failed, has) && std::ranges::none_of(passed, has);
  }
};

struct References {
  std::unique_ptr<compute::Backend> exact = reference::make_reference_backend(DType::f64),
                                    rounding = reference::make_reference_backend(DType::f64,
                                                                                 Factors::bf16);
};

std::function<void(const compute::SelftestCase&)> into(Found& found) {
  return [&found](const compute::SelftestCase& c) {
    (c.passed() ? found.passed : found.failed).insert(c.name);
  };
}

template <class Backend>
Found found_of(std::uint64_t seed = 0, Precision precision = Precision::f32) {
  Found found;
  const References references;
  run({.precisions = {precision},
       .seed = seed,
       .make =
           [](Precision asked, const std::set<std::string>&) {
             return std::make_unique<Backend>(asked == Precision::bf16 ? Factors::bf16
                                                                       : Factors::as_they_are);
           },
       .reference = references.exact.get(),
       .rounding_reference = references.rounding.get()},
      {.done = into(found), .left_out = [&](const std::string& name, const std::string&) {
         found.left_out.insert(name);
       }});
  return found;
}

/// The cases of arrays alone.
template <class Backend>
Found found_with_arrays() {
  Found found;
  const References references;
  Backend tested;
  for (const compute::CasePlan& plan : array_plans(0, tested, *references.exact)) {
    into(found)(compute::run_case(plan));
  }
  return found;
}

TEST(Selftest, PassesWhateverTheSeed) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    for (const std::uint64_t seed : {0, 1, 77}) {
      const Found found = found_of<Mistaken>(seed, precision);
      EXPECT_TRUE(found.failed.empty())
          << *found.failed.begin() << ", " << word_of(precision) << ", seed " << seed;
      EXPECT_TRUE(found.left_out.empty());
      EXPECT_GT(found.passed.size(), 50u);
    }
  }
}

TEST(Selftest, ComparesAllThatAStepTells) {
  std::set<std::string> told;
  for (const auto& output : expected_of(layer_cases(0).front(), 0, *References().exact).list) {
    told.insert(output.name);
  }
  for (const char* name : {"loss", kPredictions, "probabilities"}) {
    EXPECT_TRUE(told.contains(name)) << name;
  }
}

TEST(Selftest, FindsMistakesInPrograms) {
  EXPECT_TRUE(found_of<DropsNothing>().failed_alone("dropout"));
  EXPECT_TRUE(found_of<HasNoRelu>().failed_alone("relu"));
  EXPECT_TRUE(found_of<HasNoRelu>(0, Precision::bf16).failed_alone("relu"));
}

TEST(Selftest, FindsMistakesWithArrays) {
  EXPECT_TRUE(found_with_arrays<ForgetsTheLast>().failed_alone("update by"));
  EXPECT_TRUE(found_with_arrays<WritesBehindTheEnd>().failed_alone("gradients "));
  const Found sums = found_with_arrays<AddsSevenArrays>();
  EXPECT_EQ(sums.failed, (std::set<std::string>{"sum of 11 arrays, into the last"}));
}

TEST(Selftest, ADeviceThatBreaksFailsTheCasesBehind) {
  const std::size_t all = found_of<Mistaken>().passed.size();
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    for (const int calls : {1, 8}) {
      Breaks::calls_left = calls;
      const Found found = found_of<Breaks>(0, precision);
      EXPECT_GT(found.failed.size(), all / 2) << word_of(precision) << ", " << calls;
      const auto of_layers = [&](const std::string& name) {
        return name.ends_with(fmt::format(" ({})", word_of(precision)));
      };
      EXPECT_EQ(std::ranges::none_of(found.passed, of_layers), calls == 1);
      EXPECT_TRUE(found.left_out.empty());
    }
  }
  Breaks::calls_left = 0;
  EXPECT_TRUE(found_of<Breaks>().failed.contains("first network (float)"));
}

TEST(Selftest, ADeviceThatCannotBeOpenedIsAFailedCase) {
  Found found;
  const References references;
  run({.precisions = {Precision::f64},
       .make = [](Precision, const std::set<std::string>&) -> std::unique_ptr<compute::Backend> {
         fail(ExitCode::internal, "no answer");
       },
       .reference = references.exact.get()},
      {.done = into(found), .left_out = [](const std::string&, const std::string&) {}});
  EXPECT_EQ(found.failed, (std::set<std::string>{"first network (double)"}));
}

TEST(Selftest, CasesOfKernelsThatCannotBeMadeAreAFailedCase) {
  std::vector<std::string> begun;
  std::vector<compute::SelftestCase> done;
  const References references;
  const auto number = [] {
    compute::RunOutputs outputs;
    outputs.add("number", std::vector{1.0});
    return outputs;
  };
  run({.precisions = {},
       .make = {},
       .reference = references.exact.get(),
       .own = {.cases =
                   [&](int, std::uint64_t, const compute::SelftestSink& sink) {
                     sink({"a kernel", 0, [&](int) { return number(); }, number});
                     fail(ExitCode::internal, "an illegal address");
                   }}},
      {.done = [&](const compute::SelftestCase& c) { done.push_back(c); },
       .left_out = [](const std::string&, const std::string&) {},
       .begins = [&](const std::string& name) { begun.push_back(name); }});
  EXPECT_EQ(begun, (std::vector<std::string>{"a kernel", "further cases of kernels"}));
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done.front().wrong, "");
  EXPECT_EQ(done.back().wrong, "an illegal address");
}

TEST(Selftest, SaysWhatABackendLacks) {
  const Found found = found_of<RefusesBatchNorm>();
  EXPECT_TRUE(found.failed.empty());
  EXPECT_EQ(found.left_out.size(), 2u);
  for (const std::string& name : found.left_out)
    EXPECT_TRUE(name.starts_with("batch norm")) << name;
}

}  // namespace
}  // namespace cputrain::selftest
