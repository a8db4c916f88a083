// A training as a checkpoint has it. Rank 0 reads and checks all files before anything changes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "checkpoint/folder.h"
#include "core/text.h"
#include "job/checkpoint/arena_tensors.h"
#include "job/checkpoint/own_parts.h"
#include "job/checkpoint/progress_json.h"
#include "job/checkpoint/snapshot.h"
#include "job/checkpoint/state_file.h"

namespace cputrain::job {
namespace {

/// The files of a checkpoint, opened by rank 0.
struct Files {
  explicit Files(const std::filesystem::path& folder)
      : state(read_state(folder)),
        model(folder / checkpoint::kModelName),
        optimizer(folder / checkpoint::kOptimizerName),
        ranks(folder / checkpoint::kRanksName) {}

  SavedState state;
  TensorFile model, optimizer, ranks;
};

std::vector<std::size_t> extents_of(const compute::Parameter& parameter) {
  return {parameter.extents.begin(), parameter.extents.end()};
}

class Restoring {
 public:
  Restoring(const Session& session, const TrainingPlan& plan, const CompiledTraining& compiled,
            Training& training)
      : session_(session),
        reproducible_(plan.spec.flags.reproducible),
        state_names_(optim::state_names(plan.spec.optimizer.rule)),
        compiled_(compiled),
        training_(training),
        memory_(session.backend->memory()),
        own_parts_(session, compiled) {}

  train::Progress run(const std::filesystem::path& folder) {
    on_rank_0(session_, [&] { open(folder); });
    train::Progress progress = spread_progress();
    on_rank_0(session_, [&] { load_weights(); });
    compiled_.exchange->spread_weights();
    restore_state();
    progress.own_images = own_parts_.restore(files_ ? &files_->ranks : nullptr, progress.own_images,
                                             training_.weights_mutex());
    training_.learning_rate().set_plateau(progress.plateau);
    training_.optimizer().set_last_rate(progress.last_rate);
    if (!progress.findings.empty()) compiled_.program->tuner().use_findings(progress.findings);
    return progress;
  }

 private:
  const compute::ParameterLayout& layout() const { return compiled_.program->layout(); }

  void open(const std::filesystem::path& folder) {
    files_.emplace(folder);
    for (const compute::Parameter& p : layout().parameters) {
      files_->model.require(p.name, extents_of(p));
      if (!p.learnt) continue;
      for (const std::string_view name : state_names_) {
        files_->optimizer.require(state_tensor_name(p.name, name), extents_of(p));
      }
    }
    files_->model.require_no_others();
    files_->optimizer.require_no_others();
    own_parts_.check(files_->ranks);
  }

  /// Findings of other kernels are left behind.
  void compare_kernels() {
    const std::string &then = files_->state.findings_of, now = findings_of(session_);
    if (then == now) return;
    files_->state.progress.findings.clear();
    if (!reproducible_ || then.empty()) return;
    warn(session_,
         fmt::format("the checkpoint comes from other kernels ({}; here: {}): weights are "
                     "not the bits of a training that was never stopped, which "
                     "--reproducible promises; for those begin anew in another --out",
                     printable(then), now));
  }

  train::Progress spread_progress() {
    std::string text;
    if (session_.leads()) {
      compare_kernels();
      text = to_json(files_->state.progress).dump();
    }
    return progress_of(nlohmann::ordered_json::parse(session_.communicator->gather(text).front()));
  }

  void load_weights() {
    const std::lock_guard lock(training_.weights_mutex());
    put(files_->model, compiled_.exchange->arenas().weights, all_parameters,
        [](const std::string& parameter) { return parameter; });
  }

  /// Rank 0's memory has room for one array at a time: that of a snapshot, which is not there yet.
  void restore_state() {
    if (state_names_.empty()) return;
    train::ArenaOwners owners(*session_.communicator, compiled_.exchange->owned());
    compute::OwnedArray whole;
    for (std::size_t slot = 0; slot < state_names_.size(); ++slot) {
      on_rank_0(session_, [&] {
        if (slot == 0) whole = compute::OwnedArray(memory_, layout().gradient_size, layout().dtype);
        put(files_->optimizer, whole.array(), learnt_parameters, [&](const std::string& parameter) {
          return state_tensor_name(parameter, state_names_[slot]);
        });
      });
      owners.deal_to_all(training_.optimizer().state(slot), memory_, whole.array());
    }
  }

  void put(const TensorFile& file, const Array& arena, const Chosen& chosen,
           const std::function<std::string(const std::string&)>& name) const {
    const auto& parameters = layout().parameters;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (!chosen(parameters[p])) continue;
      compiled_.program->parameters().from_canonical(p, file.read(name(parameters[p].name)), arena);
    }
  }

  const Session& session_;
  bool reproducible_;
  std::vector<std::string_view> state_names_;
  const CompiledTraining& compiled_;
  Training& training_;
  compute::Memory& memory_;
  OwnParts own_parts_;
  std::optional<Files> files_;  ///< rank 0's
};

}  // namespace

train::Progress restore(const Session& session, const TrainingPlan& plan,
                        const CompiledTraining& compiled, Training& training,
                        const std::filesystem::path& folder) {
  return Restoring(session, plan, compiled, training).run(folder);
}

}  // namespace cputrain::job
