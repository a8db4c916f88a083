#pragma once

#include <cstddef>

/// Shared memory of the block that runs. What the launch asked for comes first, then the variables
/// of shared<T>(), with gaps between that nobody may touch.
namespace cputrain::emulated {

/// At the beginning of a launch and of a block. Holds 0xff in every byte then.
void begin_shared_of_launch(std::size_t dynamic_bytes);
void begin_shared_of_block();

bool is_shared_memory(const void*);

}  // namespace cputrain::emulated
