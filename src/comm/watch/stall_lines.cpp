#include "comm/watch/stall_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "system/clock.h"

namespace cputrain::watch {

std::string stall_line(const nlohmann::ordered_json& entry) {
  nlohmann::ordered_json line{{"time", system::unix_seconds()}};
  line.update(entry);
  return json_text(line);
}

/// Whole lines are appended, so that several ranks may print.
void append_stall(const std::filesystem::path& folder, std::string line) {
  const std::filesystem::path path = folder / kStallsName;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int file = ::open(path.c_str(), kFlags, 0666);
  if (file < 0) return;
  struct stat status {};
  line += '\n';
  if (::fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    static_cast<void>(::write(file, line.data(), line.size()) < 0);
  }
  ::close(file);
}

}  // namespace cputrain::watch
