#include "backends/hdf5/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace cputrain::hdf5 {
namespace {

/// The file's memory; closes the descriptor.
std::span<std::byte> map_and_close(int descriptor) {
  struct stat about {};
  const bool regular = ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode);
  const auto size = static_cast<std::size_t>(about.st_size);
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
  if (memory == MAP_FAILED) {
    throw std::runtime_error(std::string("cannot be read: ") + std::strerror(error));
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
  bytes_ = map_and_close(descriptor);
}

MappedFile::~MappedFile() { ::munmap(bytes_.data(), bytes_.size()); }

}  // namespace cputrain::hdf5
