#pragma once

namespace cputrain::system {

/// CPU time of all threads of this process since it began. Unlike elapsed time, it hardly depends
/// on what else the machine does.
double cpu_seconds();

}  // namespace cputrain::system
