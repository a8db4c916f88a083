#pragma once

#include <memory>

#include "comm/peers.h"
#include "core/array.h"

namespace cputrain::comm {

/// The sum of an array over the ranks of a group, in place: all ranks call it with arrays of one
/// length and get the same bits. Not for two threads at once.
class Allreduce {
 public:
  virtual ~Allreduce() = default;
  virtual void sum(const Array& numbers) = 0;
};

/// The algorithms; each file begins with what it costs. n is the length in bytes, P the ranks.
std::unique_ptr<Allreduce> make_ring(Peers&);
std::unique_ptr<Allreduce> make_recursive_doubling(Peers&);
std::unique_ptr<Allreduce> make_rabenseifner(Peers&);
std::unique_ptr<Allreduce> make_tree(Peers&);
/// One rank adds up for all: what a parameter server does with gradients.
std::unique_ptr<Allreduce> make_server(Peers&);

}  // namespace cputrain::comm
