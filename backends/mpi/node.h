#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "comm/node.h"

namespace cputrain::mpi {

/// The ranks of MPI_COMM_WORLD that can share memory with this one; frees the group at its end.
class NodeRanks final {
 public:
  /// `most` cuts them into groups of so many, as if they were on several nodes: for tests.
  explicit NodeRanks(std::optional<int> most = {});
  ~NodeRanks();
  NodeRanks(const NodeRanks&) = delete;
  NodeRanks& operator=(const NodeRanks&) = delete;

  MPI_Comm comm() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int first_rank() const { return first_rank_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, first_rank_ = 0;
};

/// Windows that all ranks of the node map (MPI_Win_allocate_shared, in files of /dev/shm); plain
/// private pages, which may be huge ones, where the node has one rank. What is large and does not
/// fit there lies in a file on disk (shared_file.h).
class MpiNodeMemory final : public comm::NodeMemory {
 public:
  explicit MpiNodeMemory(const NodeRanks& node) : node_(node) {}
  int local_rank() const override { return node_.rank(); }
  int local_size() const override { return node_.size(); }
  int first_rank() const override { return node_.first_rank(); }
  std::unique_ptr<system::SharedBlock> allocate_touched(std::size_t bytes,
                                                        std::span<const Range> mine) override;
  void barrier() override;
  std::unique_ptr<system::SharedBlock> allocate_large(std::size_t bytes) override;
  std::string folder_of_large(std::size_t bytes) override;
  std::string folder_for(std::size_t bytes) override;
  std::unique_ptr<system::SharedBlock> allocate_in(const std::string& folder,
                                                   std::size_t bytes) override;

 private:
  void require_memory_for(std::span<const Range> mine) const;
  std::string touch(const system::SharedBlock&, std::span<const Range> mine);

  const NodeRanks& node_;
};

}  // namespace cputrain::mpi
