#include "backends/mpi/sums.h"

#include "backends/mpi/check.h"
#include "backends/mpi/pieces.h"

namespace cputrain {

MpiSums::~MpiSums() {
  // A step that was given up: MPI must not write into the arenas after they are gone.
  if (!travelling_.empty() && may_clean_up()) {
    MPI_Waitall(static_cast<int>(travelling_.size()), travelling_.data(), MPI_STATUSES_IGNORE);
  }
}

void MpiSums::start(Array numbers) {
  for_pieces(numbers.size, kMaxCount, [&](Range piece) {
    const Array part = numbers.slice(piece.begin, piece.end);
    travelling_.push_back(MPI_REQUEST_NULL);
    check(MPI_Iallreduce(MPI_IN_PLACE, part.data, static_cast<int>(part.size), mpi_type(part.dtype),
                         MPI_SUM, ranks_, &travelling_.back()),
          "MPI_Iallreduce");
  });
}

void MpiSums::progress() {
  if (travelling_.empty()) return;
  int done = 0;
  check(MPI_Testall(static_cast<int>(travelling_.size()), travelling_.data(), &done,
                    MPI_STATUSES_IGNORE),
        "MPI_Testall");
  if (done) travelling_.clear();
}

void MpiSums::meet() { check(MPI_Barrier(ranks_), "MPI_Barrier"); }

void MpiSums::wait() {
  check(MPI_Waitall(static_cast<int>(travelling_.size()), travelling_.data(), MPI_STATUSES_IGNORE),
        "MPI_Waitall");
  travelling_.clear();
}

}  // namespace cputrain
