#include "weights/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <tuple>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"

namespace cputrain::weights::safetensors {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

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

std::size_t product(const std::vector<std::size_t>& extents) {
  std::size_t count = 1;
  for (const std::size_t extent : extents) count *= extent;
  return count;
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

std::size_t TensorInfo::count() const { return product(extents); }

namespace {

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

}  // namespace

File::File(std::filesystem::path path) : path_(std::move(path)) {
  try {
    read_all();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    wrong(error.what());
  }
}

void File::read_all() {
  file_ = std::make_shared<system::RegularFile>(path_);
  const std::uint64_t size = file_->size();
  if (size < 8) wrong("is shorter than 8 bytes");
  std::uint64_t length = 0;
  file_->read_at(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeader) wrong(fmt::format("has a header of {} bytes", length));
  if (length > size - 8) {
    wrong(fmt::format("is cut off: it has a header of {} bytes in a file of {}", length, size));
  }
  std::string header(length, '\0');
  file_->read_at(8, std::as_writable_bytes(std::span(header)));
  buffer_start_ = 8 + length;
  read_header(header);
  check_buffer(size - buffer_start_);
}

void File::read_header(const std::string& header) {
  if (!header.starts_with('{')) wrong("has a header that does not begin with {");
  json parsed;
  try {
    parsed = parse_strict_json(header);
  } catch (const std::exception& error) {
    wrong(std::string("has a header that is not valid JSON: ") + error.what());
  }
  if (parsed.size() > kMaxTensors) {
    wrong(fmt::format("describes {} tensors, more than {}", parsed.size(), kMaxTensors));
  }
  for (const auto& [name, entry] : parsed.items()) {
    if (name != "__metadata__") {
      auto tensor = read_entry(name, entry);
      if (!tensor) wrong("describes tensor " + name + " wrongly");
      tensors_.push_back(std::move(*tensor));
      continue;
    }
    if (entry.is_null()) continue;  // the format's own library reads it as none
    if (!entry.is_object()) wrong("has metadata that is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) wrong("has metadata that is not text");
      metadata_[key] = value;
    }
  }
  std::ranges::sort(tensors_, {}, [](const TensorInfo& t) { return std::pair(t.begin, t.end); });
  for (std::size_t i = 0; i < tensors_.size(); ++i) places_[tensors_[i].name] = i;
}

std::size_t File::checked_bytes(const TensorInfo& tensor) const {
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

void File::check_buffer(std::size_t buffer_bytes) const {
  std::size_t expected = 0;
  for (const TensorInfo& tensor : tensors_) {
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

const TensorInfo* File::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &tensors_[found->second];
}

template <class T>
std::vector<T> File::read_as(const TensorInfo& tensor) const {
  std::vector<T> values(tensor.count());
  try {
    file_->read_at(buffer_start_ + tensor.begin, std::as_writable_bytes(std::span(values)));
  } catch (const std::runtime_error& error) {
    wrong(error.what());
  }
  return values;
}

namespace {

template <class To, class From>
std::vector<To> converted(const std::vector<From>& values) {
  return {values.begin(), values.end()};
}

/// A number of IEEE 754's 16 bits, exactly: subnormal ones, infinities and NaN, too.
float from_half(std::uint16_t bits) {
  const bool negative = (bits & 0x8000u) != 0;
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  float value = 0;
  if (exponent == 0x1f) {
    value =
        fraction ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    value = std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  }
  return negative ? -value : value;
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::vector<float> widened(const std::vector<std::uint16_t>& bits, float (*number)(std::uint16_t)) {
  std::vector<float> values(bits.size());
  std::ranges::transform(bits, values.begin(), number);
  return values;
}

}  // namespace

std::vector<double> File::read(const TensorInfo& tensor) const {
  if (tensor.dtype == "F64") return read_as<double>(tensor);
  return converted<double>(read_floats(tensor));
}

std::vector<float> File::read_floats(const TensorInfo& tensor) const {
  if (tensor.dtype == "F32") return read_as<float>(tensor);
  if (tensor.dtype == "F64") return converted<float>(read_as<double>(tensor));
  if (tensor.dtype == "F16") return widened(read_as<std::uint16_t>(tensor), from_half);
  if (tensor.dtype == "BF16") return widened(read_as<std::uint16_t>(tensor), from_bf16);
  wrong("has tensor " + tensor.name + " of type " + tensor.dtype + ", not F32, F64, F16 or BF16");
}

void File::wrong(const std::string& what) const {
  fail(ExitCode::data, fmt::format("weight file {} {} (it cannot be loaded); get or write "
                                   "it anew, as safetensors",
                                   path_.string(), printable(what)));
}

}  // namespace cputrain::weights::safetensors
