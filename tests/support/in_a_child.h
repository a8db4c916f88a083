#pragma once

#include <sched.h>
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

inline constexpr int kNoNamespaces = 77;

/// The same of the first process of a pid namespace of its own, as of a container; kNoNamespaces
/// where none can be made.
template <class What>
int in_a_pid_namespace(What what) {
  return in_a_child([&] {
    if (::unshare(CLONE_NEWPID) != 0) return kNoNamespaces;
    return in_a_child(what);
  });
}

}  // namespace cputrain::testing
