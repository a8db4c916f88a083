// A job in which the last rank fails while the others wait for it. How it fails is the argument:
//   abort    throws; main() calls Communicator::abort with the error's code
//   return   throws; the communicator is destroyed and main() returns the error's code
//   exit     ends without a word
//   memory   all ranks ask for more shared memory than the machine has
//   full     all ranks ask for 256 MiB, more than the test left them in /dev/shm
#include <cstdio>
#include <cstdlib>
#include <string>

#include "backends/mpi/mpi_communicator.h"
#include "core/error.h"

namespace {

void run(cputrain::comm::Communicator& comm, const std::string& how) {
  comm.barrier();
  if (how == "memory" || how == "full") {
    const std::size_t bytes = std::size_t{1} << (how == "memory" ? 45 : 28);
    const auto block = comm.node_memory().allocate(bytes);
    std::printf("got %zu bytes at %p\n", bytes, static_cast<void*>(block->bytes().data()));
    return;
  }
  if (comm.rank() == comm.size() - 1) {
    if (how == "exit") std::_Exit(65);
    cputrain::fail(cputrain::ExitCode::data, "the last rank failed");
  }
  comm.barrier();
}

int run_and_return(const std::string& how) {
  try {
    const auto comm = cputrain::mpi::make_mpi_communicator();
    run(*comm, how);
    return 0;
  } catch (const cputrain::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}

int run_and_abort(const std::string& how) {
  const auto comm = cputrain::mpi::make_mpi_communicator();
  try {
    run(*comm, how);
  } catch (const cputrain::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    comm->abort(static_cast<int>(error.code()));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "abort";
  return how == "return" ? run_and_return(how) : run_and_abort(how);
}
