// A training as a checkpoint has it. Rank 0 opens all files and checks their tensors' names and
// shapes before anything changes; their checksums were compared when the checkpoint was chosen
// (verify.cpp).

#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/arena_tensors.h"
#include "checkpoint/folder.h"
#include "checkpoint/own_parts.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/state_file.h"

namespace cputrain::checkpoint {
namespace {

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

class Restoring {
 public:
  explicit Restoring(loop::Parts& training)
      : training_(training),
        state_names_(loop::state_names(training.optimizer.options())),
        own_parts_(training) {}

  Restored run(const std::filesystem::path& folder) {
    on_rank_0(training_.communicator, [&] { open(folder); });
    loop::Progress progress = spread_progress();
    on_rank_0(training_.communicator, [&] { load_weights(); });
    training_.exchange.spread_weights();
    restore_state();
    progress.own_images =
        own_parts_.restore(files_ ? &files_->ranks : nullptr, progress.own_images);
    training_.learning_rate.set_plateau(progress.plateau);
    training_.optimizer.set_last_rate(progress.last_rate);
    if (!progress.tuned_methods.empty())
      training_.program.tuner().use_tuned_methods(progress.tuned_methods);
    return {progress, std::move(other_kernels_)};
  }

 private:
  const compute::ParameterLayout& layout() const { return training_.program.layout(); }

  void open(const std::filesystem::path& folder) {
    files_.emplace(folder);
    for (const compute::Parameter& p : layout().parameters) {
      files_->model.require(p.name, extents_of(p));
      for (const std::string_view name : state_names_) {
        if (!kept_by(name)(p)) continue;
        files_->optimizer.require(state_tensor_name(p.name, name), extents_of(p));
      }
    }
    files_->model.require_no_others();
    files_->optimizer.require_no_others();
    own_parts_.check(files_->ranks);
  }

  /// Tuned methods of other kernels are left behind.
  void compare_kernels() {
    if (files_->state.tuned_for == kernels_of(training_.backend)) return;
    files_->state.progress.tuned_methods.clear();
    other_kernels_ = std::move(files_->state.tuned_for);
  }

  loop::Progress spread_progress() {
    std::string text;
    if (training_.leads()) {
      compare_kernels();
      text = to_json(files_->state.progress).dump();
    }
    return progress_of(nlohmann::ordered_json::parse(training_.communicator.gather(text).front()));
  }

  void load_weights() {
    const std::lock_guard lock(training_.weights_mutex);
    put(files_->model, training_.exchange.arenas().weights, all_parameters,
        [](const std::string& parameter) { return parameter; });
  }

  /// Rank 0's memory has room for one array at a time: that of a snapshot, which is not there yet.
  void restore_state() {
    if (state_names_.empty()) return;
    loop::ArenaOwners owners(training_.communicator, training_.exchange.owned());
    compute::OwnedArray whole;
    for (std::size_t slot = 0; slot < state_names_.size(); ++slot) {
      on_rank_0(training_.communicator, [&] {
        if (slot == 0) whole = {training_.memory(), layout().arena_size, layout().dtype};
        put(files_->optimizer, whole.array(), kept_by(state_names_[slot]),
            [&](const std::string& parameter) {
              return state_tensor_name(parameter, state_names_[slot]);
            });
      });
      owners.deal_to_all(training_.optimizer.state(slot), training_.memory(), whole.array());
    }
    restore_statistics(whole.array());  // the last are averages, if there are any
  }

  void restore_statistics(const Array& whole) {
    compute::Memory& memory = training_.memory();
    for (const auto& [range, values] : training_.optimizer.averaged_statistics()) {
      std::vector<double> numbers(range.size());
      if (training_.leads()) {
        numbers = compute::read_numbers(memory, whole.slice(range.begin, range.end));
      }
      training_.communicator.broadcast(std::as_writable_bytes(std::span(numbers)), 0);
      compute::write_numbers(memory, numbers, values);
    }
  }

  void put(const TensorFile& file, const Array& arena, const Chosen& chosen,
           const std::function<std::string(const std::string&)>& name) const {
    const auto& parameters = layout().parameters;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (!chosen(parameters[p])) continue;
      training_.program.parameters().from_canonical(p, file.read(name(parameters[p].name)), arena);
    }
  }

  loop::Parts& training_;
  std::vector<std::string_view> state_names_;
  OwnParts own_parts_;
  std::optional<Files> files_;  ///< rank 0's
  std::string other_kernels_;   ///< the same
};

}  // namespace

Restored restore(loop::Parts& training, const std::filesystem::path& folder) {
  return Restoring(training).run(folder);
}

}  // namespace cputrain::checkpoint
