#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <optional>

namespace cputrain::testing {

/// What tests' children end with where forbid() cannot be had.
inline constexpr int kNoSeccomp = 99;

/// The argument of that number, from 0 on, in its lower 32 bits.
struct Argument {
  int number;
  __u32 value;
};

/// From now on this call of the system fails with that error in this process: where an argument is
/// given, the calls that have it.
inline bool forbid(long call, int error, std::optional<Argument> argument = std::nullopt) {
  const auto where = argument ? offsetof(seccomp_data, args) + sizeof(__u64) * argument->number
                              : offsetof(seccomp_data, nr);
  const __u32 value = argument ? argument->value : static_cast<__u32>(call);
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(call), 0, 3),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<__u32>(where)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<__u32>(error)),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace cputrain::testing
