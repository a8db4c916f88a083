#include "system/bounded_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"

namespace cputrain::system {
namespace {

[[noreturn]] void too_large(std::uintmax_t most) {
  throw std::runtime_error("is larger than " + bytes_text(most));
}

[[noreturn]] void cannot_read(int error) {
  throw std::runtime_error(std::string("cannot be read: ") + std::strerror(error));
}

RegularFile open_bounded(const std::filesystem::path& path, std::uintmax_t most) {
  RegularFile file(path);
  if (file.size() > most) too_large(most);
  return file;
}

/// The bytes behind the first `read`, which grows by them; none at the end.
std::string next_piece(const RegularFile& file, std::uintmax_t most, std::uintmax_t& read) {
  std::string piece(1 << 16, '\0');
  piece.resize(file.read_some(read, std::as_writable_bytes(std::span(piece))));
  read += piece.size();
  if (read > most) too_large(most);
  return piece;
}

}  // namespace

/// O_NONBLOCK: a pipe opens at once then, and is refused.
RegularFile::RegularFile(const std::filesystem::path& path)
    : file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (!file_.is_open()) cannot_read(errno);
  struct stat about {};
  if (::fstat(file_.number(), &about) != 0 || !S_ISREG(about.st_mode)) {
    throw std::runtime_error("is no regular file");
  }
  size_ = static_cast<std::uintmax_t>(about.st_size);
  changed_ = about.st_mtim;
}

bool RegularFile::is_unchanged() const {
  struct stat about {};
  return ::fstat(file_.number(), &about) == 0 &&
         static_cast<std::uintmax_t>(about.st_size) == size_ &&
         about.st_mtim.tv_sec == changed_.tv_sec && about.st_mtim.tv_nsec == changed_.tv_nsec;
}

std::size_t RegularFile::read_some(std::uintmax_t offset, std::span<std::byte> dst) const {
  std::size_t done = 0;
  while (done < dst.size()) {
    const ssize_t got = ::pread(file_.number(), dst.data() + done, dst.size() - done,
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

void RegularFile::for_each_piece(std::uintmax_t begin, std::uintmax_t bytes,
                                 const std::function<void(std::span<const std::byte>)>& use) const {
  constexpr std::uintmax_t kPiece = std::uintmax_t{1} << 20;
  std::vector<std::byte> space(std::min(bytes, kPiece));
  for (std::uintmax_t done = 0; done < bytes; done += kPiece) {
    const auto piece = std::span(space).first(std::min(kPiece, bytes - done));
    read_at(begin + done, piece);
    use(piece);
  }
}

std::string read_bounded(const std::filesystem::path& path, std::uintmax_t most) {
  const RegularFile file = open_bounded(path, most);
  std::string text;
  std::uintmax_t read = 0;
  for (std::string piece; !(piece = next_piece(file, most, read)).empty();) text += piece;
  return text;
}

BoundedLines::BoundedLines(const std::filesystem::path& path, std::uintmax_t most,
                           std::uintmax_t most_of_line)
    : file_(open_bounded(path, most)), most_(most), most_of_line_(most_of_line) {}

bool BoundedLines::fill() {
  piece_ = next_piece(file_, most_, read_);
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
    if (line.size() > most_of_line_) {
      throw std::runtime_error("has a line of more than " + bytes_text(most_of_line_));
    }
    if (end < piece_.size()) return line;
  }
  return some ? std::optional(std::move(line)) : std::nullopt;
}

nlohmann::json read_json_file(const std::filesystem::path& file, std::uintmax_t most,
                              std::string_view remedy) {
  const auto refuse = [&](const char* before, const std::string& what) {
    fail(ExitCode::data, "{}{}{} {}", file.string(), before, what, remedy);
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
