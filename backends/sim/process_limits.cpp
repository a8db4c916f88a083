// system/limits/process_limits.h under SMPI: simulated ranks are contexts of one process, whose
// threads are only counted, never started.
#include "system/limits/process_limits.h"

namespace cputrain::system {

bool limits_addresses() { return false; }

std::string limits_text() { return {}; }

struct TriedThreads::Parts {};

TriedThreads::TriedThreads(int, const MemoryToCome&) {}

TriedThreads::~TriedThreads() = default;

void require_threads(int, const MemoryToCome&) {}

}  // namespace cputrain::system
