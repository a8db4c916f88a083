#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "checkpoint/schedule.h"
#include "checkpoint/state_file.h"
#include "loop/parts.h"
#include "loop/progress.h"
#include "optim/update_rule.h"
#include "weights/description.h"

namespace cputrain::checkpoint {

/// Bytes that a snapshot takes of rank 0, in its backend's memory and in the host's.
struct SnapshotBytes {
  std::size_t arrays = 0;  ///< weights and optimizer state, where the backend's arrays lie
  std::size_t host = 0;    ///< what ranks have of their own
};

/// All that a training is between two steps, copied, so that the training goes on while the copy is
/// written. Rank 0 has it; the others send what they own. The form in files is canonical (Keras'
/// layout, by parameters' names): it depends neither on the backend nor on the number of ranks, but
/// for what each rank has of its own (own_parts.h).
class Snapshot {
 public:
  /// Borrows them. Allocates at the first take(). Collective.
  explicit Snapshot(loop::Parts&);
  ~Snapshot();

  /// Copies; what was copied before is overwritten. Collective, between two steps. Error(internal)
  /// on all ranks where rank 0 has no room.
  void take(const loop::Progress&);
  /// The weights alone, with statistics as they are, for the best ones. Collective. Rank 0 may have
  /// them copied elsewhere, while a thread writes what is here.
  void take_weights(const compute::OwnedArray* elsewhere = nullptr);
  /// Room for that; null where there is no memory for it. Of rank 0.
  std::shared_ptr<compute::OwnedArray> memory_elsewhere() const;

  /// Writes the files of a checkpoint into a folder, each with fsync: weights with their
  /// description, optimizer state, what ranks have of their own, and state.json: the progress, with
  /// the images of all ranks as its own, and `facts` beside it. Of rank 0, from any thread, while
  /// no take() runs. Error(output).
  void write(const std::filesystem::path& folder, const weights::ModelDescription&,
             const nlohmann::ordered_json& facts) const;
  /// The weights alone, as save_weights() does, or those that lie elsewhere. From any thread.
  void write_weights(const std::filesystem::path& file, const weights::ModelDescription&,
                     const compute::OwnedArray* elsewhere = nullptr) const;

 private:
  struct Copy;
  std::unique_ptr<Copy> copy_;
};

/// Nothing on ranks other than 0. `nodes`: that the ranks are on. Sends nothing.
SnapshotBytes snapshot_bytes(const loop::RankProgram&, const loop::OptimizerOptions&, int nodes);

/// Puts a checkpoint into a training whose program was compiled: weights, optimizer state,
/// statistics, remainders, tuned methods, plateau, whatever they were before. On rank 0 `folder` is
/// a whole checkpoint's (its files are read as hostile all the same); others pass nothing. The
/// number of ranks and the backend may differ from those that wrote it: own_parts.h has what that
/// means. Tuned methods are of use to the same kernels only; others keep their own or try anew.
/// Returns its state, whose `tuned_for` is there on rank 0 where other kernels wrote it.
/// Collective; Error(data) on all ranks.
SavedState restore(loop::Parts&, const std::filesystem::path& folder);

}  // namespace cputrain::checkpoint
