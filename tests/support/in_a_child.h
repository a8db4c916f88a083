#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace cputrain::testing {

/// The exit code of a child process that does this; -1 where a signal ended it. The child leaves
/// without destructors, as if nobody were there.
template <class What>
int in_a_child(What what) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(what());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace cputrain::testing
