#include "simulation/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <exception>
#include <numeric>
#include <set>
#include <thread>

#include "comm/node_arrays.h"
#include "comm/pages.h"
#include "core/clock.h"
#include "core/version.h"
#include "train/weights.h"

namespace cputrain {
namespace {

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const double place = part * static_cast<double>(values.size() - 1);
  const auto i = static_cast<std::size_t>(place);
  const double next = values[std::min(i + 1, values.size() - 1)];
  return values[i] + (next - values[i]) * (place - static_cast<double>(i));
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

Array floats(const Pages& pages, std::size_t count) {
  return {pages.bytes().data(), count, DType::f32};
}

/// One of the threads that compute at the same time, with a program for one number of images. All
/// read the same weights, as the ranks of a node do.
class Worker {
 public:
  Worker(const Calibration& todo, int number) : todo_(todo), number_(number) {}

  void start() { backend_ = todo_.make_backend(); }

  void compile(int images, const std::function<Array(const ParameterLayout&)>& weights) {
    images_ = images;
    CompileOptions options{Phase::train, {images}};
    options.usual_images = images;
    program_ = backend_->compile(todo_.graph, options, [&](const ParameterLayout& layout) {
      gradients_ = std::make_unique<Pages>(layout.gradient_size * sizeof(float));
      return Arenas{weights(layout), floats(*gradients_, layout.gradient_size)};
    });
  }

  /// Passes until the program has found its algorithms; seconds of the last one.
  double warm_up() {
    constexpr int kMost = 64;
    for (int i = 0; i < kMost && program_->trying(); ++i) {
      pass(Accumulate::overwrite);
      if (const std::string found = program_->take_findings(); !found.empty()) {
        program_->use_findings(found);
      }
    }
    pass(Accumulate::overwrite);
    const Stopwatch watch;
    pass(Accumulate::add);
    return watch.seconds();
  }

  void time_passes(int count) {
    forward_.clear();
    backward_.clear();
    const auto before = program_->layer_times();
    for (int i = 0; i < count; ++i) pass(i % 2 ? Accumulate::add : Accumulate::overwrite);
    layers_ = difference(program_->layer_times(), before);
  }

  /// Seconds a number of its part of an update.
  double time_update(int workers) {
    const Arenas all{weights_, floats(*gradients_, program_->layout().gradient_size)};
    const Range own = slice_of({0, all.gradients.size}, number_, workers);
    UpdateSlice slice{.weights = weights_.slice(own.begin, own.end),
                      .gradients = all.gradients.slice(own.begin, own.end),
                      .state = {}};
    std::vector<std::unique_ptr<Pages>> state;
    for (int i = 0; i < state_arrays(todo_.rule); ++i) {
      state.push_back(std::make_unique<Pages>(own.size() * sizeof(float)));
      slice.state[static_cast<std::size_t>(i)] = floats(*state.back(), own.size());
    }
    return time_often([&] { backend_->update(todo_.rule, slice); }) /
           static_cast<double>(std::max<std::size_t>(own.size(), 1));
  }

  /// Bytes a second that adding two arrays reads and writes.
  double time_sum() {
    constexpr std::size_t kCount = std::size_t{6} << 20;
    const Pages a(kCount * sizeof(float)), b(kCount * sizeof(float));
    const std::vector<Array> src{floats(a, kCount), floats(b, kCount)};
    return 3.0 * sizeof(float) * kCount / time_often([&] { backend_->sum(src, src[0]); });
  }

  void use_weights(const Array& weights) { weights_ = weights; }
  Backend& backend() { return *backend_; }
  Program& program() { return *program_; }
  const std::vector<double>& forward() const { return forward_; }
  const std::vector<double>& backward() const { return backward_; }
  const std::vector<LayerTime>& layers() const { return layers_; }

 private:
  void pass(Accumulate accumulate) {
    const std::size_t all = todo_.images.size();
    pixels_.clear();
    labels_.clear();
    samples_.clear();
    for (int i = 0; i < images_; ++i) {
      const std::size_t image = (next_++ + static_cast<std::size_t>(number_)) % all;
      pixels_.push_back(todo_.images.pixels[image]);
      labels_.push_back(todo_.images.labels[image]);
      samples_.push_back(todo_.images.samples[image]);
    }
    Stopwatch watch;
    program_->forward({pixels_, labels_, samples_}, {Phase::train, todo_.seed, 0});
    forward_.push_back(watch.lap());
    program_->backward(1.0 / images_, accumulate, [](std::size_t) {});
    backward_.push_back(watch.lap());
  }

  static double time_often(const std::function<void()>& work) {
    constexpr int kTimes = 7;
    work();  // touches the memory
    std::vector<double> seconds;
    for (int i = 0; i < kTimes; ++i) {
      const Stopwatch watch;
      work();
      seconds.push_back(watch.seconds());
    }
    return median(seconds);
  }

  const Calibration& todo_;
  int number_, images_ = 0;
  std::size_t next_ = 0;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Pages> gradients_;
  std::unique_ptr<Program> program_;
  Array weights_;
  std::vector<double> forward_, backward_;  ///< of passes
  std::vector<LayerTime> layers_;
  std::vector<const std::uint8_t*> pixels_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> samples_;
};

/// Everything with so many threads at the same time.
class Round {
 public:
  Round(const Calibration& todo, int active) : todo_(todo) {
    for (int i = 0; i < active; ++i) workers_.emplace_back(todo, i);
    costs_.active = active;
    together([&](int i) { workers_[index(i)].start(); });
  }

  CostsWhenActive measure(std::vector<double>& workspace) {
    measure_limits();
    for (const int images : todo_.sizes) {
      compile(images);
      const double seconds = warm_up();
      constexpr double kSeconds = 2, kLeast = 6, kMost = 100;
      const auto passes = static_cast<int>(std::clamp(kSeconds / seconds, kLeast, kMost));
      together([&](int i) { workers_[index(i)].time_passes(passes); });
      add_layers(passes);
      workspace.push_back(static_cast<double>(workers_[0].program().workspace_bytes()));
    }
    std::vector<double> updates(workers_.size()), sums(workers_.size());
    together([&](int i) { updates[index(i)] = workers_[index(i)].time_update(costs_.active); });
    together([&](int i) { sums[index(i)] = workers_[index(i)].time_sum(); });
    costs_.update_seconds_per_number = median(updates);
    costs_.sum_gbs = median(sums) / 1e9;
    return costs_;
  }

 private:
  /// Calls work(0), work(1), ... at the same time, each on its own thread. Throws what one threw.
  void together(const std::function<void(int)>& work) const {
    std::vector<std::exception_ptr> failures(workers_.size());
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < costs_.active; ++i) {
        threads.emplace_back([&, i] {
          try {
            work(i);
          } catch (...) {
            failures[index(i)] = std::current_exception();
          }
        });
      }
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
  }

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  void measure_limits() {
    std::barrier<> meeting(costs_.active);
    std::vector<double> slowest(workers_.size());
    std::vector<Limits> limits(workers_.size());
    together([&](int i) {
      const Together together{.processes = costs_.active,
                              .meet = [&] { meeting.arrive_and_wait(); },
                              .slowest =
                                  [&, i](double seconds) {
                                    slowest[index(i)] = seconds;
                                    meeting.arrive_and_wait();
                                    const double most = std::ranges::max(slowest);
                                    meeting.arrive_and_wait();
                                    return most;
                                  }};
      limits[index(i)] = workers_[index(i)].backend().measure_limits(together);
    });
    for (const Limits& limit : limits) {
      costs_.fma_gflops += limit.fma_gflops / costs_.active;
      costs_.triad_gbs += limit.triad_gbs;
    }
  }

  void compile(int images) {
    for (Worker& worker : workers_) {
      worker.compile(images, [&](const ParameterLayout& layout) {
        if (!weights_) weights_ = std::make_unique<Pages>(layout.arena_size * sizeof(float));
        return floats(*weights_, layout.arena_size);
      });
      worker.use_weights(floats(*weights_, worker.program().layout().arena_size));
    }
    initialise_weights(todo_.graph, workers_[0].program(), todo_.seed,
                       floats(*weights_, workers_[0].program().layout().arena_size));
  }

  /// The slowest thread's seconds of a pass. All then use the algorithms that the first one found.
  double warm_up() {
    std::vector<double> seconds(workers_.size());
    together([&](int i) { seconds[index(i)] = workers_[index(i)].warm_up(); });
    const std::string found = workers_[0].program().findings();
    for (Worker& worker : workers_) {
      if (!found.empty()) worker.program().use_findings(found);
    }
    return std::ranges::max(seconds);
  }

  /// Medians of whole passes, divided among layers as they took their time.
  void add_layers(int passes) {
    std::vector<double> forward, backward, whole;
    for (const Worker& worker : workers_) {
      forward.insert(forward.end(), worker.forward().begin(), worker.forward().end());
      backward.insert(backward.end(), worker.backward().begin(), worker.backward().end());
    }
    std::ranges::transform(forward, backward, std::back_inserter(whole), std::plus());
    constexpr double kSigma = 0.341;  // a normal distribution has so much on each side within one
    costs_.spread =
        (quantile(whole, 0.5 + kSigma) - quantile(whole, 0.5 - kSigma)) / 2 / median(whole);
    const double all = static_cast<double>(forward.size());
    const double mean_forward = std::accumulate(forward.begin(), forward.end(), 0.0) / all;
    const double mean_backward = std::accumulate(backward.begin(), backward.end(), 0.0) / all;
    const double scale_forward = median(forward) / mean_forward;
    const double scale_backward = median(backward) / mean_backward;
    double rest_forward = mean_forward, rest_backward = mean_backward;
    const std::size_t layers = workers_[0].layers().size();
    costs_.layers.resize(layers + 1);
    for (std::size_t i = 0; i < layers; ++i) {
      double f = 0, b = 0;
      for (const Worker& worker : workers_) {
        const LayerTime& time = worker.layers()[i];
        f += time.forward / passes / costs_.active;
        b += (time.backward_data + time.backward_weights) / passes / costs_.active;
      }
      costs_.layers[i].name = workers_[0].layers()[i].name;
      costs_.layers[i].forward.push_back(f * scale_forward);
      costs_.layers[i].backward.push_back(b * scale_backward);
      rest_forward -= f;
      rest_backward -= b;
    }
    costs_.layers[layers].name = "between layers";
    costs_.layers[layers].forward.push_back(std::max(0.0, rest_forward * scale_forward));
    costs_.layers[layers].backward.push_back(std::max(0.0, rest_backward * scale_backward));
  }

  const Calibration& todo_;
  std::unique_ptr<Pages> weights_;
  std::vector<Worker> workers_;
  CostsWhenActive costs_;
};

}  // namespace

CostTable calibrate(const Calibration& todo) {
  const Machine& machine = todo.machine;
  CostTable table;
  table.cpu = machine.cpu_model;
  table.host = machine.host;
  table.build = kVersion;
  table.cores = std::max(1, machine.allowed_cores);
  table.hardware_threads = std::max(table.cores, static_cast<int>(machine.allowed_cpus.size()));
  table.memory_bytes = machine.memory_gb * 1e9;
  table.sizes = todo.sizes;
  for (const int active : std::set{1, table.cores, table.hardware_threads}) {
    todo.say(
        fmt::format("Measuring the model's costs with {} of {} cores busy (cached; --costs "
                    "FILE takes those of another machine)",
                    std::min(active, table.cores), table.cores));
    table.workspace_bytes.clear();
    table.by_active.push_back(Round(todo, active).measure(table.workspace_bytes));
  }
  return table;
}

}  // namespace cputrain
