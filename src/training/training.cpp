#include "training/training.h"

#include <fmt/format.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/state_file.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/version.h"
#include "loop/replicas.h"
#include "model/model_json.h"
#include "training/asked_end.h"
#include "training/plan/kept_methods.h"
#include "training/request/choose_training.h"
#include "training/request/training_rows.h"
#include "training/weights/start_weights.h"
#include "weights/load.h"

namespace cputrain::training {
namespace {

/// Everything that must be the same on all ranks before the first step.
std::string identity(const TrainingPlan& plan, const data::DataSource& source) {
  nlohmann::ordered_json flags = effective_flags(plan.spec);
  for (const char* own : {"threads", "io-threads", "bind", "verbose"})
    flags.erase(own);  // may differ
  return fmt::format(
      "cputrain {}, {} parameters ({:016x}), data {:016x} ({} + {} samples), {} at once, {}, {}",
      kVersion, plan.graph.parameter_count(), model::fingerprint(plan.graph),
      source.dataset->fingerprint(), source.train.size(), source.validation.size(),
      plan.micro_batch, json_text(flags),
      json_text(nlohmann::ordered_json(plan.spec.flags.class_weights.by_name)));
}

/// Where `ulimit` lets this process have less than the machine: what is mapped later than now, and
/// the threads that start then. Error(usage). Collective.
void require_memory(const Session& session, const TrainingMemory& memory) {
  constexpr std::size_t kHeap = std::size_t{64} << 20;  // libraries, reports, messages
  const RankMemory& mine = memory.ranks[static_cast<std::size_t>(session.communicator->rank())];
  const std::size_t arrays = mine.elsewhere > 0 ? 0 : mine.state + mine.snapshot;
  system::MemoryToCome to_come{
      .own = arrays + mine.snapshot_host + mine.written + mine.batches + kHeap, .shared = 0};
  const bool alone = session.communicator->size() == 1;
  (alone ? to_come.own : to_come.shared) += memory.shared.cache;
  require_threads(session, threads_beside(session), to_come);
}

/// Whether the plan may do without memory for the images: their data set is one that is decoded,
/// and --cache does not ask for memory.
bool may_leave_memory(const TrainingFlags& flags, const data::DataSource& source) {
  return flags.cache != ImageCache::memory && !source.dataset->ready_form();
}

/// Whether it does: --cache asks for that, or memory has no room for them.
bool leaves_memory(const TrainingFlags& flags, const data::DataSource& source,
                   const data::CacheSize& cache, std::optional<std::size_t> available) {
  if (flags.cache == ImageCache::disk || flags.cache == ImageCache::none) return true;
  return may_leave_memory(flags, source) && available && cache.bytes > *available;
}

std::function<double()> stopped_seconds(system::SignalWatch* signals) {
  if (signals == nullptr) return {};
  return [signals] { return signals->stopped_seconds(); };
}

/// "cat 1, dog 2.5", the first few.
std::string class_weights_text(std::span<const std::string> classes,
                               std::span<const double> weights) {
  constexpr std::size_t kShown = 10;
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(kShown, weights.size()); ++i) {
    words.push_back(fmt::format("{} {:.4g}", printable(classes[i]), weights[i]));
  }
  if (weights.size() > kShown) words.push_back(fmt::format("{} more", weights.size() - kShown));
  return join(words, ", ");
}

}  // namespace

Training::Training(const Session& session, TrainingPlan plan,
                   std::shared_ptr<const data::DataSource> source)
    : session_(session), plan_(std::move(plan)), source_(std::move(source)) {}

data::BatchRequest Training::training_request(bool on_device) const {
  const TrainingSpec& spec = plan_.spec;
  return {.seed = spec.seed,
          .shuffle = spec.shuffle,
          .augment = spec.augment,
          .resize = spec.resize.way,
          .threads = keeps_all() ? session_.place().input_threads : session_.io_threads,
          .prefetch = spec.flags.prefetch,
          .feeder = session_.backend->feeder(),
          .on_device = on_device,
          .filling = is_decoded_later() && !on_device};
}

std::vector<double> Training::weights_of_classes() const {
  const std::vector<std::string> names = class_names(*source_, plan_.classes);
  const std::vector<double> weights =
      class_weights(plan_.spec.flags.class_weights, names, data_->train.labels);
  if (!weights.empty())
    say_detail(session_, "Class weights: " + class_weights_text(names, weights));
  return weights;
}

data::BatchRequest Training::validation_request() const {
  return {.shuffle = false,
          .prefetch = plan_.spec.flags.prefetch,
          .feeder = session_.backend->feeder(),
          .filling = is_decoded_later()};
}

/// Validation has micro-batches of its own on a device, and of images that are still coming.
compute::FeedBytes Training::batch_memory(bool on_device) const {
  const auto memory_of = [&](const data::BatchPlan& plan, const data::BatchRequest& request) {
    return session_.services.data.batch_memory(*source_, plan_.spec.image, plan, request);
  };
  compute::FeedBytes memory = memory_of(batches_->train, training_request(on_device));
  const data::BatchRequest request = validation_request();
  if (!request.feeder && !request.filling) return memory;
  const compute::FeedBytes validation = memory_of(batches_->validation, request);
  return {memory.host + validation.host, memory.device + validation.device};
}

void Training::compile_for(MemoryBefore before) {
  before.batches = batch_memory(false);
  const bool may_stay = session_.backend->feeder() && data::only_moves(plan_.spec.augment);
  if (may_stay) before.kept = batch_memory(true);
  before.views = views_of(plan_, source_->train.size() + source_->validation.size());
  compiled_ = compile_training(session_, plan_, batches_->sizes(), std::move(before));
}

void Training::compile() {
  reached(session_, comm::Phase::compile);
  batches_ = cut_batches(session_, plan_, source_->train.size(), source_->validation.size());
  std::vector<NodeCapacity> capacities = measure_capacities(session_);
  const data::CacheSize cache = session_.services.data.cache_size(*source_, form());
  const TrainingFlags& flags = plan_.spec.flags;
  const auto available = least_available(capacities);
  const bool may_leave = may_leave_memory(flags, *source_);
  const bool leaves = leaves_memory(flags, *source_, cache, available);
  if (!leaves) check_images_fit(flags, form(), *source_, cache, available);
  compile_for({.capacities = std::move(capacities),
               .cache = leaves ? 0 : cache.bytes,
               .may_leave = may_leave});
  if (may_leave && (leaves || compiled_.images_left_out)) {
    place_ =
        place_images(session_, flags, form(), cache, compiled_.images_on_device, compiled_.memory);
  }
  require_memory(session_, compiled_.memory);
  if (!place_.in_memory()) return tell_folders(place_.folders);
  // Planned with what the exchange leaves of memory.
  const auto folders = image_folders(session_, cache.bytes, pack_advice(plan_.spec.flags, form()));
  tell_folders(folders);
}

/// By rank, or none.
void Training::tell_folders(const std::vector<std::string>& folders) {
  if (folders.empty()) return;
  for (NodeCapacity& capacity : compiled_.memory.capacities) {
    capacity.image_folder = folders[static_cast<std::size_t>(capacity.ranks.front())];
  }
}

bool Training::is_decoded_later() const {
  return plan_.spec.flags.decode == Decoding::meanwhile || !keeps_all();
}

void Training::load(Decoding decoding) {
  place_.decoding = compiled_.images_on_device ? Decoding::first : decoding;
  load(std::make_shared<const data::DecodedData>(
      decode_images(session_, plan_.spec.flags, *source_, form(), place_)));
}

void Training::load_the_rest() {
  snapshot_.reset();
  parts_.reset();  // nothing asks for images now
  load(std::make_shared<const data::DecodedData>(
      finish_decoding(session_, plan_.spec.flags, *source_, form(), place_, *data_)));
}

void Training::load(std::shared_ptr<const data::DecodedData> data) {
  data_ = std::move(data);
  batches_ = cut_batches(session_, plan_, data_->train.size(), data_->validation.size());
  // Damaged images make other shares, and so other numbers of images at once.
  if (compiled_.program && data_->bad.empty()) return;
  compiled_ = {};  // before rooms are measured: the same memory is asked for once more
  compile_for({.capacities = measure_capacities(session_)});
}

void Training::make_parts() {
  reached(session_, comm::Phase::load);
  snapshot_.reset();
  parts_.reset();  // its batches end before others begin
  const TrainingSpec& spec = plan_.spec;
  const data::BatchPlan& steps = batches_->train;
  data::BatchRequest request = training_request(compiled_.images_on_device);
  request.class_weights = weights_of_classes();
  request.on_whole = [this, watch = system::Stopwatch()] {
    say_all_decoded(session_, *data_, form(), watch.seconds());
  };
  parts_ = std::make_unique<loop::Parts>(
      program_of(session_, compiled_), spec.optimizer,
      optim::LearningRate(spec.learning_rate,
                          data::training_epochs(steps, spec.epochs, spec.flags.steps)),
      session_.services.data.batches(data_->train, steps, request), steps, timeline_);
  snapshot_.emplace(*parts_);
}

void Training::describe(weights::TrainingData data) {
  const TrainingSpec& spec = plan_.spec;
  description_ =
      weights::ModelDescription{spec.model->name,
                                class_names(*source_, plan_.classes),
                                plan_.graph,
                                spec.seed,
                                spec.flags.validation_share(),
                                spec.resize,
                                spec.flags.exif_choice(),
                                spec.flags.reproducible ? session_.backend->facts().kernels : "",
                                std::move(data)};
}

void Training::start() {
  make_parts();
  use_kept_methods(session_, plan_, *compiled_.program);
  auto [data, table] = start_weights(session_, plan_, *source_, compiled_);
  first_weights_ = std::move(table);
  describe(std::move(data));
  parts_->optimizer.begin_averages();
}

loop::Progress Training::resume(const std::filesystem::path& checkpoint) {
  make_parts();
  check_layouts(session_, compiled_);
  auto [progress, other_kernels] = checkpoint::restore(*parts_, checkpoint);
  use_kept_methods(session_, plan_, *compiled_.program);
  const compute::Tuner& tuner = compiled_.program->tuner();
  if (!tuner.trying()) progress.tuned_methods = tuner.tuned_methods();
  if (plan_.spec.flags.reproducible && !other_kernels.empty()) {
    warn(session_,
         "the checkpoint comes from other kernels ({}; here: {}): weights are not the bits of a "
         "training that was never stopped, which --reproducible promises; for those begin anew in "
         "another --out",
         printable(other_kernels), checkpoint::kernels_of(*session_.backend));
  }
  describe(resumed_data(session_, plan_.spec, *source_, checkpoint));
  return progress;
}

loop::LoopOptions Training::options() const {
  const SafetyFlags& safety = plan_.spec.flags.safety;
  return {end_of(plan_.spec),
          plan_.spec.seed,
          session_.plan.hosts(),
          session_.place().cpus,
          stopped_seconds(session_.services.signals),
          safety.on_nan,
          safety.check_replicas,
          safety.keeps_best(),
          plan_.spec.flags.eval_every};
}

loop::TrainResult Training::run(const loop::Progress& start, loop::Reporter& reporter,
                                loop::Control& control) {
  const auto images =
      session_.services.data.batches(data_->validation, batches_->validation, validation_request());
  const auto validation = data_->validation.size()
                              ? std::optional(loop::Validation{*images, batches_->validation})
                              : std::nullopt;
  const loop::TrainResult result =
      loop::train(*parts_, validation, options(), start, reporter, control);
  if (!result.roll_back) {
    loop::check_weights(*session_.communicator, session_.backend->memory(), weights());
  }
  return result;
}

loop::TrainResult Training::run(loop::Reporter& reporter,
                                const std::function<bool()>& stop_requested) {
  loop::Control control(stop_requested);
  return run({}, reporter, control);
}

void Training::load_weights(const std::filesystem::path& file) {
  if (session_.leads()) {
    const std::lock_guard lock(parts_->weights_mutex);  // SIGTERM may come now, too
    weights::load_weights(weights::safetensors::open(file), *compiled_.program, weights());
  }
  compiled_.exchange->spread_weights();
}

void Training::save(const std::filesystem::path& file) const {
  const std::lock_guard lock(parts_->weights_mutex);  // SIGTERM may come now, too
  weights::save_weights(file, *description_, *compiled_.program, weights(),
                        system::Durability::disk);
}

void Training::save_averages(const std::filesystem::path& file) {
  std::exception_ptr failure;
  loop::with_averages(*parts_, [&] {
    try {
      if (session_.leads()) {
        weights::save_weights(file, *description_, *compiled_.program, weights(),
                              system::Durability::disk);
      }
    } catch (...) {  // the others wait for the weights to come back
      failure = std::current_exception();
    }
  });
  if (failure) std::rethrow_exception(failure);
}

void Training::check_replicas() const {
  check_agreement(session_, "their weights after training",
                  fmt::format("{:016x}", compute::hash_of(session_.backend->memory(), weights())));
}

Training open_training(const Session& session, TrainingSpec spec) {
  reached(session, comm::Phase::data);
  data::DataRequest request = spec.flags.data_request(spec.seed);
  request.memory = rank_memory(measure_capacities(session), 0);
  auto source = std::make_shared<const data::DataSource>(session.services.data.open(request));
  say_data(session, *source);
  follow_ready_form(spec, *source);
  const data::CacheSize cache = session.services.data.cache_size(*source, image_form(spec));
  const std::vector<NodeCapacity> capacities = measure_capacities(session);
  // Images that memory has no room for lie elsewhere, and leave it to the ranks.
  const bool leave = leaves_memory(spec.flags, *source, cache, least_available(capacities));
  const auto memory = session.device.chosen()
                          ? least_available(capacities, &NodeCapacity::backend_available)
                          : rank_memory(capacities, leave ? 0 : cache.bytes);
  TrainingPlan plan = plan_training(session, spec, classes_of(spec, *source), memory);
  check_agreement(session, "program, flags or data", identity(plan, *source));
  check_class_weights(spec.flags.class_weights, source->dataset->classes());
  check_watchers(session, spec, *source);
  plan.spec.flags.safety.save_best = spec.flags.safety.keeps_best() && !source->validation.empty();
  return {session, std::move(plan), std::move(source)};
}

}  // namespace cputrain::training
