#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

/// What may be removed of folders in shared places, such as /tmp and /dev/shm.
namespace cputrain::mpi {

/// A folder, no link to one, that is this user's.
inline bool is_own_folder(const struct stat& status) {
  return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid();
}

/// N of a name such as "pid.N", from 0; nothing for other names.
inline std::optional<pid_t> number_of(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  pid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace cputrain::mpi
