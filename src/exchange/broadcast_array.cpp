#include "exchange/broadcast_array.h"

#include <algorithm>

namespace cputrain::exchange {

void broadcast_array(comm::Communicator& communicator, compute::Memory& memory, const Array& array,
                     int root) {
  if (memory.is_host()) return communicator.broadcast(array.bytes(), root);
  const compute::OwnedArray staged(compute::host_memory(),
                                   std::min(array.size, compute::piece_elements(array.dtype)),
                                   array.dtype);
  for (std::size_t begin = 0; begin < array.size; begin += staged.array().size) {
    const Array segment = array.slice(begin, std::min(array.size, begin + staged.array().size));
    const Array copy = staged.array().slice(0, segment.size);
    if (communicator.rank() == root) memory.read(segment.data, copy.bytes());
    communicator.broadcast(copy.bytes(), root);
    if (communicator.rank() != root) memory.write(copy.bytes(), segment.data);
  }
}

}  // namespace cputrain::exchange
