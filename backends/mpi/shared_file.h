#pragma once

#include <cstdint>
#include <string>

#include "backends/mpi/node.h"

/// Memory of a node's ranks in a file on disk: for what does not fit into /dev/shm, which has 64 MB
/// in a container unless more was asked for. The pages are the system's cache of the file, so
/// reading them costs what memory costs as long as the machine has room for them.
namespace cputrain::mpi {

/// The same text on all of these ranks: the failure of the first that has one, else empty.
/// Collective.
std::string failure_of_any(MPI_Comm, const std::string& mine);

/// Error(usage) on all ranks of the job where ranks of a node do not see each other's files in the
/// folder of what they share: containers may have one each, and MPI finds out by a signal that ends
/// them. Collective.
void require_shared_folder(const NodeRanks&);

/// The first of $TMPDIR, /var/tmp, /tmp and the working folder, as the node's first rank sees them,
/// that may be written to and has room for so many bytes. Collective; Error(usage) on all ranks of
/// the node where none has.
std::string folder_for_file(const NodeRanks&, std::uint64_t bytes);

/// The same of folders on disk alone, for what memory has no room for; empty where none has.
std::string folder_on_disk(const NodeRanks&, std::uint64_t bytes);

/// A file that all ranks of the node map. It has a name only while they open it, still empty, so
/// nothing stays behind however they end; its room on disk is taken at once, so that a full disk is
/// an error here and no SIGBUS later. Collective; Error(usage) on all of them where one fails.
class SharedFile final : public system::SharedBlock {
 public:
  SharedFile(const NodeRanks&, const std::string& folder, std::size_t bytes);
  ~SharedFile() override;
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  std::string map(int descriptor, std::size_t bytes);

  std::span<std::byte> bytes_;
};

}  // namespace cputrain::mpi
