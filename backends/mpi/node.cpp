#include "backends/mpi/node.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "backends/mpi/check.h"
#include "backends/mpi/shared_file.h"
#include "system/limits/process_limits.h"
#include "system/pages.h"
#include "system/scratch/scratch_file.h"

namespace cputrain::mpi {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr const char* kMoreSpace =
    "free space in /dev/shm or enlarge it (containers: --shm-size), or use fewer or smaller images";

/// Refuses what the machine has no memory for, before any of it is claimed: MPICH, unlike Open MPI,
/// makes files of any length, and the kernel would end processes of its own choice to fill them.
/// The node's first rank looks, so that all of them decide alike.
void require_memory(std::size_t bytes, const NodeRanks& node) {
  constexpr std::size_t kUnknown = std::numeric_limits<std::size_t>::max();
  std::uint64_t available = system::available_memory().value_or(kUnknown);
  check(MPI_Bcast(&available, 1, MPI_UINT64_T, 0, node.comm()), "MPI_Bcast");
  if (bytes <= available) return;
  fail(ExitCode::internal,
       "no room for memory shared by the ranks of this machine: " + std::to_string(bytes >> 20) +
           " MiB are wanted and " + std::to_string(available >> 20) +
           " MiB available (they keep one copy of what all of them read); use "
           "fewer or smaller images, or a smaller model");
}

/// What a window takes of the file system that shared memory lies in. Open MPI 4.1 looks for itself
/// and wants a twentieth more (opal/mca/shmem/mmap), but on one rank, which then leaves the others
/// waiting for it for ever.
std::size_t bytes_of_window(std::size_t bytes) {
  constexpr std::size_t kOfMpi = std::size_t{1} << 20;  // for what it keeps beside our bytes
  return bytes + bytes / 20 + kOfMpi;
}

/// Free bytes there, as the node's first rank sees them.
std::uint64_t space_for_windows(const NodeRanks& node) {
  std::uint64_t space = std::min(system::space_in("/dev/shm").value_or(system::longest_file()),
                                 system::longest_file());
  check(MPI_Bcast(&space, 1, MPI_UINT64_T, 0, node.comm()), "MPI_Bcast");
  return space;
}

void require_space(std::size_t bytes, const NodeRanks& node) {
  const std::size_t wanted = bytes_of_window(bytes);
  const std::uint64_t space = space_for_windows(node);
  if (wanted <= space) return;
  fail(ExitCode::internal,
       "no room for memory shared by the ranks of this machine: " + std::to_string(wanted >> 10) +
           " KiB are wanted and " + std::to_string(space >> 10) + " KiB left; " + kMoreSpace);
}

/// Makes the kernel supply the pages of `bytes` now. A shared file whose file system is full has
/// none left, and the first write would kill the process with SIGBUS: asked like this the kernel
/// returns an error instead. Kernels before 5.14 do not know the call, which is then without
/// effect.
void claim_pages(std::span<std::byte> bytes) {
#ifdef MADV_POPULATE_WRITE
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(bytes.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  if (end == start) return;
  if (madvise(reinterpret_cast<void*>(start), end - start, MADV_POPULATE_WRITE) != 0 &&
      errno != EINVAL) {
    // EFAULT stands for the SIGBUS that a write would have met.
    const std::string why = errno == EFAULT ? "its file system is full" : std::strerror(errno);
    fail(ExitCode::internal, "no room for memory shared by the ranks of this machine: " + why +
                                 " (they keep one copy of what all of them read); " + kMoreSpace);
  }
#endif
}

/// One window; all of its memory belongs to the node's first rank, so that it is one run.
class SharedWindow final : public system::SharedBlock {
 public:
  SharedWindow(const NodeRanks& node, std::size_t bytes) {
    // MPI promises no alignment of the base, so we ask for more and align it ourselves: by its
    // distance from the page, which is the same in all processes.
    const auto mine = static_cast<MPI_Aint>(node.rank() == 0 ? bytes + kAlignment : 0);
    void* base = nullptr;
    check(MPI_Win_allocate_shared(mine, 1, MPI_INFO_NULL, node.comm(), &base, &window_),
          ("MPI_Win_allocate_shared of " + std::to_string(bytes >> 20) + " MiB").c_str(),
          kMoreSpace);
    check(MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    MPI_Aint size = 0;
    int unit = 0;
    check(MPI_Win_shared_query(window_, 0, &size, &unit, &base), "MPI_Win_shared_query");
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(base);
    const std::size_t skip = (kAlignment - address % kAlignment) % kAlignment;
    bytes_ = {static_cast<std::byte*>(base) + skip, bytes};
  }

  ~SharedWindow() override {
    if (may_clean_up()) MPI_Win_free(&window_);
  }
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
  std::span<std::byte> bytes_;
};

}  // namespace

NodeRanks::NodeRanks(std::optional<int> most) {
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm_),
        "MPI_Comm_split_type");
  if (most) {
    MPI_Comm whole = comm_;
    check(MPI_Comm_rank(whole, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_split(whole, rank_ / *most, rank_, &comm_), "MPI_Comm_split");
    check(MPI_Comm_free(&whole), "MPI_Comm_free");
  }
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &first_rank_), "MPI_Comm_rank");
  check(MPI_Bcast(&first_rank_, 1, MPI_INT, 0, comm_), "MPI_Bcast");
  require_shared_folder(*this);
}

NodeRanks::~NodeRanks() {
  if (may_clean_up()) MPI_Comm_free(&comm_);
}

/// What all ranks of the node together will touch.
void MpiNodeMemory::require_memory_for(std::span<const Range> mine) const {
  std::uint64_t bytes = 0;
  for (const Range& range : mine) bytes += range.size();
  check(MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_UINT64_T, MPI_SUM, node_.comm()),
        "MPI_Allreduce");
  require_memory(bytes, node_);
}

/// Every rank supplies the pages of its part; where one cannot, all of them get a reason.
std::string MpiNodeMemory::touch(const system::SharedBlock& block, std::span<const Range> mine) {
  std::string failure;
  try {
    for (const Range& range : mine) {
      const std::span<std::byte> part = block.bytes().subspan(range.begin, range.size());
      claim_pages(part);
      if (!part.empty()) std::memset(part.data(), 0, part.size());
    }
  } catch (const Error& error) {
    failure = error.what();
  }
  return failure_of_any(node_.comm(), failure);
}

std::unique_ptr<system::SharedBlock> MpiNodeMemory::allocate_touched(std::size_t bytes,
                                                                     std::span<const Range> mine) {
  if (node_.size() == 1) return std::make_unique<system::Pages>(bytes);
  require_memory_for(mine);
  require_space(bytes, node_);
  auto block = std::make_unique<SharedWindow>(node_, bytes);
  if (const std::string failure = touch(*block, mine); !failure.empty()) {
    block.reset();  // before the exception, which leaves windows alone
    fail(ExitCode::internal, failure);
  }
  barrier();
  return block;
}

std::string MpiNodeMemory::folder_of_large(std::size_t bytes) {
  if (node_.size() == 1 || bytes_of_window(bytes) <= space_for_windows(node_)) return {};
  return folder_for_file(node_, bytes);
}

std::unique_ptr<system::SharedBlock> MpiNodeMemory::allocate_large(std::size_t bytes) {
  const std::string folder = folder_of_large(bytes);
  if (folder.empty()) return allocate(bytes);
  return std::make_unique<SharedFile>(node_, folder, bytes);
}

std::string MpiNodeMemory::folder_for(std::size_t bytes) { return folder_on_disk(node_, bytes); }

std::unique_ptr<system::SharedBlock> MpiNodeMemory::allocate_in(const std::string& folder,
                                                                std::size_t bytes) {
  return std::make_unique<SharedFile>(node_, folder, bytes);
}

void MpiNodeMemory::barrier() {
  // MPI_Barrier promises nothing about plain stores to shared memory. The fences keep compiler and
  // processor from moving them over it; MPI_Win_sync would do the same for one window.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  check(MPI_Barrier(node_.comm()), "MPI_Barrier");
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace cputrain::mpi
