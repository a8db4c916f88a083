#pragma once

#include <functional>
#include <memory>

#include "compute/backend.h"

namespace cputrain::compute {

/// Arenas of each lane, once the layout is known.
using LaneArenas = std::function<Arenas(const ParameterLayout&, int lane)>;

/// How a program is cut so that its numbers do not depend on threads.
struct ReproducibleChunks {
  int images = 1;  ///< in a chunk; the last one of a batch may have fewer
  int lanes = 1;   ///< chunks computed at the same time, each by one thread
};

/// A program whose results are the same bits at any number of threads: a micro-batch is cut into
/// chunks, each computed by a program of its own for that number of images on one thread, so that
/// every number is formed by the same operations wherever it is computed. Losses of chunks are
/// rounded so that their sums are exact, in any order. Micro-batches have at most
/// `images * lanes` images. Gradients are overwritten, each lane's in its own arena,
/// those of large dense layers as factors; the exchange adds them up, and so no update is part of a
/// pass. The backend is borrowed. The weights and what lies behind them are lane 0's.
std::unique_ptr<Program> make_chunked_program(Backend&, const model::Graph&, const CompileOptions&,
                                              const ReproducibleChunks&, const LaneArenas&);

}  // namespace cputrain::compute
