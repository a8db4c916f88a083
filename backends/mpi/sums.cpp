#include "backends/mpi/sums.h"

#include <vector>

#include "backends/mpi/check.h"
#include "backends/mpi/pieces.h"

namespace cputrain {

namespace {

class SumsDuringBackward final : public TravellingSums {
 public:
  SumsDuringBackward() = default;
  SumsDuringBackward(const SumsDuringBackward&) = delete;
  SumsDuringBackward& operator=(const SumsDuringBackward&) = delete;
  ~SumsDuringBackward() override {
    // A step that was given up: MPI must not write into the arenas after they are gone.
    if (!requests_.empty() && may_clean_up()) {
      MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    }
  }

  void start(Array numbers) override {
    for_pieces(numbers.size, kMaxCount, [&](Range piece) {
      const Array part = numbers.slice(piece.begin, piece.end);
      requests_.push_back(MPI_REQUEST_NULL);
      check(MPI_Iallreduce(MPI_IN_PLACE, part.data, static_cast<int>(part.size),
                           mpi_type(part.dtype), MPI_SUM, MPI_COMM_WORLD, &requests_.back()),
            "MPI_Iallreduce");
    });
  }

  void progress() override {
    if (requests_.empty()) return;
    int done = 0;
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                      MPI_STATUSES_IGNORE),
          "MPI_Testall");
    if (done) requests_.clear();
  }

  void meet() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  void wait() override {
    check(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE),
          "MPI_Waitall");
    requests_.clear();
  }

 private:
  std::vector<MPI_Request> requests_;
};

class SumsAfterBackward final : public TravellingSums {
 public:
  void start(Array numbers) override { waiting_.push_back(numbers); }
  void progress() override {}
  void meet() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  void wait() override {
    constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
    for (const Array& numbers : waiting_) {
      for_pieces(numbers.size, kPieceBytes / size_of(numbers.dtype), [&](Range piece) {
        const Array part = numbers.slice(piece.begin, piece.end);
        check(MPI_Allreduce(MPI_IN_PLACE, part.data, static_cast<int>(part.size),
                            mpi_type(part.dtype), MPI_SUM, MPI_COMM_WORLD),
              "MPI_Allreduce");
      });
    }
    waiting_.clear();
  }

 private:
  std::vector<Array> waiting_;
};

}  // namespace

std::unique_ptr<TravellingSums> make_sums_during_backward() {
  return std::make_unique<SumsDuringBackward>();
}

std::unique_ptr<TravellingSums> make_sums_after_backward() {
  return std::make_unique<SumsAfterBackward>();
}

}  // namespace cputrain
