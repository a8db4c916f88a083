#include "exchange/shared_layer.h"

#include <cassert>

#include "system/clock.h"

namespace cputrain::exchange {
namespace {

constexpr std::size_t kLine = 64;  // bytes from one rank's number to the next

}  // namespace

SharedLayer::SharedLayer(comm::NodeMemory& memory, const Size& size, DType dtype)
    : memory_(memory),
      local_rank_(memory.local_rank()),
      local_size_(memory.local_size()),
      in_(size.in),
      out_(size.out),
      dtype_(dtype),
      counts_(memory.allocate(static_cast<std::size_t>(local_size_) * kLine)) {
  begin(size.images);
  capacity_ = images_;
  sources_ = memory.allocate(capacity_ * in_ * size_of(dtype));
  diff_ = memory.allocate(capacity_ * out_ * size_of(dtype));
  partial_sums_ = std::make_unique<comm::NodeArrays>(memory, capacity_ * out_, dtype);
}

std::uint64_t& SharedLayer::count(int rank) const {
  return *reinterpret_cast<std::uint64_t*>(counts_->bytes().data() +
                                           static_cast<std::size_t>(rank) * kLine);
}

void SharedLayer::begin(std::size_t images) {
  count(local_rank_) = images;
  wait();
  images_ = 0;
  for (int rank = 0; rank < local_size_; ++rank) {
    if (rank == local_rank_) rows_ = {images_, images_ + images};
    images_ += count(rank);
  }
  assert(!sources_ || images_ <= capacity_);
}

void SharedLayer::wait() {
  const system::Stopwatch watch;
  memory_.barrier();
  waited_ += watch.seconds();
}

std::size_t SharedLayer::bytes() const {
  const std::size_t all = sources_->bytes().size() + diff_->bytes().size();
  return all / static_cast<std::size_t>(local_size_) + partial_sums_->own_bytes();
}

}  // namespace cputrain::exchange
