#include "backends/mpi/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "backends/mpi/check.h"
#include "backends/mpi/job_folder.h"
#include "core/casts.h"
#include "system/bounded_file.h"
#include "system/scratch/scratch_file.h"

namespace cputrain::mpi {
namespace {

constexpr const char* kRemedy =
    "enlarge /dev/shm (containers: docker run --shm-size), name a folder with room in TMPDIR";

/// A text that one of these ranks has, on all of them.
std::string text_of(MPI_Comm ranks, int rank, std::string text) {
  std::uint64_t size = text.size();
  check(MPI_Bcast(&size, 1, MPI_UINT64_T, rank, ranks), "MPI_Bcast");
  text.resize(size);
  check(MPI_Bcast(text.data(), to_int(size), MPI_CHAR, rank, ranks), "MPI_Bcast");
  return text;
}

[[noreturn]] void no_space(std::uint64_t bytes, const std::string& why) {
  fail(ExitCode::usage, "no room for " + std::to_string(bytes >> 20) +
                            " MiB that the ranks of this machine share: /dev/shm is too small, " +
                            why + " (they keep one copy of the decoded images); " + kRemedy +
                            ", or use fewer or smaller images");
}

}  // namespace

std::string failure_of_any(MPI_Comm ranks, const std::string& mine) {
  int rank = 0, size = 0;
  check(MPI_Comm_rank(ranks, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(ranks, &size), "MPI_Comm_size");
  int first = mine.empty() ? size : rank;
  check(MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, ranks), "MPI_Allreduce");
  return first == size ? "" : text_of(ranks, first, mine);
}

void require_shared_folder(const NodeRanks& node) {
  const char* const chosen = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  const std::string folder = chosen ? chosen : kSharedMemory;
  std::string path = folder + "/cputrain-shared-XXXXXX";
  const bool makes = node.rank() == 0 && node.size() > 1;
  const system::Descriptor file(makes ? ::mkostemp(path.data(), O_CLOEXEC) : -1);
  if (!file.is_open()) path.clear();  // nothing is known, then
  path = text_of(node.comm(), 0, path);
  std::string failure;
  if (!path.empty() && ::access(path.c_str(), F_OK) != 0) {
    int rank = 0;
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
    failure = "rank " + std::to_string(rank) + " does not see what rank " +
              std::to_string(node.first_rank()) + " makes in " +
              (folder.starts_with(kSharedMemory) ? kSharedMemory : folder) +
              ", and MPI counts both to one machine (its ranks share memory there); give their "
              "containers one /dev/shm (docker run --ipc=host, apptainer exec without --contain), "
              "or have mpirun reach each of them as a host";
  }
  failure = failure_of_any(MPI_COMM_WORLD, failure);
  if (file.is_open()) ::unlink(path.c_str());
  if (!failure.empty()) fail(ExitCode::usage, failure);
}

std::string folder_on_disk(const NodeRanks& node, std::uint64_t bytes) {
  return text_of(node.comm(), 0,
                 node.rank() == 0 ? system::folder_with_room(bytes, /*on_disk=*/true) : "");
}

std::string folder_for_file(const NodeRanks& node, std::uint64_t bytes) {
  std::string folder, failure;
  if (node.rank() == 0 && bytes > system::longest_file()) {
    failure = "and 'ulimit -f' allows no file of that length";
  } else if (node.rank() == 0) {
    folder = system::folder_with_room(bytes);
    if (folder.empty()) failure = "and so are the file systems of TMPDIR, /var/tmp, /tmp and here";
  }
  failure = text_of(node.comm(), 0, failure);
  if (!failure.empty()) no_space(bytes, failure);
  return text_of(node.comm(), 0, folder);
}

SharedFile::SharedFile(const NodeRanks& node, const std::string& folder, std::size_t bytes) {
  std::string path = system::scratch_name(folder), failure;
  system::Descriptor file;
  if (node.rank() == 0) {
    file = system::Descriptor(::mkostemp(path.data(), O_CLOEXEC));
    if (!file.is_open()) failure = std::strerror(errno);
  }
  path = text_of(node.comm(), 0, path);
  failure = failure_of_any(node.comm(), failure);
  if (failure.empty() && node.rank() != 0) {
    file = system::Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.is_open()) failure = std::strerror(errno);
  }
  failure = failure_of_any(node.comm(), failure);
  if (node.rank() == 0) ::unlink(path.c_str());  // all have it open, or it is of no use
  if (failure.empty() && node.rank() == 0) failure = system::reserve(file.number(), bytes);
  failure = failure_of_any(node.comm(), failure);
  if (failure.empty()) failure = map(file.number(), bytes);
  failure = failure_of_any(node.comm(), failure);
  if (!failure.empty()) no_space(bytes, "and a file in " + folder + " cannot be had: " + failure);
}

std::string SharedFile::map(int descriptor, std::size_t bytes) {
  if (bytes == 0) return {};
  void* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (start == MAP_FAILED) return std::strerror(errno);
  bytes_ = {static_cast<std::byte*>(start), bytes};
  return {};
}

SharedFile::~SharedFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace cputrain::mpi
