#include "backends/mpi/mpi_communicator.h"

#include <chrono>
#include <climits>
#include <cstdlib>
#include <numeric>
#include <regex>
#include <thread>

#include "backends/mpi/check.h"
#include "backends/mpi/messages.h"
#include "backends/mpi/node.h"
#include "backends/mpi/pieces.h"
#include "backends/mpi/session.h"
#include "core/casts.h"
#include "system/output.h"

#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // MPIX_CUDA_AWARE_SUPPORT
#endif

namespace cputrain::mpi {

namespace {

/// Whether Open MPI and its relatives can in this build and do in this run, by their own word.
bool reads_devices() {
#if defined(MPIX_CUDA_AWARE_SUPPORT) && MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

class MpiCommunicator final : public comm::Communicator {
 public:
  MpiCommunicator(const HoldSignals& hold, std::optional<int> ranks_a_node, const StartLimit& limit,
                  const comm::AddArrays& add)
      : session_(hold, limit), node_(ranks_a_node), memory_(node_), add_(add) {
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string describe() const override { return mpi_library_version(); }

  void sum(Array values) override;
  void broadcast(std::span<std::byte> data, int root) override;
  std::vector<std::string> gather(std::string_view text) override;
  void barrier() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  comm::NodeMemory& node_memory() override { return memory_; }

  std::unique_ptr<comm::PointToPoint> make_point_to_point() override {
    return make_mpi_point_to_point(add_);
  }
  std::unique_ptr<comm::Allreduce> make_allreduce(int group) override {
    return make_mpi_allreduce(group);
  }
  bool reads_devices() const override { return mpi::reads_devices(); }
  bool serves_threads() const override { return session_.serves_threads(); }

  [[noreturn]] void abort(int code) override {
    system::flush_output(1, 3);
    // MPICH's launcher drops what ranks have written and it has not read yet: the error's message.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }

 private:
  MpiSession session_;  // first: everything below needs MPI, also to be destroyed
  NodeRanks node_;
  MpiNodeMemory memory_;
  comm::AddArrays add_;
  int rank_ = 0, size_ = 1;
};

/// Reduce and broadcast rather than allreduce, whose result MPI does not promise to be the same
/// bits everywhere: decisions depend on these sums (is the loss finite? shall we stop?), and ranks
/// that decide differently would wait for each other for ever. They are few numbers, so it costs
/// little.
void MpiCommunicator::sum(Array values) {
  for_pieces(values.size, kMaxCount, [&](Range piece) {
    const Array part = values.slice(piece.begin, piece.end);
    const int count = to_int(part.size);
    const void* const src = rank_ == 0 ? MPI_IN_PLACE : part.data;
    check(MPI_Reduce(src, part.data, count, mpi_type(part.dtype), MPI_SUM, 0, MPI_COMM_WORLD),
          "MPI_Reduce");
    check(MPI_Bcast(part.data, count, mpi_type(part.dtype), 0, MPI_COMM_WORLD), "MPI_Bcast");
  });
}

void MpiCommunicator::broadcast(std::span<std::byte> data, int root) {
  for_pieces(data.size(), kMaxCount, [&](Range piece) {
    check(
        MPI_Bcast(data.data() + piece.begin, to_int(piece.size()), MPI_BYTE, root, MPI_COMM_WORLD),
        "MPI_Bcast");
  });
}

std::vector<std::string> MpiCommunicator::gather(std::string_view text) {
  const unsigned long long length = text.size();
  std::vector<unsigned long long> lengths(size_);
  check(MPI_Allgather(&length, 1, MPI_UNSIGNED_LONG_LONG, lengths.data(), 1, MPI_UNSIGNED_LONG_LONG,
                      MPI_COMM_WORLD),
        "MPI_Allgather");
  std::vector<std::string> texts(size_);
  if (std::accumulate(lengths.begin(), lengths.end(), 0ull) > INT_MAX) {
    for (int root = 0; root < size_; ++root) {  // too long for one call: one after the other
      texts[root].assign(root == rank_ ? text : std::string_view());
      texts[root].resize(lengths[root]);
      broadcast(std::as_writable_bytes(std::span(texts[root])), root);
    }
    return texts;
  }
  const std::vector<int> counts(lengths.begin(), lengths.end());
  std::vector<int> offsets(size_, 0);
  std::partial_sum(counts.begin(), counts.end() - 1, offsets.begin() + 1);
  std::string all(offsets.back() + counts.back(), '\0');
  check(MPI_Allgatherv(text.data(), counts[rank_], MPI_CHAR, all.data(), counts.data(),
                       offsets.data(), MPI_CHAR, MPI_COMM_WORLD),
        "MPI_Allgatherv");
  for (int rank = 0; rank < size_; ++rank) {
    texts[rank] = all.substr(offsets[rank], counts[rank]);
  }
  return texts;
}

}  // namespace

bool mpi_available() { return true; }

std::string mpi_library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  // "Open MPI v4.1.4, package: Debian OpenMPI, ident: ...", "MPICH Version:\t4.0.2\nMPICH Release
  // date: ...": name and number are enough.
  std::string version(text, length);
  version = version.substr(0, version.find_first_of(",\n"));
  version = std::regex_replace(version, std::regex("\\s+(v|Version:\\s*)(?=\\d)"), " ");
  return version;
}

std::unique_ptr<comm::Communicator> make_mpi_communicator(const HoldSignals& hold,
                                                          std::optional<int> ranks_a_node,
                                                          const StartLimit& limit,
                                                          const comm::AddArrays& add) {
  return std::make_unique<MpiCommunicator>(hold, ranks_a_node, limit, add);
}

}  // namespace cputrain::mpi
