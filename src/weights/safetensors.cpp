#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/json_text.h"

namespace cputrain::weights::safetensors {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::size_t kMaxTensors = 100'000;  // a network of 10,000 layers has 40,000 at most

const std::map<std::string, int>& bits_of_dtype() {
  static const std::map<std::string, int> bits{
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},        {"U64", 64}};
  return bits;
}

bool is_double(const OutTensor& tensor) { return static_cast<bool>(tensor.doubles); }

template <class Make>
void write_values(system::OutputFile& file, const Make& make) {
  const auto values = make();
  file.write(std::as_bytes(std::span(values)));
}

/// Header text: what describes the tensors, padded with spaces so that the buffer is aligned.
std::string header_text(const Metadata& metadata, const std::vector<OutTensor>& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const OutTensor& tensor : tensors) {
    const std::size_t size = is_double(tensor) ? sizeof(double) : sizeof(float);
    const std::size_t bytes = product(tensor.extents) * size;
    header[tensor.name] = {{"dtype", is_double(tensor) ? "F64" : "F32"},
                           {"shape", tensor.extents},
                           {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write(system::OutputFile& file, const Metadata& metadata, std::vector<OutTensor> tensors) {
  std::ranges::sort(tensors, {}, [](const OutTensor& tensor) {
    return std::tuple(!is_double(tensor), std::string_view(tensor.name));
  });
  const std::string header = header_text(metadata, tensors);
  const std::uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const OutTensor& tensor : tensors) {
    is_double(tensor) ? write_values(file, tensor.doubles) : write_values(file, tensor.values);
  }
}

void write(const std::filesystem::path& path, const Metadata& metadata,
           std::vector<OutTensor> tensors, system::Durability durability) {
  system::AtomicFile file(path);
  write(file, metadata, std::move(tensors));
  file.commit(durability);
}

namespace {

/// What is wrong with the file, behind its name.
[[noreturn]] void wrong(const std::string& what) { throw std::runtime_error(what); }

bool is_list_of_sizes(const json& value) {
  return value.is_array() &&
         std::ranges::all_of(value, [](const json& v) { return v.is_number_unsigned(); });
}

/// Nothing where the entry lacks one of its three fields or has one of another form.
std::optional<TensorInfo> read_entry(const std::string& name, const json& entry) {
  if (!entry.is_object()) return std::nullopt;
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!entry.contains(key)) return std::nullopt;
  }
  const json &dtype = entry["dtype"], &shape = entry["shape"], &offsets = entry["data_offsets"];
  if (!dtype.is_string() || !bits_of_dtype().contains(dtype) || !is_list_of_sizes(shape) ||
      !is_list_of_sizes(offsets) || offsets.size() != 2) {
    return std::nullopt;
  }
  return TensorInfo{name, dtype, shape, offsets[0], offsets[1]};
}

Metadata read_metadata(const json& entry) {
  Metadata metadata;
  if (entry.is_null()) return metadata;  // the format's own library reads it as none
  if (!entry.is_object()) wrong("has metadata that is not an object");
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) wrong("has metadata that is not text");
    metadata[key] = value;
  }
  return metadata;
}

/// What it says of the file, and its tensors in the order of the buffer.
std::pair<Metadata, std::vector<TensorInfo>> read_header(const std::string& text) {
  if (!text.starts_with('{')) wrong("has a header that does not begin with {");
  json parsed;
  try {
    parsed = parse_strict_json(text);
  } catch (const std::exception& error) {
    wrong(std::string("has a header that is not valid JSON: ") + error.what());
  }
  if (parsed.size() > kMaxTensors) {
    wrong(fmt::format("describes {} tensors, more than {}", parsed.size(), kMaxTensors));
  }
  Metadata metadata;
  std::vector<TensorInfo> tensors;
  for (const auto& [name, entry] : parsed.items()) {
    if (name == "__metadata__") {
      metadata = read_metadata(entry);
      continue;
    }
    auto tensor = read_entry(name, entry);
    if (!tensor) wrong("describes tensor " + name + " wrongly");
    tensors.push_back(std::move(*tensor));
  }
  std::ranges::sort(tensors, {}, [](const TensorInfo& t) { return std::pair(t.begin, t.end); });
  return {std::move(metadata), std::move(tensors)};
}

std::size_t checked_bytes(const TensorInfo& tensor) {
  auto bits = static_cast<std::size_t>(bits_of_dtype().at(tensor.dtype));
  for (const std::size_t extent : tensor.extents) {
    if (extent != 0 && bits > std::numeric_limits<std::size_t>::max() / extent) {
      wrong("has a tensor " + tensor.name + " too large to count");
    }
    bits *= extent;
  }
  if (bits % 8 != 0) wrong("has a tensor " + tensor.name + " that ends within a byte");
  return bits / 8;
}

/// The tensors cover the buffer without a hole or an overlap.
void check_buffer(const std::vector<TensorInfo>& tensors, std::size_t buffer_bytes) {
  std::size_t expected = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::size_t bytes = checked_bytes(tensor);
    if (tensor.begin != expected || tensor.end < tensor.begin ||
        tensor.end - tensor.begin != bytes) {
      wrong(fmt::format("has a hole, an overlap or a wrong length at tensor {} (bytes {} to {})",
                        tensor.name, tensor.begin, tensor.end));
    }
    expected = tensor.end;
  }
  if (expected != buffer_bytes) {
    wrong(fmt::format("{}holds {} bytes of numbers where its header says {}",
                      buffer_bytes < expected ? "is cut off: it " : "", buffer_bytes, expected));
  }
}

constexpr const char* kRemedy = "get or write it anew, as safetensors";

TensorFile opened(const std::filesystem::path& path) {
  const auto file = std::make_shared<const system::RegularFile>(path);
  const std::uint64_t size = file->size();
  if (size < 8) wrong("is shorter than 8 bytes");
  std::uint64_t length = 0;
  file->read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeader) wrong(fmt::format("has a header of {} bytes", length));
  if (length > size - 8) {
    wrong(fmt::format("is cut off: it has a header of {} bytes in a file of {}", length, size));
  }
  std::string text(length, '\0');
  file->read_at(8, std::as_writable_bytes(std::span(text)));
  auto [metadata, tensors] = read_header(text);
  check_buffer(tensors, size - 8 - length);
  return {path, file, kRemedy, 8 + length, std::move(metadata), std::move(tensors)};
}

}  // namespace

TensorFile open(const std::filesystem::path& path) {
  try {
    return opened(path);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    unusable(path, error.what(), kRemedy);
  }
}

}  // namespace cputrain::weights::safetensors
