#include "core/bounded_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "core/text.h"

namespace cputrain {
namespace {

[[noreturn]] void too_large(std::uintmax_t most) {
  throw std::runtime_error("is larger than " + bytes_text(static_cast<double>(most)));
}

/// O_NONBLOCK: a pipe opens at once then, and is refused.
int open_regular(const std::filesystem::path& path, std::uintmax_t most) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0)
    throw std::runtime_error(std::string("cannot be read: ") + std::strerror(errno));
  struct stat about {};
  const bool known = ::fstat(descriptor, &about) == 0;
  if (known && S_ISREG(about.st_mode) && static_cast<std::uintmax_t>(about.st_size) <= most) {
    return descriptor;
  }
  ::close(descriptor);
  if (known && S_ISREG(about.st_mode)) too_large(most);
  throw std::runtime_error("is no regular file");
}

}  // namespace

BoundedFile::BoundedFile(const std::filesystem::path& path, std::uintmax_t most)
    : most_(most), descriptor_(open_regular(path, most)) {}

BoundedFile::~BoundedFile() { ::close(descriptor_); }

std::string BoundedFile::next() {
  std::string piece(1 << 16, '\0');
  ssize_t got = 0;
  while ((got = ::read(descriptor_, piece.data(), piece.size())) < 0 && errno == EINTR) {
  }
  if (got < 0) throw std::runtime_error(std::string("cannot be read: ") + std::strerror(errno));
  piece.resize(static_cast<std::size_t>(got));
  read_ += piece.size();
  if (read_ > most_) too_large(most_);
  return piece;
}

std::string read_bounded(const std::filesystem::path& path, std::uintmax_t most) {
  BoundedFile file(path, most);
  std::string text;
  for (std::string piece = file.next(); !piece.empty(); piece = file.next()) text += piece;
  return text;
}

bool BoundedLines::fill() {
  piece_ = file_.next();
  place_ = 0;
  return !piece_.empty();
}

std::optional<std::string> BoundedLines::next() {
  std::string line;
  bool some = false;
  while (place_ < piece_.size() || fill()) {
    some = true;
    const std::size_t end = std::min(piece_.find('\n', place_), piece_.size());
    line.append(piece_, place_, end - place_);
    place_ = end + 1;
    if (line.size() > most_) {
      throw std::runtime_error("has a line of more than " + bytes_text(static_cast<double>(most_)));
    }
    if (end < piece_.size()) return line;
  }
  return some ? std::optional(std::move(line)) : std::nullopt;
}

}  // namespace cputrain
