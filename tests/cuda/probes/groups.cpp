#include "cuda/probes/groups.h"

namespace cputrain::cuda::probes {

const std::vector<Group>& groups() {
  static const std::vector<Group> all = {
      {"device", "which GPU, driver and runtime", ask_device},
      {"bits", "how tensor cores cut off and round", ask_bits},
      {"fragments", "ldmatrix and mma on integers", ask_fragments},
      {"empty-copy", "cp.async of no bytes from a bad address", ask_empty_copy},
      {"products", "rates of mma.sync", ask_products},
      {"issue", "instructions beside mma.sync", ask_issue},
      {"loops", "mma.sync beside ldmatrix and cp.async, as in main loops", ask_loops},
      {"wgmma", "a main loop of wgmma: right, and how fast", ask_wgmma},
      {"l2", "rates of copies from L2 to shared memory", ask_l2},
      {"moves", "rates of the device's memory", ask_moves},
      {"residents", "blocks of 72 KB that a multiprocessor holds", ask_residents},
      {"launches", "cost of launches, timed events and graphs", ask_launches},
      {"first-in-capture", "a kernel's first launch inside a capture", ask_first_in_capture},
      {"event-in-graph", "the host waits for an event inside a graph", ask_event_in_graph},
      {"captured-event", "the host waits for an event that was captured", ask_captured_event},
      {"host-copies", "rates between host and device", ask_host_copies},
      {"waiting", "how late a waiting host wakes up", ask_waiting},
      {"far-addresses", "offsets beyond 2^32 bytes", ask_far_addresses},
      {"contexts", "memory that each process takes", ask_contexts},
  };
  return all;
}

}  // namespace cputrain::cuda::probes
