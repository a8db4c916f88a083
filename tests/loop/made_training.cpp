#include "tests/loop/made_training.h"

#include "backends/reference/reference_backend.h"
#include "backends/threads/threads_communicator.h"
#include "core/random/random.h"
#include "datasets/datasets.h"
#include "exchange/compression/compression.h"
#include "exchange/exchanges.h"
#include "model/rewrite.h"
#include "tests/support/locked_backend.h"
#include "weights/load.h"

namespace cputrain::loop {
namespace {

constexpr Shape kImage{8, 8, 3};

model::Graph network(const MadeOptions& options) {
  model::Graph graph(kImage);
  graph.add(model::Convolution{4, 3});
  if (options.batch_norm) graph.add(model::BatchNorm{});
  graph.add(model::Relu{});
  graph.add(model::MaxPool{});
  graph.add(model::Flatten{});
  graph.add(model::Dense{.units = 8, .l2 = options.l2});
  graph.add(model::Relu{});
  graph.add(model::Dropout{options.dropout});
  if (options.classes == 2) {
    graph.add(model::Dense{1});
    graph.add(model::SigmoidCrossEntropy{});
  } else {
    graph.add(model::Dense{options.classes});
    graph.add(model::SoftmaxCrossEntropy{});
  }
  if (options.frozen) return model::with_frozen(graph, std::vector<std::string>{"dense"});
  return graph;
}

/// Random images; those of class 1 are brighter.
struct MadeSet {
  MadeSet(std::size_t count, std::uint32_t first) {
    for (std::uint32_t n = 0; n < count; ++n) {
      const RandomStream stream(2, Purpose::pixels, first + n);
      std::vector<std::uint8_t> image(kImage.size());
      for (std::size_t i = 0; i < image.size(); ++i) {
        image[i] = static_cast<std::uint8_t>(stream.at(static_cast<std::uint32_t>(i))[0] % 200 +
                                             (n % 2) * 40);
      }
      pixels.push_back(std::move(image));
      set.labels.push_back(static_cast<std::int32_t>(n % 2));
      set.samples.push_back(first + n);
    }
    set.image = kImage;
    for (const auto& image : pixels) set.pixels.push_back(image.data());
  }
  std::vector<std::vector<std::uint8_t>> pixels;
  data::ImageSet set;
};

/// The same as a data set whose images are read when they are needed.
class StoredSet final : public data::Dataset {
 public:
  StoredSet(const MadeSet& made, std::function<void(std::uint32_t)> reads)
      : made_(made), reads_(std::move(reads)) {}

  std::size_t size() const override { return made_.pixels.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int label(std::size_t sample) const override { return made_.set.labels[place(sample)]; }
  std::string name(std::size_t sample) const override { return std::to_string(sample); }
  data::ReadResult read(std::size_t sample, Shape, const data::Resizing&,
                        std::span<std::uint8_t> dst) const override {
    reads_(static_cast<std::uint32_t>(sample));
    std::ranges::copy(made_.pixels[place(sample)], dst.begin());
    return {};
  }
  data::SampleFacts inspect(std::size_t) const override { return {}; }
  std::uint64_t fingerprint() const override { return 0; }
  std::optional<data::ReadyForm> ready_form() const override { return data::ReadyForm{kImage}; }

  data::ImageSet images() const {
    data::ImageSet set = made_.set;
    set.pixels.clear();
    set.stored = this;
    return set;
  }

 private:
  std::size_t place(std::size_t sample) const { return sample - made_.set.samples.front(); }

  const MadeSet& made_;
  std::function<void(std::uint32_t)> reads_;
  std::vector<std::string> classes_{"dark", "bright"};
};

/// The arrays of a training between two steps, to be copied and put back.
class Arrays {
 public:
  explicit Arrays(Parts& parts) : parts_(parts), memory_(parts.memory()) {}

  MadeState copy(const Progress& progress) const {
    MadeState state{.progress = progress,
                    .weights = compute::read_numbers(memory_, parts_.exchange.arenas().weights)};
    for (const auto& part : parts_.optimizer.averaged_statistics()) {
      state.averaged.push_back(part.range);
    }
    for (const Array& array : state_arrays()) {
      state.state.push_back(compute::read_numbers(memory_, array));
    }
    if (exchange::KeptParts* const kept = parts_.exchange.kept_parts()) {
      state.unsent = compute::read_numbers(compute::host_memory(), kept->unsent());
    }
    return state;
  }

  void put_back(const MadeState& state) const {
    compute::write_numbers(memory_, state.weights, parts_.exchange.arenas().weights);
    const std::vector<Array> arrays = state_arrays();
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      compute::write_numbers(memory_, state.state[i], arrays[i]);
    }
    if (exchange::KeptParts* const kept = parts_.exchange.kept_parts()) {
      compute::write_numbers(compute::host_memory(), state.unsent, kept->unsent());
    }
    parts_.learning_rate.set_plateau(state.progress.plateau);
    parts_.optimizer.set_last_rate(state.progress.last_rate);
  }

 private:
  std::vector<Array> state_arrays() const {
    std::vector<Array> arrays;
    const auto count = state_names(parts_.optimizer.options()).size();
    for (std::size_t slot = 0; slot < count; ++slot) {
      for (const compute::ArenaPart& part : parts_.optimizer.state(slot))
        arrays.push_back(part.values);
    }
    for (const auto& part : parts_.optimizer.averaged_statistics()) arrays.push_back(part.values);
    return arrays;
  }

  Parts& parts_;
  compute::Memory& memory_;
};

}  // namespace

MadeResult train_made(comm::Communicator& communicator, const MadeOptions& options) {
  const data::DataPipeline data = datasets::make_data_pipeline();
  const MadeSet training(options.samples, 0), validation(options.validation, 1000);
  const StoredSet stored(training, options.reads), stored_validation(validation, options.reads);
  const data::ImageSet images = options.reads ? stored.images() : training.set;
  const data::ImageSet val_images = options.reads ? stored_validation.images() : validation.set;
  const int rank = communicator.rank(), size = communicator.size();
  const data::BatchPlan plan(options.samples, options.batch, options.micro_batch, rank, size,
                             options.plan);
  const data::BatchPlan val_plan(options.validation, 2 * static_cast<std::size_t>(size), 2, rank,
                                 size);

  auto backend =
      options.backend ? options.backend() : reference::make_reference_backend(DType::f64);
  if (options.locked) backend = testing::make_locked_backend(std::move(backend));
  const std::vector<std::string> large{"dense"};
  const model::Graph graph =
      options.sharded ? model::with_sharded_dense(network(options), large) : network(options);
  std::unique_ptr<exchange::GradientExchange> exchange;
  std::vector<int> sizes = plan.sizes();
  for (const int size_of_batch : val_plan.sizes()) sizes.push_back(size_of_batch);
  const compute::CompileOptions compile{
      compute::Phase::train,
      sizes,
      options.batch_norm && options.synchronised ? &communicator : nullptr,
      {},
      options.sharded ? &communicator : nullptr};
  const auto program =
      backend->compile(graph, compile, [&](const compute::ParameterLayout& layout) {
        exchange = exchange::make_exchange({.communicator = communicator,
                                            .layout = layout,
                                            .bucket_bytes = options.bucket_bytes,
                                            .overlap = options.overlap,
                                            .compression = options.compression,
                                            .memory = backend->memory(),
                                            .device_sums = backend->device_sums()},
                                           options.allreduce)
                       .exchange;
        return exchange->arenas();
      });
  if (rank == 0) weights::initialise_weights(graph, *program, 4, exchange->arenas().weights);
  exchange->spread_weights();
  Timeline timeline{StepRange{}};
  Parts parts({communicator, *backend, *program, *exchange, options.fault}, options.optimizer,
              optim::LearningRate(options.rate, data::training_epochs(plan, options.train.epochs,
                                                                      options.train.steps)),
              data.batches(images, plan,
                           {.seed = options.train.seed,
                            .shuffle = options.shuffle,
                            .augment = {.flip = true},
                            .prefetch = options.prefetch,
                            .feeder = backend->feeder()}),
              plan, timeline);
  const auto val_batches =
      data.batches(val_images, val_plan,
                   {.shuffle = false, .prefetch = options.prefetch, .feeder = backend->feeder()});

  MadeResult made;
  parts.optimizer.begin_averages();
  const Arrays arrays(parts);
  MadeControl& control = options.control ? *options.control : made.control;
  control.stop = options.stop;
  control.due = options.due;
  control.copy = [&](const Progress& progress) { return arrays.copy(progress); };
  for (int turn = 0; turn < size; ++turn) {  // weights may be one array of all
    if (options.start && turn == rank) arrays.put_back(*options.start);
    communicator.barrier();
  }
  Progress start = options.start ? options.start->progress : Progress{};
  if (!options.left_out.empty()) start.left_out = options.left_out;
  const auto val =
      options.validation ? std::optional(Validation{*val_batches, val_plan}) : std::nullopt;
  made.result = train(parts, val, options.train, start,
                      options.recorder ? *options.recorder : made.recorder, control);
  control.copy = nullptr;
  const Array weights = exchange->arenas().weights;
  check_weights(communicator, backend->memory(), weights);
  made.weights_hash = weights::weights_hash(*program, weights);
  for (std::size_t p = 0; p < program->layout().parameters.size(); ++p) {
    const auto values = program->parameters().to_canonical(p, weights);
    made.weights.insert(made.weights.end(), values.begin(), values.end());
  }
  communicator.barrier();  // nobody lets go of weights that others read
  return made;
}

std::vector<double> losses(const MadeResult& made) {
  std::vector<double> list;
  for (const StepRecord& step : made.recorder.steps) list.push_back(step.tally.mean_loss());
  for (const EpochRecord& epoch : made.recorder.epochs) {
    list.push_back(epoch.train.mean_loss());
    if (epoch.validation) list.push_back(epoch.validation->mean_loss());
  }
  return list;
}

std::map<int, MadeResult> train_ranks(int size, const MadeOptions& options) {
  return train_ranks(size, [&](int) { return options; });
}

std::map<int, MadeResult> train_ranks(int size,
                                      const std::function<MadeOptions(int rank)>& options) {
  std::map<int, MadeResult> results;
  std::mutex mutex;
  threads::run_ranks(size, [&](comm::Communicator& communicator) {
    MadeResult made = train_made(communicator, options(communicator.rank()));
    const std::lock_guard lock(mutex);
    results.emplace(communicator.rank(), std::move(made));
  });
  return results;
}

MadeOptions summed_by(MadeOptions options, const std::string& way) {
  options.allreduce = comm::parse_allreduce(way);
  return options;
}

std::map<std::string, MadeOptions> made_recipes() {
  std::map<std::string, MadeOptions> list;
  MadeOptions accumulate;
  accumulate.plan.accumulate = 3;
  accumulate.optimizer.clip_norm = 0.05;
  list["accumulation and clipping"] = accumulate;
  MadeOptions lars;
  lars.optimizer = {optim::Lars{.trust = 0.02}, 0.1, 0.3};
  lars.rate = {.base = 1, .warmup_epochs = 1, .schedule = optim::PolynomialDecay{2, 0}};
  list["LARS with warm-up"] = lars;
  MadeOptions lamb;
  lamb.optimizer = {optim::Lamb{}, 0.1, {}, 1.0};
  lamb.plan.growth = {{1, 3}};
  list["LAMB with a growing batch"] = lamb;
  MadeOptions strided;
  strided.plan = {.sharding = data::Sharding::strided, .drop_last = true};
  strided.optimizer = {optim::Sgd{.momentum = 0.9}, 0, {}, {}, true};
  strided.rate.schedule = optim::StepDecay{1, 0.5};
  list["strided, momentum corrected"] = strided;
  MadeOptions penalty;
  penalty.l2 = 0.01f;
  penalty.rate.schedule = optim::Plateau{1, 0.5};
  list["L2 and a plateau"] = penalty;
  MadeOptions batch_norm;
  batch_norm.batch_norm = true;
  batch_norm.micro_batch = 22;
  batch_norm.plan = {.accumulate = 2, .growth = {{1, 2}}};
  list["synchronised batch norm of batches that accumulate and grow"] = batch_norm;
  return list;
}

}  // namespace cputrain::loop
