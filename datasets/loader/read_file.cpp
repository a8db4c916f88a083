#include "datasets/loader/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/casts.h"
#include "system/bounded_file.h"

namespace cputrain::datasets {
namespace {

FileContent unreadable() { return {{data::ReadStatus::unreadable, std::strerror(errno)}, {}}; }

}  // namespace

FileContent read_file(const std::string& path, std::size_t limit, DecodingBudget::Claim* claim) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer for ever.
  const system::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat facts {};
  if (!file.is_open() || ::fstat(file.number(), &facts) != 0) return unreadable();
  if (!S_ISREG(facts.st_mode)) return {{data::ReadStatus::unreadable, "not a regular file"}, {}};
  const auto size = to_size(facts.st_size);
  if (size > limit) {
    return {{data::ReadStatus::too_large, std::to_string(size) + " bytes"}, {}};
  }
  if (claim != nullptr) claim->grow(size);
  FileContent content;
  content.bytes.resize(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.number(), content.bytes.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable();
    if (got == 0) break;  // it was shortened meanwhile
    done += to_size(got);
  }
  content.bytes.resize(done);
  if (done == 0) content.result = {data::ReadStatus::empty, "zero bytes"};
  return content;
}

}  // namespace cputrain::datasets
