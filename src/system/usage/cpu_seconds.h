#pragma once

#include <pthread.h>

namespace cputrain::system {

/// CPU time of all threads of this process since it began. Unlike elapsed time, it hardly depends
/// on what else the machine does.
double cpu_seconds();

/// That of one thread, which lives; 0 where it is not known.
double cpu_seconds(pthread_t thread);

}  // namespace cputrain::system
