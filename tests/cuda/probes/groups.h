#pragma once

#include <string>
#include <vector>

namespace cputrain::cuda::probes {

/// Probes that share a process. They print answers (probe.h) and throw where the device refuses.
struct Group {
  const char* name;
  const char* what;
  void (*ask)();
};

/// In the order of their worth, should the time not do for all.
const std::vector<Group>& groups();

/// Why there is no device to ask; empty where there is one.
std::string why_nothing_to_ask();

void ask_device();
void ask_bits();
void ask_fragments();
void ask_empty_copy();
void ask_far_addresses();
void ask_products();
void ask_issue();
void ask_loops();
void ask_wgmma();
void ask_l2();
void ask_moves();
void ask_residents();
void ask_launches();
void ask_first_in_capture();
void ask_event_in_graph();
void ask_captured_event();
void ask_host_copies();
void ask_waiting();
void ask_contexts();

/// Makes a context, says so, and holds it until standard input ends. Throws where the GPU is for
/// one process alone.
void hold_context();

}  // namespace cputrain::cuda::probes
