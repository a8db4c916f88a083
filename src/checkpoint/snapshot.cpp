#include "checkpoint/snapshot.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/arena_tensors.h"
#include "checkpoint/folder.h"
#include "checkpoint/own_parts.h"
#include "checkpoint/state_file.h"
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
                             const loop::OptimizerOptions& optimizer, int nodes,
                             SnapshotScope kept) {
  if (!training.leads() || kept == SnapshotScope::nothing) return {};
  const compute::ParameterLayout& layout = training.program.layout();
  const std::size_t size = size_of(layout.dtype);
  SnapshotBytes bytes{.arrays = layout.arena_size * size};
  if (kept == SnapshotScope::weights) return bytes;
  const std::size_t slots = loop::state_names(optimizer).size();
  const std::size_t statistics = optimizer.ema > 0 ? layout.arena_size - layout.gradient_size : 0;
  const OwnParts::Bytes own = OwnParts::bytes(training, nodes);
  bytes.arrays += (slots * layout.gradient_size + statistics) * size + own.elsewhere;
  bytes.host = own.host;
  return bytes;
}

}  // namespace cputrain::checkpoint
