#pragma once

#include <memory>

#include "comm/node.h"
#include "compute/parameters/parameters.h"
#include "system/pages.h"

namespace cputrain::exchange {

/// The weights of a node: one copy that all of its ranks compute with, or, where ranks keep their
/// own numbers beside them (moving statistics), one that is published and a replica for each.
class NodeWeights {
 public:
  /// A rank's own copy where it needs one, else none.
  static std::unique_ptr<system::Pages> make_replica(const compute::ParameterLayout&);
  /// Collective over the node; Error(internal) on all of its ranks where there is no room.
  NodeWeights(comm::NodeMemory&, const compute::ParameterLayout&,
              std::unique_ptr<system::Pages> replica);

  bool one_copy() const { return !own_; }
  Array shared() const { return {shared_->bytes().data(), size_, dtype_}; }
  /// What programs compute with.
  Array arena() const { return one_copy() ? shared() : Array{own_->bytes().data(), size_, dtype_}; }

  /// From the replica to the node's copy, and what is learnt back; nothing where there is one copy.
  void publish(Range range) const { copy(shared(), arena(), range); }
  void fetch() const { copy(arena(), shared(), {0, learnt_}); }
  std::size_t own_bytes() const { return own_ ? own_->bytes().size() : 0; }

 private:
  void copy(const Array& dst, const Array& src, Range range) const;

  std::size_t size_, learnt_;
  DType dtype_;
  std::unique_ptr<system::SharedBlock> shared_;
  std::unique_ptr<system::Pages> own_;
};

}  // namespace cputrain::exchange
