#include "compute/executor/executor.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace cputrain::compute {
namespace {

using Log = std::vector<std::string>;

/// A parameter of `count` floats that lies in the arena backwards, with one element of padding.
class Backwards final : public ParameterFormat {
 public:
  explicit Backwards(std::size_t count) : count_(count) {}
  std::size_t stored() const override { return count_ + 1; }
  void to_canonical(std::span<const float> stored, std::span<float> canonical) const override {
    for (std::size_t i = 0; i < count_; ++i) canonical[i] = stored[count_ - 1 - i];
  }
  void from_canonical(std::span<const float> canonical, std::span<float> stored) const override {
    stored[count_] = 0;
    for (std::size_t i = 0; i < count_; ++i) stored[i] = canonical[count_ - 1 - i];
  }

 private:
  std::size_t count_;
};

/// Notes when it is called, and has the parameters of its node.
template <class Base>
class Noted : public Base {
 public:
  Noted(Log& log, const model::Graph::Node& node) : Base(node.name), log_(log), node_(node) {}

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override {
    std::vector<std::unique_ptr<ParameterFormat>> formats;
    for (const auto& parameter : node_.parameters) {
      std::size_t count = 1;
      for (const int extent : parameter.extents) count *= static_cast<std::size_t>(extent);
      formats.push_back(std::make_unique<Backwards>(count));
    }
    return formats;
  }
  void bind(const Bindings&) override { note("bind "); }
  void forward(const Execution& e) override {
    const bool fewer = e.pass.phase == Phase::train && !e.most_images;
    note((fewer ? "forward of fewer " : "forward ") + std::to_string(e.images) + " ");
  }
  void backward(const Execution&) override { note("backward "); }
  void forward_of_nothing(const Execution&) override { note("no forward "); }
  void backward_of_nothing(Accumulate) override { note("no backward "); }

 protected:
  void note(const std::string& what) { log_.push_back(what + this->time_.name); }

 private:
  Log& log_;
  const model::Graph::Node& node_;
};

class NotedLoss final : public Noted<LossOp> {
 public:
  using Noted::Noted;
  Pending<Tally> take_tally() override {
    note("tally of ");
    return Tally{.loss = 3, .images = 1};
  }
  std::span<const float> probabilities(const Execution&) const override { return {}; }
};

class Block final : public system::SharedBlock {
 public:
  explicit Block(std::size_t bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  mutable std::vector<std::byte> bytes_;
};

class NotedEvent final : public Event {
 public:
  explicit NotedEvent(std::size_t place) : place_(std::to_string(place)) {}
  const std::string& place() const { return place_; }
  void wait() override { ADD_FAILURE() << "an executor waits for no place"; }

 private:
  std::string place_;
};

/// The host's memory, said to be a device's.
class FarMemory final : public Memory {
 public:
  bool is_host() const override { return false; }
};

class NotedTarget final : public Target {
 public:
  NotedTarget(Log& log, bool is_device) : log_(log), is_device_(is_device) {}

  OpList make_ops(const model::Graph& graph, const Planning& planning) override {
    EXPECT_EQ(std::vector(planning.sizes.begin(), planning.sizes.end()), (std::vector{4, 1}));
    OpList ops;
    for (const auto& node : graph.nodes()) {
      if (std::holds_alternative<model::SoftmaxCrossEntropy>(node.layer)) {
        ops.push_back(std::make_unique<NotedLoss>(log_, node));
      } else {
        ops.push_back(std::make_unique<Noted<Op>>(log_, node));
      }
    }
    return ops;
  }
  Memory& memory() override { return is_device_ ? far_ : host_memory(); }
  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) override {
    log_.emplace_back("allocate");
    return std::make_unique<Block>(bytes);
  }
  void enter(const std::function<void()>& work) override { work(); }
  void clear(const Array& values) override {
    log_.push_back("clear " + std::to_string(values.size));
  }
  bool joins_directions() const override { return is_device_; }
  bool mark(std::size_t i) override {
    if (is_device_) log_.push_back("mark " + std::to_string(i));
    return is_device_;
  }
  Event* event(std::size_t i) override {
    if (!is_device_) return nullptr;
    events_.push_back(std::make_unique<NotedEvent>(i));
    return events_.back().get();
  }
  void end_call() override { log_.emplace_back("end call"); }
  void wait() override { log_.emplace_back("wait"); }

 private:
  Log& log_;
  bool is_device_;
  FarMemory far_;
  std::vector<std::unique_ptr<Event>> events_;
};

model::Graph two_layers() {
  model::Graph graph({1, 1, 3});
  graph.add(model::Dense{4}, "a");
  graph.add(model::Dense{2}, "b");
  graph.add(model::SoftmaxCrossEntropy{}, "loss");
  return graph;
}

class ExecutorTest : public testing::TestWithParam<bool> {
 protected:
  ExecutorTest()
      : weights_(200, 0.0f),
        gradients_(200, 0.0f),
        executor_(std::make_unique<NotedTarget>(log_, GetParam()), two_layers(),
                  {.micro_batches = {1, 4, 1}}, [&](const ParameterLayout& layout) {
                    EXPECT_LE(layout.arena_size, weights_.size());
                    return Arenas{Array::of<float>({weights_.data(), layout.arena_size}),
                                  Array::of<float>({gradients_.data(), layout.gradient_size})};
                  }) {}

  std::string b_is_final() const {
    return "ready " + std::to_string(executor_.layout().parameters[2].range.end) +
           (GetParam() ? " behind 2" : "");
  }
  std::string all_is_final() const {
    return "ready " + std::to_string(executor_.layout().gradient_size) +
           (GetParam() ? " behind 0" : "");
  }
  void train(std::size_t images, const PassSums* sums = nullptr) {
    const std::vector<const std::uint8_t*> pixels(images, nullptr);
    const std::vector<std::int32_t> labels(images);
    const std::vector<std::uint32_t> samples(images);
    log_.clear();
    executor_.forward({pixels, labels, samples}, {.phase = Phase::train});
    const auto ready = [&](std::size_t n, Event* after) {
      log_.push_back("ready " + std::to_string(n));
      if (after) log_.back() += " behind " + dynamic_cast<NotedEvent&>(*after).place();
    };
    executor_.backward({.ready = ready, .sums = sums});
    EXPECT_EQ(executor_.tally().wait().loss, 3);
  }

  Log log_;
  std::vector<float> weights_, gradients_;
  Executor executor_;
};

INSTANTIATE_TEST_SUITE_P(Targets, ExecutorTest, testing::Bool(),
                         [](const auto& target) { return target.param ? "Device" : "Host"; });

TEST_P(ExecutorTest, RunsOperatorsForwardAndBack) {
  const Log binds{"allocate", "bind input", "bind a", "bind b", "bind loss"};
  EXPECT_EQ(log_, GetParam() ? Log{} : binds);  // a device's memory is taken with the first pass
  train(4);
  Log expected = GetParam() ? binds : Log{};
  for (const char* name : {"input", "a", "b", "loss"}) {
    expected.push_back(std::string("forward 4 ") + name);
  }
  if (GetParam()) {  // both directions are enqueued before any gradients are reported
    for (const char* what :
         {"backward loss", "backward b", "mark 2", "backward a", "backward input", "mark 0"}) {
      expected.emplace_back(what);
    }
    expected.emplace_back("end call");
    expected.push_back(b_is_final());
  } else {
    expected.emplace_back("end call");
    expected.emplace_back("backward loss");
    expected.emplace_back("backward b");
    expected.push_back(b_is_final());
    expected.emplace_back("backward a");
    expected.emplace_back("backward input");
    expected.emplace_back("end call");
  }
  expected.push_back(all_is_final());
  expected.emplace_back("tally of loss");
  EXPECT_EQ(log_, expected);
}

TEST_P(ExecutorTest, TellsPassesOfFewerImagesThanThereWere) {
  for (const std::size_t images : {1, 4, 4, 1}) {
    train(images);
    EXPECT_EQ(std::ranges::count(log_, "forward 4 a"), images == 4);
  }
  EXPECT_EQ(std::ranges::count(log_, "forward of fewer 1 a"), 1);
}

/// Where gradients are final, and all of them before the pass ends.
TEST_P(ExecutorTest, HasSumsAsPartOfItsPass) {
  const PassSums sums = [&](std::size_t n) { log_.push_back("sum " + std::to_string(n)); };
  train(4, &sums);
  const auto place = [&](const std::string& what) {
    return std::ranges::find(log_, what) - log_.begin();
  };
  const std::string first = "sum " + std::to_string(executor_.layout().parameters[2].range.end),
                    last = "sum " + std::to_string(executor_.layout().gradient_size);
  EXPECT_LT(place("backward b"), place(first));
  EXPECT_LT(place(first), place("backward a"));
  EXPECT_LT(place("backward input"), place(last));
  EXPECT_LT(place(last), place(all_is_final()));
  EXPECT_EQ(std::ranges::count(log_, last), 1);
}

TEST_P(ExecutorTest, SumsZerosWithoutImages) {
  const PassSums sums = [&](std::size_t n) { log_.push_back("sum " + std::to_string(n)); };
  train(0, &sums);
  const std::string all = "sum " + std::to_string(executor_.layout().gradient_size);
  EXPECT_EQ(std::ranges::count(log_, all), 1);
}

TEST_P(ExecutorTest, WithoutImagesGradientsAreZeroAndOthersAreNotKeptWaiting) {
  train(0);
  Log expected;
  // Operators that sum over ranks take part with memory of their own.
  if (GetParam()) expected = {"allocate", "bind input", "bind a", "bind b", "bind loss"};
  for (const std::string& what :
       {std::string("no forward input"), std::string("no forward a"), std::string("no forward b"),
        std::string("no forward loss"), "clear " + std::to_string(executor_.layout().gradient_size),
        std::string("no backward loss"), std::string("no backward b"), std::string("no backward a"),
        std::string("no backward input")}) {
    expected.push_back(what);
  }
  if (GetParam()) expected.emplace_back("mark 0");
  for (const std::string& what :
       {std::string("end call"), all_is_final(), std::string("tally of loss")}) {
    expected.push_back(what);
  }
  EXPECT_EQ(log_, expected);
}

TEST_P(ExecutorTest, ForwardWithoutBackwardRunsWhenItIsAskedFor) {
  train(1);
  const std::uint8_t pixel[3]{};
  const std::uint8_t* image = pixel;
  const std::int32_t label = 0;
  const std::uint32_t sample = 0;
  log_.clear();
  executor_.forward({{&image, 1}, {&label, 1}, {&sample, 1}}, {.phase = Phase::train});
  executor_.tally();
  executor_.forward({{&image, 1}, {&label, 1}, {&sample, 1}}, {.phase = Phase::evaluate});
  Log expected;
  for (const bool last : {false, true}) {
    for (const char* name : {"input", "a", "b", "loss"}) {
      expected.push_back(std::string("forward 1 ") + name);
    }
    expected.emplace_back("end call");
    if (!last) expected.emplace_back("tally of loss");
  }
  EXPECT_EQ(log_, expected);
}

TEST_P(ExecutorTest, ConvertsParametersWhereverTheyLie) {
  const Array arena = Array::of<float>(std::span(weights_).first(executor_.layout().arena_size));
  const std::vector<double> kernel{1, 2, 3, 4, 5, 6, 7, 8};  // of b: 4 x 2
  executor_.parameters().from_canonical(2, kernel, arena);
  const Range range = executor_.layout().parameters[2].range;
  EXPECT_EQ(weights_[range.begin], 8);
  EXPECT_EQ(weights_[range.begin + 7], 1);
  EXPECT_EQ(executor_.parameters().to_canonical(2, arena), kernel);
  const std::vector<float> floats(kernel.begin(), kernel.end());
  EXPECT_EQ(executor_.parameters().to_canonical_floats(2, arena), floats);
}

TEST(Executor, RefusesAGraphWithoutALoss) {
  model::Graph graph({1, 1, 3});
  graph.add(model::Dense{4}, "last");
  Log log;
  try {
    const Executor executor(std::make_unique<NotedTarget>(log, false), graph,
                            {.micro_batches = {4, 1}},
                            [](const ParameterLayout&) { return Arenas{}; });
    FAIL() << "took it";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
    EXPECT_NE(std::string(e.what()).find("the model ends in last"), std::string::npos);
  }
}

}  // namespace
}  // namespace cputrain::compute
