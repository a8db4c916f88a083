#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/algorithm_cache.h"
#include "cli/session.h"
#include "compute/program.h"
#include "model/graph.h"

namespace cputrain {

/// What trainings of the same network on the same kind of machine leave to each other: which
/// algorithms were quickest. Rank 0 reads and writes it; all ranks use the same.
class KnownAlgorithms {
 public:
  /// `images`: the most that rank 0 trains on at once.
  KnownAlgorithms(const Session&, const Config&, const Graph&, int images);

  /// Begins with what is known, if that fits, and says which it is. Collective.
  void start(Program&) const;
  /// Keeps what the program found last. A warning where that cannot be written.
  void keep(const Program&) const;

 private:
  const Session& session_;
  std::optional<AlgorithmCache> cache_;  ///< none: nothing is read or kept
  std::string key_;
};

/// Shapes of a network's maps and kernels as a number: names, rates, regularisation and the number
/// of classes do not decide what is quick.
std::uint64_t shapes_fingerprint(const Graph&);

}  // namespace cputrain
