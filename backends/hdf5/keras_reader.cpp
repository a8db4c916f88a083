#include "backends/hdf5/keras_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "backends/hdf5/hdf5_contents.h"
#include "backends/hdf5/written_apart.h"
#include "core/casts.h"
#include "core/error.h"
#include "core/text.h"
#include "system/bounded_file.h"
#include "system/file_system.h"
#include "system/zip_archive.h"
#include "weights/weight_file.h"

namespace cputrain::hdf5 {
namespace {

constexpr std::size_t kMostConfig = std::size_t{16} << 20;

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

std::span<std::byte> mapped(const std::filesystem::path& path, int descriptor) {
  struct stat about {};
  if (::fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
    throw std::runtime_error("is no regular file");
  }
  const auto size = to_size(about.st_size);
  if (size == 0) throw std::runtime_error("is empty");
  // Writable for libraries that ask for such memory: what they change is their own copy.
  void* memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor, 0);
  int error = errno;
  if (memory == MAP_FAILED && system::is_lacking(error, {ENODEV, EACCES, EPERM})) {
    memory = read_whole(path, size);
    error = errno;
  }
  if (memory == MAP_FAILED) {
    throw std::runtime_error("cannot be read: " + system::error_text(error));
  }
  return {static_cast<std::byte*>(memory), size};
}

/// A regular file as memory, which nothing changes. Where the file is cut meanwhile, reading it
/// ends the process by a signal. std::runtime_error has what is wrong.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path) {
    // A pipe opens at once with O_NONBLOCK, and is refused.
    const system::Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!file.is_open()) {
      throw std::runtime_error(std::string("cannot be read: ") + std::strerror(errno));
    }
    bytes_ = mapped(path, file.number());
  }
  ~MappedFile() { ::munmap(bytes_.data(), bytes_.size()); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// A gigabyte takes a few seconds, and its largest array as numbers of two bytes thrice its size,
/// beside the file; a damaged file may have loops.
Limits limits_of(const std::filesystem::path& path) {
  constexpr std::size_t kMemory = std::size_t{1} << 30;
  std::error_code none;  // the reader says what is wrong
  const std::uintmax_t size = std::filesystem::file_size(path, none);
  return {.cpu_seconds = 30, .seconds = 300, .memory = kMemory + (none ? 0 : 4 * size)};
}

void write_keras(const std::filesystem::path& path, bool archive, system::OutputFile& output) {
  const MappedFile file(path);
  if (!archive) return write_contents(file.bytes(), {}, output);
  // HDF5 has no checksums of its own in files of Keras: a changed number would be a weight.
  system::ZipFiles files(file.bytes().size(), [&](std::uint64_t offset, std::span<std::byte> dst) {
    std::ranges::copy(file.bytes().subspan(offset, dst.size()), dst.begin());
  });
  const auto weights = files.stored("model.weights.h5");
  if (!weights) throw std::runtime_error("is a zip archive without Keras' model.weights.h5");
  weights::KerasTexts texts;
  if (const auto config = files.stored("config.json")) {
    if (config->size > kMostConfig) throw std::runtime_error("has a config.json of over 16 MB");
    texts.config = {reinterpret_cast<const char*>(file.bytes().data()) + config->begin,
                    config->size};
  }
  write_contents(file.bytes().subspan(weights->begin, weights->size), std::move(texts), output);
}

/// What the reader wrote, whose name would tell people nothing.
weights::TensorFile opened(const MemoryFile& memory) {
  if (!std::filesystem::exists(memory.path())) {
    throw SystemFault("cannot be read (/proc, by which its arrays are opened, is not there)");
  }
  try {
    return weights::safetensors::open(memory.path());
  } catch (const Error&) {
    throw std::runtime_error("has names or texts that are too long in all");
  }
}

}  // namespace

weights::KerasFile read_keras(const std::filesystem::path& path) {
  const bool archive = weights::weight_format(path) == weights::WeightFormat::keras;
  try {
    MemoryFile memory;
    write_apart(memory, limits_of(path),
                [&](system::OutputFile& output) { write_keras(path, archive, output); });
    weights::TensorFile arrays = opened(memory);
    weights::KerasTexts texts = weights::keras_texts(arrays.metadata());
    return {path, std::move(arrays), std::move(texts)};
  } catch (const Error&) {
    throw;
  } catch (const SystemFault& error) {
    fail(ExitCode::data,
         fmt::format("weight file {} {} (it cannot be loaded); try again where more memory is free "
                     "and no limit (ulimit -a) is in the way",
                     printable(path.string()), printable(error.what())));
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, fmt::format("weight file {} {} (it cannot be loaded); save it again in "
                                     "Keras",
                                     printable(path.string()), printable(error.what())));
  }
}

std::string hdf5_library() { return "HDF5 " + built_with() + " (loaded when it is needed)"; }

}  // namespace cputrain::hdf5
