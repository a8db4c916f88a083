#include "system/bounded_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"

namespace cputrain::system {
namespace {

[[noreturn]] void too_large(std::uintmax_t most) {
  throw std::runtime_error("is larger than " + bytes_text(static_cast<double>(most)));
}

[[noreturn]] void cannot_read(int error) {
  throw std::runtime_error(std::string("cannot be read: ") + std::strerror(error));
}

}  // namespace

/// O_NONBLOCK: a pipe opens at once then, and is refused.
RegularFile::RegularFile(const std::filesystem::path& path)
    : descriptor_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (descriptor_ < 0) cannot_read(errno);
  struct stat about {};
  if (::fstat(descriptor_, &about) == 0 && S_ISREG(about.st_mode)) {
    size_ = static_cast<std::uintmax_t>(about.st_size);
    return;
  }
  ::close(descriptor_);
  throw std::runtime_error("is no regular file");
}

RegularFile::~RegularFile() { ::close(descriptor_); }

std::size_t RegularFile::read_some(std::uintmax_t offset, std::span<std::byte> dst) const {
  std::size_t done = 0;
  while (done < dst.size()) {
    const ssize_t got = ::pread(descriptor_, dst.data() + done, dst.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void RegularFile::read_at(std::uintmax_t offset, std::span<std::byte> dst) const {
  if (read_some(offset, dst) < dst.size()) {
    throw std::runtime_error("has become shorter");
  }
}

BoundedFile::BoundedFile(const std::filesystem::path& path, std::uintmax_t most)
    : file_(path), most_(most) {
  if (file_.size() > most) too_large(most);
}

std::string BoundedFile::next() {
  std::string piece(1 << 16, '\0');
  piece.resize(file_.read_some(read_, std::as_writable_bytes(std::span(piece))));
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

nlohmann::json read_json_file(const std::filesystem::path& file, std::uintmax_t most,
                              std::string_view remedy) {
  const auto refuse = [&](const char* before, const std::string& what) {
    fail(ExitCode::data, fmt::format("{}{}{} {}", file.string(), before, what, remedy));
  };
  std::string text;
  try {
    text = read_bounded(file, most);
  } catch (const std::runtime_error& mistake) {
    refuse(": ", mistake.what());
  }
  try {
    return parse_strict_json(text);
  } catch (const std::runtime_error& mistake) {
    refuse(": is not valid JSON: ", printable(mistake.what()));
  }
  return {};
}

}  // namespace cputrain::system
