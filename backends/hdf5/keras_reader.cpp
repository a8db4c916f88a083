#include "backends/hdf5/keras_reader.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>
#include <utility>

#include "backends/hdf5/hdf5_contents.h"
#include "backends/hdf5/mapped_file.h"
#include "backends/hdf5/written_apart.h"
#include "backends/hdf5/zip_archive.h"
#include "core/error.h"
#include "core/text.h"
#include "weights/weight_file.h"

namespace cputrain::hdf5 {
namespace {

constexpr std::size_t kMostConfig = std::size_t{16} << 20;

/// A gigabyte takes a few seconds, and its largest array as numbers of two bytes thrice its size,
/// beside the file; a damaged file may have loops.
Limits limits_of(const std::filesystem::path& path) {
  constexpr std::size_t kMemory = std::size_t{1} << 30;
  std::error_code none;  // the reader says what is wrong
  const std::uintmax_t size = std::filesystem::file_size(path, none);
  return {.cpu_seconds = 30, .seconds = 300, .memory = kMemory + (none ? 0 : 4 * size)};
}

std::string config_text(std::span<std::byte> archive) {
  const auto member = stored_member(archive, "config.json");
  if (!member) return "";
  if (member->size() > kMostConfig) throw std::runtime_error("has a config.json of over 16 MB");
  return {reinterpret_cast<const char*>(member->data()), member->size()};
}

void write_keras(const std::filesystem::path& path, bool archive, system::OutputFile& output) {
  const MappedFile file(path);
  if (!archive) return write_contents(file.bytes(), {}, output);
  const auto weights = stored_member(file.bytes(), "model.weights.h5");
  if (!weights) {
    throw std::runtime_error("is a zip archive without Keras' model.weights.h5");
  }
  weights::KerasTexts texts;
  texts.config = config_text(file.bytes());
  write_contents(*weights, std::move(texts), output);
}

/// What the reader wrote, whose name would tell people nothing.
weights::safetensors::File opened(const MemoryFile& memory) {
  if (!std::filesystem::exists(memory.path())) {
    throw SystemFault("cannot be read (/proc, by which its arrays are opened, is not there)");
  }
  try {
    return weights::safetensors::File(memory.path());
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
    weights::safetensors::File arrays = opened(memory);
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
