#include "model/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/json_text.h"

namespace cputrain::safetensors {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr int kMaxDepth = 32;

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

/// Header text: what describes the tensors, padded with spaces so that the buffer is aligned.
std::string header_text(const Metadata& metadata, const std::vector<OutTensor>& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  std::size_t offset = 0;
  for (const OutTensor& tensor : tensors) {
    const std::size_t bytes = product(tensor.extents) * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.extents}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write(const std::filesystem::path& path, const Metadata& metadata,
           std::vector<OutTensor> tensors, Durability durability) {
  std::ranges::sort(tensors, {}, &OutTensor::name);
  const std::string header = header_text(metadata, tensors);
  const std::uint64_t length = header.size();
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const OutTensor& tensor : tensors) {
    const std::vector<double> values = tensor.values();
    const std::vector<float> floats(values.begin(), values.end());
    file.write(std::as_bytes(std::span(floats)));
  }
  file.commit(durability);
}

std::size_t TensorInfo::count() const { return product(extents); }

namespace {

/// Rejects duplicate keys and deep nesting while the header is parsed.
class HeaderRules {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) throw std::runtime_error("nested too deeply");
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key && !keys_.back().insert(parsed).second) {
      throw std::runtime_error("key " + parsed.dump() + " appears twice");
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

bool is_size(const json& value) { return value.is_number_unsigned(); }

}  // namespace

File::File(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path_, error);
  std::ifstream stream(path_, std::ios::binary);
  if (error || !stream) wrong("cannot be read");
  if (size < 8) wrong("is shorter than 8 bytes");
  std::uint64_t length = 0;
  stream.read(reinterpret_cast<char*>(&length), sizeof length);
  if (length > kMaxHeader || length > size - 8) {
    wrong(fmt::format("has a header of {} bytes in a file of {}", length, size));
  }
  std::string header(length, '\0');
  if (!stream.read(header.data(), static_cast<std::streamsize>(length))) wrong("cannot be read");
  buffer_start_ = 8 + length;
  parse(header, size - buffer_start_);
}

void File::parse(const std::string& header, std::size_t buffer_bytes) {
  if (header.empty() || header.front() != '{') wrong("has a header that does not begin with {");
  json parsed;
  try {
    parsed = json::parse(header, HeaderRules{});
  } catch (const std::exception& error) {
    wrong(std::string("has a header that is not valid JSON: ") + error.what());
  }
  for (const auto& [name, entry] : parsed.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) wrong("has metadata that is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) wrong("has metadata that is not text");
        metadata_[key] = value;
      }
      continue;
    }
    const auto has = [&](const char* key) { return entry.is_object() && entry.contains(key); };
    if (!has("dtype") || !has("shape") || !has("data_offsets") || !entry["dtype"].is_string() ||
        !bits_of_dtype().contains(entry["dtype"]) || !entry["shape"].is_array() ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2 ||
        !std::ranges::all_of(entry["shape"], is_size) ||
        !std::ranges::all_of(entry["data_offsets"], is_size)) {
      wrong("describes tensor " + name + " wrongly");
    }
    tensors_.push_back(
        {name, entry["dtype"], entry["shape"], entry["data_offsets"][0], entry["data_offsets"][1]});
  }
  std::ranges::sort(tensors_, {}, [](const TensorInfo& t) { return std::pair(t.begin, t.end); });
  std::size_t expected = 0;
  for (const TensorInfo& tensor : tensors_) {
    std::size_t bits = static_cast<std::size_t>(bits_of_dtype().at(tensor.dtype));
    for (const std::size_t extent : tensor.extents) {
      if (extent != 0 && bits > std::numeric_limits<std::size_t>::max() / extent) {
        wrong("has a tensor " + tensor.name + " too large to count");
      }
      bits *= extent;
    }
    if (tensor.begin != expected || tensor.end < tensor.begin || bits % 8 != 0 ||
        tensor.end - tensor.begin != bits / 8) {
      wrong("has a hole, an overlap or a wrong length at tensor " + tensor.name);
    }
    expected = tensor.end;
  }
  if (expected != buffer_bytes) {
    wrong(
        fmt::format("holds {} bytes of numbers where its header says {}", buffer_bytes, expected));
  }
}

const TensorInfo* File::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors_, name, &TensorInfo::name);
  return found == tensors_.end() ? nullptr : &*found;
}

namespace {

template <class T>
std::vector<double> to_doubles(const std::vector<char>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), bytes.data(), bytes.size());  // null is not allowed
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<double> File::read(const TensorInfo& tensor) const {
  std::ifstream stream(path_, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(buffer_start_ + tensor.begin));
  std::vector<char> bytes(tensor.end - tensor.begin);
  if (!stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) {
    wrong("cannot be read");
  }
  if (tensor.dtype == "F32") return to_doubles<float>(bytes);
  if (tensor.dtype == "F64") return to_doubles<double>(bytes);
  wrong("has tensor " + tensor.name + " of type " + tensor.dtype + ", not F32 or F64");
}

void File::wrong(const std::string& what) const {
  fail(ExitCode::data, fmt::format("weight file {} {} (it cannot be loaded); use a file that "
                                   "training wrote",
                                   path_.string(), what));
}

}  // namespace cputrain::safetensors
