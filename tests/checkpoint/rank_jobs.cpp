#include "tests/checkpoint/rank_jobs.h"

#include <fmt/format.h>

#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"
#include "backends/threads/threads_communicator.h"
#include "checkpoint/arena_tensors.h"
#include "checkpoint/folder.h"
#include "exchange/compression/compression.h"
#include "logging/reporters.h"
#include "tests/support/locked_backend.h"

namespace cputrain::training {

std::unique_ptr<compute::Backend> floats() { return reference::make_reference_backend(DType::f32); }
std::unique_ptr<compute::Backend> doubles() {
  return reference::make_reference_backend(DType::f64);
}
std::unique_ptr<compute::Backend> locked() { return testing::make_locked_backend(floats()); }
std::unique_ptr<compute::Backend> own_kernels() {
  return cpu::cpu_backend_available() ? cpu::make_cpu_backend(1, {}) : floats();
}

namespace {

/// A session of one thread's rank, which borrows its communicator.
class RankSession {
 public:
  RankSession(const Services& services, comm::Communicator& communicator, const RankJob& job)
      : session_{.services = services, .communicator = nullptr} {
    session_.communicator.reset(&communicator);
    session_.quiet = true;
    session_.nodes = comm::read_node_map(communicator);
    session_.backend = job.backend();
    for (int rank = 0; rank < communicator.size(); ++rank) {
      session_.plan.ranks.push_back({.rank = rank, .host = "here"});
      session_.plan.ranks.back().communication_core = job.overlap;
    }
  }
  ~RankSession() { (void)session_.communicator.release(); }
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  const Session& get() const { return session_; }

 private:
  Session session_;
};

std::vector<std::byte> bytes_of(compute::Memory& memory, const Array& array) {
  std::vector<std::byte> bytes(array.bytes().size());
  memory.read(array.data, bytes);
  return bytes;
}

RawState raw_state(Training& training, double own_images) {
  compute::Memory& memory = training.session().backend->memory();
  exchange::GradientExchange& exchange = *training.compiled().exchange;
  RawState raw{.weights = bytes_of(memory, training.weights()), .own_images = own_images};
  const auto slots = loop::state_names(training.plan().spec.optimizer).size();
  for (std::size_t slot = 0; slot < slots; ++slot) {
    for (const compute::ArenaPart& part : training.parts().optimizer.state(slot)) {
      raw.state.push_back(bytes_of(memory, part.values));
    }
  }
  for (const compute::ArenaPart& part : training.parts().optimizer.averaged_statistics()) {
    raw.state.push_back(bytes_of(memory, part.values));
  }
  exchange::KeptParts* const kept = exchange.kept_parts();
  if (!kept) return raw;
  for (const Range& own : exchange.owned()) {
    const auto part =
        compute::read_numbers(compute::host_memory(), kept->unsent().slice(own.begin, own.end));
    raw.unsent.insert(raw.unsent.end(), part.begin(), part.end());
  }
  return raw;
}

/// Takes a checkpoint behind a step, and has a thread write it.
class OneCheckpoint final : public loop::Control {
 public:
  OneCheckpoint(Training& training, RankResult& result, std::uint64_t step,
                std::filesystem::path folder)
      : training_(training), result_(result), step_(step), folder_(std::move(folder)) {}
  ~OneCheckpoint() override {
    if (writer_.joinable()) writer_.join();
  }

  bool stop_requested() override { return false; }
  bool checkpoint_due(const loop::Progress& progress) override {
    return progress.steps == step_ && !taken_;
  }
  void take_checkpoint(const loop::Progress& progress) override {
    taken_ = true;
    result_.progress = progress;
    result_.at_checkpoint = raw_state(training_, progress.own_images);
    training_.snapshot().take(progress);
    if (training_.session().leads()) {
      writer_ = std::thread([this] {
        training_.snapshot().write(folder_, training_.description(), {{"fact", "of a test"}});
      });
    }
  }

 private:
  Training& training_;
  RankResult& result_;
  std::uint64_t step_;
  std::filesystem::path folder_;
  bool taken_ = false;
  std::thread writer_;
};

void go_on(Training& training, const loop::Progress& start, loop::Control& control,
           RankResult& result) {
  const auto silent = logging::all_of({});
  result.steps = training.run(start, *silent, control).progress.steps;
  result.weights = checkpoint::numbers_of(*training.compiled().program, training.weights(),
                                          checkpoint::all_parameters);
}

}  // namespace

RankJobs::RankJobs() : services_(composition::make_services(launcher_, signals_)) {}

TrainingFlags RankJobs::flags(const std::string& optimizer, const std::string& layers) {
  const std::filesystem::path model = path() / fmt::format("model{}.json", models_++);
  std::ofstream(model) << R"({"format": "cputrain model 1", "name": "tiny",
    "recipe": {"image_size": 8, "batch": 6, "epochs": 2, "optimizer": "sgd",
               "learning_rate": 0.05},
    "layers": [{"type": "convolution", "filters": 5, "kernel": 3},)"
                       << layers
                       << R"({"type": "relu"}, {"type": "max_pool", "size": 2}, {"type": "flatten"},
               {"type": "dense", "units": 19}, {"type": "relu"}, {"type": "dropout", "rate": 0.3},
               {"type": "dense", "units": "classes", "name": "head"}, {"type": "softmax"}]})";
  TrainingFlags flags;
  flags.model = model;
  flags.data = "synthetic:40";  // 36 of which train, six steps an epoch
  flags.optimizer.rule = optimizer;
  flags.micro_batch = 2;
  flags.threads = 1;
  flags.verbose = 0;
  flags.seed = 5;
  return flags;
}

std::vector<RankResult> RankJobs::on_ranks(
    const RankJob& made, const std::function<void(Training&, RankResult&)>& work) {
  std::vector<RankResult> results(static_cast<std::size_t>(made.ranks));
  threads::run_ranks(
      made.ranks,
      [&](comm::Communicator& communicator) {
        const RankSession session(services_, communicator, made);
        Training training = open_training(session.get(), choose_training(made.flags));
        training.load();
        work(training, results[static_cast<std::size_t>(communicator.rank())]);
        communicator.barrier();  // nobody lets go of weights that others read
      },
      made.ranks_a_node);
  return results;
}

std::vector<RankResult> RankJobs::train(const RankJob& made, std::uint64_t checkpoint_step,
                                        const std::filesystem::path& folder) {
  return on_ranks(made, [&](Training& training, RankResult& result) {
    training.start();
    OneCheckpoint control(training, result, checkpoint_step, folder);
    go_on(training, {}, control, result);
  });
}

std::vector<RankResult> RankJobs::resume(const RankJob& made, const std::filesystem::path& folder,
                                         int times) {
  return on_ranks(made, [&](Training& training, RankResult& result) {
    for (int i = 0; i < times; ++i) {
      result.progress =
          training.resume(training.session().leads() ? folder : std::filesystem::path());
      result.at_checkpoint = raw_state(training, result.progress.own_images);
      loop::Control control;
      go_on(training, result.progress, control, result);
    }
  });
}

std::vector<RankResult> RankJobs::copy(const RankJob& made, const std::filesystem::path& from,
                                       const std::filesystem::path& to,
                                       const std::function<void(Training&)>& change) {
  return on_ranks(made, [&](Training& training, RankResult& result) {
    result.progress = training.resume(training.session().leads() ? from : std::filesystem::path());
    result.at_checkpoint = raw_state(training, result.progress.own_images);
    if (change) change(training);
    training.snapshot().take(result.progress);
    if (training.session().leads()) training.snapshot().write(to, training.description(), {});
  });
}

std::filesystem::path RankJobs::folder(const std::string& name) {
  const std::filesystem::path made = path() / name;
  std::filesystem::create_directory(made);
  return made;
}

std::vector<std::string> tensors_of(const std::filesystem::path& path) {
  const weights::TensorFile file = weights::safetensors::open(path);
  std::vector<std::string> texts;
  for (const auto& tensor : file.tensors()) {
    texts.push_back(fmt::format("{} {} [{}]: {}", tensor.name, tensor.dtype,
                                fmt::join(tensor.extents, ","), fmt::join(file.read(tensor), ",")));
  }
  std::ranges::sort(texts);
  return texts;
}

std::vector<double> numbers_in(const std::filesystem::path& path, const std::string& tensor) {
  const weights::TensorFile file = weights::safetensors::open(path);
  const auto* const found = file.find(tensor);
  return found ? file.read(*found) : std::vector<double>();
}

}  // namespace cputrain::training
