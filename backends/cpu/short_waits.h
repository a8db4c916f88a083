#pragma once

namespace cputrain::cpu {

/// OpenMP's threads meet some hundred times a step, and one that comes early spins until the others
/// are there, as libgomp's default has it for some milliseconds. On a machine that does other work,
/// too, that takes CPUs from the very threads that are waited for. So a waiting thread spins about
/// as long as it takes to be put to sleep and woken, and then sleeps: at most twice the cost of the
/// better choice, whichever that is (Karlin et al., Empirical studies of competitive spinning for a
/// shared-memory multiprocessor, 1991).
///
/// libgomp reads the environment when it is loaded, before main(): this sets GOMP_SPINCOUNT and
/// starts the program again, once, in the same process. Call it first thing, before there are
/// threads or files. Returns where the person has decided (OMP_WAIT_POLICY or GOMP_SPINCOUNT is
/// set), where it was started again, and where that cannot be done; without OpenMP it does nothing.
/// Its own GOMP_SPINCOUNT is then gone from the environment: processes started by this one decide
/// for themselves.
void wait_shortly(char** argv);

}  // namespace cputrain::cpu
