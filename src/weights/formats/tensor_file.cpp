#include "weights/formats/tensor_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::weights {
namespace {

static_assert(std::endian::native == std::endian::little, "files of tensors are little-endian");

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

/// Row by row, from the numbers between an array's first and last one.
template <class T>
std::vector<T> gathered(const TensorInfo& tensor, const std::vector<T>& numbers) {
  std::vector<T> values;
  values.reserve(tensor.count());
  std::vector<std::size_t> index(tensor.extents.size());
  std::size_t place = 0;
  for (std::size_t left = tensor.count(); left > 0; --left) {
    values.push_back(numbers[place]);
    for (std::size_t axis = index.size(); axis-- > 0;) {
      place += tensor.strides[axis];
      if (++index[axis] < tensor.extents[axis]) break;
      place -= index[axis] * tensor.strides[axis];
      index[axis] = 0;
    }
  }
  return values;
}

}  // namespace

std::size_t product(std::span<const std::size_t> extents) {
  std::size_t count = 1;
  for (const std::size_t extent : extents) count *= extent;
  return count;
}

TensorFile::TensorFile(std::filesystem::path path, std::shared_ptr<const system::RegularFile> file,
                       std::string remedy, std::uint64_t buffer, Metadata metadata,
                       std::vector<TensorInfo> tensors)
    : path_(std::move(path)),
      file_(std::move(file)),
      remedy_(std::move(remedy)),
      buffer_(buffer),
      metadata_(std::move(metadata)),
      tensors_(std::move(tensors)) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) places_[tensors_[i].name] = i;
}

const TensorInfo* TensorFile::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &tensors_[found->second];
}

template <class T>
std::vector<T> TensorFile::read_as(const TensorInfo& tensor) const {
  std::vector<T> values((tensor.end - tensor.begin) / sizeof(T));
  try {
    file_->read_at(buffer_ + tensor.begin, std::as_writable_bytes(std::span(values)));
  } catch (const std::runtime_error& error) {
    unusable(path_, error.what(), remedy_);
  }
  return tensor.strides.empty() ? values : gathered(tensor, values);
}

std::vector<double> TensorFile::read(const TensorInfo& tensor) const {
  if (tensor.dtype == "F64") return read_as<double>(tensor);
  return converted<double>(read_floats(tensor));
}

std::vector<float> TensorFile::read_floats(const TensorInfo& tensor) const {
  if (tensor.dtype == "F32") return read_as<float>(tensor);
  if (tensor.dtype == "F64") return converted<float>(read_as<double>(tensor));
  if (tensor.dtype == "F16") return widened(read_as<std::uint16_t>(tensor), from_half);
  if (tensor.dtype == "BF16") return widened(read_as<std::uint16_t>(tensor), from_bf16);
  unusable(path_,
           "has tensor " + tensor.name + " of type " + tensor.dtype + ", not F32, F64, F16 or BF16",
           remedy_);
}

void unusable(const std::filesystem::path& file, const std::string& what,
              const std::string& remedy) {
  fail(ExitCode::data, "weight file {} {} (it cannot be loaded); {}", file.string(),
       printable(what), remedy);
}

}  // namespace cputrain::weights
