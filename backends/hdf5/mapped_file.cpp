#include "backends/hdf5/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "core/casts.h"
#include "system/bounded_file.h"
#include "system/file_system.h"

namespace cputrain::hdf5 {
namespace {

/// Where a file cannot be mapped, its bytes are read into memory.
void* read_whole(const std::filesystem::path& path, std::size_t size) {
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return memory;
  try {
    system::RegularFile(path).read_at(0, {static_cast<std::byte*>(memory), size});
  } catch (...) {
    ::munmap(memory, size);
    throw;
  }
  return memory;
}

/// The file's memory; closes the descriptor.
std::span<std::byte> map_and_close(const std::filesystem::path& path, int descriptor) {
  struct stat about {};
  const bool regular = ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  const auto size = to_size(about.st_size);
  void* memory = nullptr;
  int error = 0;
  if (regular && size > 0) {
    // Writable for libraries that ask for such memory: what they change is their own copy.
    memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
    error = errno;
  }
  ::close(descriptor);
  if (!regular) throw std::runtime_error("is no regular file");
  if (size == 0) throw std::runtime_error("is empty");
  if (memory == MAP_FAILED && system::is_lacking(error, {ENODEV, EACCES, EPERM})) {
    memory = read_whole(path, size);
    error = errno;
  }
  if (memory == MAP_FAILED) {
    throw std::runtime_error("cannot be read: " + system::error_text(error));
  }
  return {static_cast<std::byte*>(memory), size};
}

}  // namespace

/// O_NONBLOCK: a pipe opens at once then, and is refused.
MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) {
    throw std::runtime_error(std::string("cannot be read: ") + std::strerror(errno));
  }
  bytes_ = map_and_close(path, descriptor);
}

MappedFile::~MappedFile() { ::munmap(bytes_.data(), bytes_.size()); }

}  // namespace cputrain::hdf5
