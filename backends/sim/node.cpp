// backends/mpi/node.h under SMPI. All simulated ranks live in one process, so a node's shared
// memory is a pointer that its first rank gives the others (MPI_Win_shared_query of SimGrid 3.32
// gives every rank the first one's own base); MPI_Barrier takes the time of its messages.
#include "backends/mpi/node.h"

#include "backends/mpi/check.h"
#include "system/pages.h"

namespace cputrain::mpi {
namespace {

/// Freed by the last rank that lets go of it.
class SimulatedBlock final : public system::SharedBlock {
 public:
  explicit SimulatedBlock(std::shared_ptr<system::Pages> pages) : pages_(std::move(pages)) {}
  std::span<std::byte> bytes() const override { return pages_->bytes(); }

 private:
  std::shared_ptr<system::Pages> pages_;
};

}  // namespace

NodeRanks::NodeRanks(std::optional<int>) {
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm_),
        "MPI_Comm_split_type");
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &first_rank_), "MPI_Comm_rank");
  check(MPI_Bcast(&first_rank_, 1, MPI_INT, 0, comm_), "MPI_Bcast");
}

NodeRanks::~NodeRanks() {
  if (may_clean_up()) MPI_Comm_free(&comm_);
}

std::unique_ptr<system::SharedBlock> MpiNodeMemory::allocate_touched(std::size_t bytes,
                                                                     std::span<const Range>) {
  std::shared_ptr<system::Pages> pages;
  if (node_.rank() == 0) pages = std::make_shared<system::Pages>(bytes);
  auto* shared = &pages;
  check(MPI_Bcast(&shared, sizeof(void*), MPI_BYTE, 0, node_.comm()), "MPI_Bcast");
  if (node_.rank() != 0) pages = *shared;
  barrier();  // the first rank's pointer lives until all have copied it
  return std::make_unique<SimulatedBlock>(std::move(pages));
}

std::unique_ptr<system::SharedBlock> MpiNodeMemory::allocate_large(std::size_t bytes) {
  return allocate(bytes);
}

std::string MpiNodeMemory::folder_of_large(std::size_t) { return {}; }
std::string MpiNodeMemory::folder_for(std::size_t) { return {}; }
std::unique_ptr<system::SharedBlock> MpiNodeMemory::allocate_in(const std::string&,
                                                                std::size_t bytes) {
  return allocate(bytes);
}

void MpiNodeMemory::barrier() { check(MPI_Barrier(node_.comm()), "MPI_Barrier"); }

}  // namespace cputrain::mpi
