#include "checkpoint/snapshot.h"

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checkpoint/arena_tensors.h"
#include "checkpoint/folder.h"
#include "checkpoint/own_parts.h"
#include "comm/communicator.h"
#include "compute/memory.h"
#include "core/error.h"
#include "weights/load.h"

namespace cputrain::checkpoint {
namespace {

/// Such weights would take the place of good ones, and a resume would go on from them.
void require_numbers(compute::Memory& memory, const Array& weights) {
  bool good = true;
  compute::read_in_pieces(memory, weights, [&good](const Array& piece) {
    good = good && (piece.dtype == DType::f32 ? compute::all_numbers(piece.as<float>())
                                              : compute::all_numbers(piece.as<double>()));
  });
  if (good) return;
  fail(ExitCode::failed,
       "some weights are NaN or infinite (nothing could go on from them); try a smaller --lr");
}

/// Those of which an optimizer keeps such a state: what is learnt; averages of statistics, too.
Chosen kept_by(std::string_view state) {
  const bool averages = state == loop::kAverageName;
  return [averages](const compute::Parameter& parameter) {
    return parameter.learnt || (averages && parameter.averaged);
  };
}

/// An optimizer array's: "conv2d/kernel/momentum".
std::string state_tensor_name(std::string_view parameter, std::string_view state) {
  return fmt::format("{}/{}", parameter, state);
}

/// A tensor a parameter, named by `name` from the parameter's. The program and the arena must live
/// until they are written.
void add_tensors(std::vector<weights::safetensors::OutTensor>& tensors,
                 const compute::Program& program, const Array& arena, const Chosen& chosen,
                 const std::function<std::string(const std::string&)>& name) {
  const auto& parameters = program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!chosen(parameters[p])) continue;
    weights::safetensors::OutTensor tensor{
        name(parameters[p].name), {parameters[p].extents.begin(), parameters[p].extents.end()}, {}};
    if (arena.dtype == DType::f64) {
      tensor.doubles = [&program, arena, p] { return program.parameters().to_canonical(p, arena); };
    } else {
      tensor.values = [&program, arena, p] {
        return program.parameters().to_canonical_floats(p, arena);
      };
    }
    tensors.push_back(std::move(tensor));
  }
}

/// The files of a checkpoint, opened by rank 0.
struct Files {
  explicit Files(const std::filesystem::path& folder)
      : state(read_state(folder)),
        model(folder / kModelName),
        optimizer(folder / kOptimizerName),
        ranks(folder / kRanksName) {}

  SavedState state;
  TensorFile model, optimizer, ranks;
};

std::vector<std::size_t> extents_of(const compute::Parameter& parameter) {
  return {parameter.extents.begin(), parameter.extents.end()};
}

/// Checks names and shapes of the tensors of weights and optimizer state.
void check_tensors(const loop::Parts& training, Files& files) {
  const auto state_names = loop::state_names(training.optimizer.options());
  for (const compute::Parameter& p : training.program.layout().parameters) {
    files.model.require(p.name, extents_of(p));
    for (const std::string_view name : state_names) {
      if (!kept_by(name)(p)) continue;
      files.optimizer.require(state_tensor_name(p.name, name), extents_of(p));
    }
  }
  files.model.require_no_others();
  files.optimizer.require_no_others();
}

/// Tuned methods of other kernels are left behind; returns which they are of.
std::string compare_kernels(const loop::Parts& training, SavedState& state) {
  if (state.tuned_for == kernels_of(training.backend)) return "";
  state.progress.tuned_methods.clear();
  return std::move(state.tuned_for);
}

/// `progress`: rank 0's.
loop::Progress spread_progress(const loop::Parts& training, const loop::Progress& progress) {
  const std::string text = training.leads() ? to_json(progress).dump() : "";
  return progress_of(nlohmann::ordered_json::parse(training.communicator.gather(text).front()));
}

void put(const loop::Parts& training, const TensorFile& file, const Array& arena,
         const Chosen& chosen, const std::function<std::string(const std::string&)>& name) {
  const auto& parameters = training.program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!chosen(parameters[p])) continue;
    training.program.parameters().from_canonical(p, file.read(name(parameters[p].name)), arena);
  }
}

void restore_averages(loop::Parts& training, const Array& whole) {
  compute::Memory& memory = training.memory();
  for (const auto& [range, values] : training.optimizer.averaged_statistics()) {
    std::vector<double> numbers(range.size());
    if (training.leads()) {
      numbers = compute::read_numbers(memory, whole.slice(range.begin, range.end));
    }
    training.communicator.broadcast(std::as_writable_bytes(std::span(numbers)), 0);
    compute::write_numbers(memory, numbers, values);
  }
}

/// Rank 0's memory has room for one array at a time: that of a snapshot, which is not there yet.
/// `file` is rank 0's.
void restore_state(loop::Parts& training, const TensorFile* file) {
  const auto state_names = loop::state_names(training.optimizer.options());
  if (state_names.empty()) return;
  loop::ArenaOwners owners(training.communicator, training.exchange.owned());
  const compute::ParameterLayout& layout = training.program.layout();
  compute::OwnedArray whole;
  for (std::size_t slot = 0; slot < state_names.size(); ++slot) {
    comm::on_rank_0(training.communicator, [&] {
      if (slot == 0) whole = {training.memory(), layout.arena_size, layout.dtype};
      put(training, *file, whole.array(), kept_by(state_names[slot]),
          [&](const std::string& parameter) {
            return state_tensor_name(parameter, state_names[slot]);
          });
    });
    owners.deal_to_all(training.optimizer.state(slot), training.memory(), whole.array());
  }
  restore_averages(training, whole.array());  // the last are averages, if there are any
}

}  // namespace

struct Snapshot::Copy {
  explicit Copy(loop::Parts& of)
      : training(of),
        memory(of.memory()),
        state_names(loop::state_names(of.optimizer.options())),
        owners(of.communicator, of.exchange.owned()),
        own_parts(of) {}

  bool leads() const { return training.leads(); }
  const compute::Program& program() const { return training.program; }
  Array arena() const { return training.exchange.arenas().weights; }
  void allocate_weights();
  void allocate_all();
  void copy_weights();
  void copy_state();

  const loop::Parts& training;
  compute::Memory& memory;
  std::vector<std::string_view> state_names;
  loop::ArenaOwners owners;
  OwnParts own_parts;
  compute::OwnedArray weights;             ///< rank 0's, as the two below
  std::vector<compute::OwnedArray> state;  ///< by name
  loop::Progress progress;
};

void Snapshot::Copy::allocate_weights() {
  if (!leads() || weights.array().size > 0) return;
  weights = compute::OwnedArray(memory, arena().size, arena().dtype);
}

void Snapshot::Copy::allocate_all() {
  allocate_weights();
  if (!leads()) return;
  const compute::ParameterLayout& layout = program().layout();
  while (state.size() < state_names.size()) {
    // Averages are of statistics, too, which lie behind what is learnt.
    const bool averages = state_names[state.size()] == loop::kAverageName;
    state.emplace_back(memory, averages ? layout.arena_size : layout.gradient_size, layout.dtype);
  }
  own_parts.allocate();
}

/// Every rank has all weights.
void Snapshot::Copy::copy_weights() {
  if (leads()) memory.copy(arena().data, weights.array().data, weights.bytes());
}

void Snapshot::Copy::copy_state() {
  for (std::size_t slot = 0; slot < state_names.size(); ++slot) {
    owners.gather(0, training.optimizer.state(slot), memory,
                  leads() ? state[slot].array() : Array{});
  }
  if (!leads() || !training.optimizer.averages()) return;
  for (const auto& [range, values] : training.optimizer.averaged_statistics()) {
    const Array to = state.back().array().slice(range.begin, range.end);
    memory.copy(values.data, to.data, to.bytes().size());
  }
}

Snapshot::Snapshot(loop::Parts& training) : copy_(std::make_unique<Copy>(training)) {}

Snapshot::~Snapshot() = default;

void Snapshot::take(const loop::Progress& progress) {
  Copy& copy = *copy_;
  comm::attempt_together(
      copy.training.communicator, [&] { copy.allocate_all(); }, [] {});
  copy.copy_weights();
  copy.copy_state();
  copy.own_parts.take(progress.own_images, copy.weights.array());
  copy.progress = progress;
  copy.progress.own_images = copy.own_parts.all_images();
}

void Snapshot::take_weights(const compute::OwnedArray* elsewhere) {
  Copy& copy = *copy_;
  comm::attempt_together(
      copy.training.communicator, [&] { copy.allocate_weights(); }, [] {});
  if (elsewhere == nullptr) return copy.copy_weights();
  copy.memory.copy(copy.arena().data, elsewhere->array().data, elsewhere->bytes());
}

std::shared_ptr<compute::OwnedArray> Snapshot::memory_elsewhere() const {
  try {
    const Array arena = copy_->arena();
    return std::make_shared<compute::OwnedArray>(copy_->memory, arena.size, arena.dtype);
  } catch (const std::exception&) {  // Error of a device, too
    return nullptr;
  }
}

void Snapshot::write(const std::filesystem::path& folder,
                     const weights::ModelDescription& description,
                     const nlohmann::ordered_json& facts) const {
  const Copy& copy = *copy_;
  comm::Pulse& pulse = copy.training.communicator.pulse();  // each file counts: disks may be slow
  require_numbers(copy.memory, copy.weights.array());
  const std::string step = std::to_string(copy.progress.steps);
  weights::safetensors::Metadata metadata = weights::weights_metadata(description);
  metadata["step"] = step;
  std::vector<weights::safetensors::OutTensor> tensors;
  add_tensors(tensors, copy.program(), copy.weights.array(), all_parameters,
              [](const std::string& parameter) { return parameter; });
  weights::safetensors::write(folder / kModelName, metadata, std::move(tensors));
  pulse.moved();

  tensors.clear();
  for (std::size_t slot = 0; slot < copy.state.size(); ++slot) {
    add_tensors(tensors, copy.program(), copy.state[slot].array(), kept_by(copy.state_names[slot]),
                [name = copy.state_names[slot]](const std::string& parameter) {
                  return state_tensor_name(parameter, name);
                });
  }
  weights::safetensors::write(folder / kOptimizerName, {{"format", "cputrain"}, {"step", step}},
                              std::move(tensors));
  pulse.moved();
  copy.own_parts.write(folder / kRanksName, copy.progress.steps);
  write_state(folder, copy.progress, kernels_of(copy.training.backend), facts);
}

void Snapshot::write_weights(const std::filesystem::path& file,
                             const weights::ModelDescription& description,
                             const compute::OwnedArray* elsewhere) const {
  const Array weights = elsewhere ? elsewhere->array() : copy_->weights.array();
  require_numbers(copy_->memory, weights);
  weights::save_weights(file, description, copy_->program(), weights);
}

SnapshotBytes snapshot_bytes(const loop::RankProgram& training,
                             const loop::OptimizerOptions& optimizer, int nodes) {
  if (!training.leads()) return {};
  const compute::ParameterLayout& layout = training.program.layout();
  const std::size_t size = size_of(layout.dtype);
  const std::size_t slots = loop::state_names(optimizer).size();
  const std::size_t statistics = optimizer.ema > 0 ? layout.arena_size - layout.gradient_size : 0;
  const SnapshotBytes own = OwnParts::bytes(training, nodes);
  const std::size_t numbers = layout.arena_size + slots * layout.gradient_size + statistics;
  return {numbers * size + own.arrays, own.host};
}

/// Rank 0 opens all files and checks their tensors' names and shapes before anything changes; their
/// checksums were compared when the checkpoint was chosen (manifest.cpp).
SavedState restore(loop::Parts& training, const std::filesystem::path& folder) {
  OwnParts own_parts(training);
  std::optional<Files> files;  // rank 0's
  comm::on_rank_0(training.communicator, [&] {
    files.emplace(folder);
    check_tensors(training, *files);
    own_parts.check(files->ranks);
  });
  std::string other_kernels = files ? compare_kernels(training, files->state) : "";
  loop::Progress progress =
      spread_progress(training, files ? files->state.progress : loop::Progress{});
  comm::on_rank_0(training.communicator, [&] {
    const std::lock_guard lock(training.weights_mutex);
    put(training, files->model, training.exchange.arenas().weights, all_parameters,
        [](const std::string& parameter) { return parameter; });
  });
  training.exchange.spread_weights();
  restore_state(training, files ? &files->optimizer : nullptr);
  progress.own_images = own_parts.restore(files ? &files->ranks : nullptr, progress.own_images);
  training.learning_rate.set_plateau(progress.plateau);
  training.optimizer.set_last_rate(progress.last_rate);
  if (!progress.tuned_methods.empty()) {
    training.program.tuner().use_tuned_methods(progress.tuned_methods);
  }
  return {progress, std::move(other_kernels)};
}

}  // namespace cputrain::checkpoint
