#include "datasets/formats/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace cputrain::datasets {
namespace {

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

MappedFile::MappedFile(const std::string& path, const std::string& purpose) {
  const auto refuse = [&](const char* problem) {
    fail(ExitCode::data, fmt::format("'{}' cannot be read: {} ({}); check the path and its "
                                     "permissions",
                                     path, problem, purpose));
  };
  // Without O_NONBLOCK, opening a pipe would wait for a writer for ever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat facts {};
  if (file.number < 0 || ::fstat(file.number, &facts) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) refuse("not a regular file");
  size_ = static_cast<std::size_t>(facts.st_size);
  if (size_ == 0) return;
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.number, 0);
  if (memory == MAP_FAILED) refuse(std::strerror(errno));
  data_ = static_cast<const std::uint8_t*>(memory);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

}  // namespace cputrain::datasets
