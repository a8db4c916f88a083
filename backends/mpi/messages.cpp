#include "backends/mpi/messages.h"

#include <algorithm>

#include "backends/mpi/check.h"
#include "backends/mpi/pieces.h"
#include "core/casts.h"

namespace cputrain::mpi {

OwnComm::OwnComm(int color) {
  int rank = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check(MPI_Comm_split(MPI_COMM_WORLD, color, rank, &comm_), "MPI_Comm_split");
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

OwnComm::~OwnComm() {
  if (may_clean_up()) MPI_Comm_free(&comm_);
}

namespace {

class MpiPointToPoint final : public comm::PointToPoint {
 public:
  explicit MpiPointToPoint(const comm::AddArrays& add) : comm_(0), add_(add) {
    check(MPI_Comm_rank(comm_.get(), &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_.get(), &size_), "MPI_Comm_size");
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void exchange(int to, std::span<const std::byte> out, int from,
                std::span<std::byte> in) override {
    for_pieces(std::max(out.size(), in.size()), kMaxCount, [&](Range piece) {
      const std::size_t out_begin = std::min(piece.begin, out.size());
      const std::size_t in_begin = std::min(piece.begin, in.size());
      const std::size_t out_size = std::min(piece.end, out.size()) - out_begin;
      const std::size_t in_size = std::min(piece.end, in.size()) - in_begin;
      check(
          MPI_Sendrecv(out.data() + out_begin, to_int(out_size), MPI_BYTE,
                       out_size ? to : MPI_PROC_NULL, 0, in.data() + in_begin, to_int(in_size),
                       MPI_BYTE, in_size ? from : MPI_PROC_NULL, 0, comm_.get(), MPI_STATUS_IGNORE),
          "MPI_Sendrecv");
    });
  }
  void add(const Array& dst, const Array& src) override {
    add_ ? add_(dst, src) : PointToPoint::add(dst, src);
  }

 private:
  OwnComm comm_;
  comm::AddArrays add_;
  int rank_ = 0, size_ = 1;
};

class MpiAllreduce final : public comm::Allreduce {
 public:
  explicit MpiAllreduce(int group) : comm_(group) {}
  void sum(const Array& numbers) override {
    for_pieces(numbers.size, kMaxCount, [&](Range piece) {
      const Array part = numbers.slice(piece.begin, piece.end);
      check(MPI_Allreduce(MPI_IN_PLACE, part.data, to_int(part.size), mpi_type(part.dtype), MPI_SUM,
                          comm_.get()),
            "MPI_Allreduce");
    });
  }

 private:
  OwnComm comm_;
};

}  // namespace

std::unique_ptr<comm::PointToPoint> make_mpi_point_to_point(const comm::AddArrays& add) {
  return std::make_unique<MpiPointToPoint>(add);
}

std::unique_ptr<comm::Allreduce> make_mpi_allreduce(int group) {
  return std::make_unique<MpiAllreduce>(group);
}

}  // namespace cputrain::mpi
