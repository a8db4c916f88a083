#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/arena_tensors.h"
#include "checkpoint/snapshot.h"
#include "exchange/compression/compression.h"
#include "loop/arena_owners.h"
#include "loop/parts.h"

/// What each rank of a training has of its own, and ranks.safetensors, where it is kept:
///
/// - `own_images` [ranks]: images that moving statistics are weighted with;
/// - `statistics` [ranks, numbers]: moving statistics of each rank within an epoch, where there are
///   such, in model order;
/// - `unsent/K` [numbers]: what compression has not sent, of what is learnt in model order; of each
///   element's owner K (loop/arena_owners.h);
/// - `factors/BEGIN-END` [numbers]: what the next sum of these elements starts from.
///
/// As many ranks as before that own the same get the same bits. With another number of ranks
/// statistics are the mean that the weights' file has, all that was not sent is sent by the first
/// owner, so nothing is lost of it, and factors begin anew: the training goes on from the same
/// place, but along another curve, as it would with another number of ranks from the beginning.
namespace cputrain::checkpoint {

/// Copies of them on rank 0.
class OwnParts {
 public:
  /// Borrows all of it. Allocates nothing. Collective.
  explicit OwnParts(loop::Parts&);

  /// What allocate() will take; arrays count where the backend's memory is not the host's. `nodes`:
  /// that the ranks are on.
  static SnapshotBytes bytes(const loop::RankProgram&, int nodes);

  /// On rank 0: memory for what is kept. Error(internal).
  void allocate();
  /// Copies, and gives rank 0's `weights`, a copy of its arena, the mean of the statistics.
  /// Collective.
  void take(double own_images, const Array& weights);
  /// The sum over ranks of the images of the last take(). Of rank 0.
  double all_images() const;
  /// On rank 0, from any thread while no take() runs. Error(output).
  void write(const std::filesystem::path&, std::uint64_t step) const;

  /// Whether a file's tensors are those of such a training. Of rank 0. Error(data).
  void check(TensorFile&);
  /// Gives each rank its own part of a file that was checked; returns this rank's images, a part of
  /// `all_images` where there are more or fewer ranks now. `file` is rank 0's. Collective;
  /// Error(data).
  double restore(const TensorFile* file, double all_images);

 private:
  /// What a file has.
  struct Held {
    int ranks = 0;
    bool statistics = false;
    int unsent = 0;
    bool factors = false;
  };
  struct Factors {
    Range range;
    std::vector<std::byte> bytes;
  };

  std::vector<compute::ArenaPart> unsent_parts() const;
  std::string layout() const;
  void take_statistics(const Array& weights);
  void take_factors();
  Array unsent_arena(std::size_t k) const;
  weights::safetensors::OutTensor unsent_tensor(std::size_t k) const;
  double restore_statistics(const TensorFile*);
  void restore_unsent(const TensorFile*);
  void restore_factors(const TensorFile*);
  void send(int to, std::span<const std::byte>);
  std::vector<std::byte> receive(int from);

  loop::Parts& training_;
  compute::Memory& memory_;
  exchange::KeptParts* kept_;  ///< null where compression keeps nothing
  loop::ArenaOwners owners_;
  std::unique_ptr<comm::PointToPoint> peers_;
  std::vector<double> own_images_;               ///< by rank
  std::vector<std::vector<double>> statistics_;  ///< by rank; none where all have the same
  std::vector<compute::OwnedArray> unsent_;      ///< by owner, in the host's memory
  compute::OwnedArray staged_;  ///< in the backend's memory, where that is another one
  std::vector<Factors> factors_;
  std::string layout_;  ///< the factors'
  Held held_;           ///< by the file that is restored
};

}  // namespace cputrain::checkpoint
