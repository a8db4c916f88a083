#pragma once

#include <string>
#include <vector>

#include "backends/nccl/library.h"

/// A table of NCCL's functions for ranks that are threads of one process, on emulated devices: sums
/// are work in their streams, which begins when the streams of all ranks have come to it. Like NCCL
/// it answers "in progress", puts sums into streams behind the call, in another thread, refuses two
/// ranks of one device, and waits at its end for graphs that still hold sums. One use at a time;
/// nothing here is thread-safe but the calls of the table.
namespace cputrain::nccl::fake {

struct Settings {
  int version = 22809;
  bool share_devices = false;  ///< as with NCCL_MULTI_RANK_GPU_ENABLE
};

/// What was asked of it, of all ranks together.
struct Seen {
  int joined = 0, sums = 0, captured = 0, aborted = 0, destroyed = 0;
  std::vector<std::size_t> counts{};  ///< of the sums of rank 0, as it asked for them
};

/// Forgets everything, and begins with these.
void restart(const Settings& = {});
const Library& library();
Seen seen();

/// From the sum with this number on (from 0, of each rank), all communicators say that another rank
/// is gone, and their sums never end by themselves.
void break_at(int sum);
/// From the call for a sum with this number on (from 0, of each rank), it is refused at once.
void refuse_at(int call);
/// A rank that would join from now on stays away for ever: the others see no end of it.
void let_nobody_join();

}  // namespace cputrain::nccl::fake
