#include "backends/hdf5/hdf5_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "backends/hdf5/calls.h"
#include "core/casts.h"

namespace cputrain::hdf5 {
namespace {

constexpr std::size_t kMostArrays = 100'000;
constexpr std::size_t kMostTexts = std::size_t{16} << 20;  ///< bytes of all names and texts
constexpr std::size_t kLongestName = 4096;
constexpr unsigned kReadOnly = 0;  ///< H5F_ACC_RDONLY, whose macro calls a library that is linked

constexpr std::string_view kBeginning = "\x89HDF\r\n\x1a\n";

[[noreturn]] void damaged_file(const std::string& what) {
  throw std::runtime_error(fmt::format("is damaged (libhdf5 cannot read {})", what));
}

/// An identifier of the library, closed at its end.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id < 0) damaged_file(what);
  }
  ~Handle() { close_(id_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

template <class Number>
Number at_least_zero(Number value, const std::string& what) {
  if (value < 0) damaged_file(what);
  return value;
}

/// The library takes the file's memory as it is, and copies nothing.
struct Image {
  void* begin;

  static void* allocate(size_t, H5FD_file_image_op_t, void* image) {
    return static_cast<Image*>(image)->begin;
  }
  static void* copy(void* to, const void*, size_t, H5FD_file_image_op_t, void*) { return to; }
  static void* resize(void*, size_t, H5FD_file_image_op_t, void*) { return nullptr; }
  static herr_t release(void*, H5FD_file_image_op_t, void*) { return 0; }
  static void* share(void* image) { return image; }
  static herr_t leave(void*) { return 0; }
};

hid_t open_image(std::span<std::byte> file, Image& image) {
  const Handle access(calls().H5Pcreate(calls().file_access), calls().H5Pclose, "memory");
  H5FD_file_image_callbacks_t uses{Image::allocate, Image::copy,  Image::resize, Image::release,
                                   Image::share,    Image::leave, &image};
  const bool set = calls().H5Pset_fapl_core(access, 1 << 16, false) >= 0 &&
                   calls().H5Pset_file_image_callbacks(access, &uses) >= 0 &&
                   calls().H5Pset_file_image(access, file.data(), file.size()) >= 0;
  return set ? calls().H5Fopen("weights", kReadOnly, access) : H5I_INVALID_HID;
}

/// What texts may still take, those of all objects together: many links may lead to one object,
/// and many entries to one text.
class Room {
 public:
  bool takes(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  void take(std::size_t count, std::size_t length) {
    const std::size_t each = sizeof(std::string) + length;
    if (count > kMostTexts / each || !takes(count * each)) refuse();
  }
  [[noreturn]] static void refuse() {
    throw std::runtime_error(
        fmt::format("has names and texts of over {} MB, or a name of over {} bytes",
                    kMostTexts >> 20, kLongestName));
  }

 private:
  std::size_t left_ = kMostTexts;
};

/// Names that a callback of the library is given; nothing may be thrown through the library.
struct Names {
  std::vector<std::string> names{};
  Room room{};
  bool full = false;

  void note(std::string_view name) {
    full = full || name.size() > kLongestName || !room.takes(sizeof(std::string) + name.size());
    if (!full) names.emplace_back(name);
  }
  template <class Info>
  static herr_t note(hid_t, const char* name, const Info*, void* data) {
    auto& self = *static_cast<Names*>(data);
    try {
      self.note(name);
    } catch (...) {
      return -1;
    }
    return self.full ? -1 : 0;
  }
  /// Links of the file itself; others lead to names or files.
  static herr_t note_link(hid_t id, const char* name, const H5L_info_t* info, void* data) {
    return info->type == H5L_TYPE_HARD ? note(id, name, info, data) : 0;
  }
  /// What `visit` finds, called with the callback's data.
  template <class Visit>
  void gather(const std::string& what, const Visit& visit) {
    if (visit(this) >= 0) return;
    if (full) Room::refuse();
    damaged_file(what);
  }
};

/// What an older file that is a whole network says of it, at its root.
constexpr const char* kModelConfig = "model_config";

bool is_keras_attribute(const std::string& name) {
  return name == kModelConfig || name == "name" || name == "dtype" || name == "backend" ||
         name.starts_with("layer_names") || name.starts_with("weight_names");
}

/// Texts of one attribute; empty where it holds none. Fixed lengths and variable ones.
std::vector<std::string> texts_of_attribute(hid_t attribute, Room& room) {
  const Handle type(calls().H5Aget_type(attribute), calls().H5Tclose, "a text"),
      space(calls().H5Aget_space(attribute), calls().H5Sclose, "a text");
  if (calls().H5Tget_class(type) != H5T_STRING) return {};
  const auto count = to_size(at_least_zero(calls().H5Sget_simple_extent_npoints(space), "a text"));
  const std::size_t length = calls().H5Tget_size(type);
  std::vector<std::string> texts;
  if (count == 0) return texts;
  room.take(count, length);
  if (calls().H5Tis_variable_str(type) > 0) {
    std::vector<char*> pieces(count);
    if (calls().H5Aread(attribute, type, pieces.data()) < 0) damaged_file("a text");
    for (char* piece : pieces) {
      const std::string_view text = piece ? piece : "";
      room.take(1, text.size());
      texts.emplace_back(text);
      calls().H5free_memory(piece);
    }
    return texts;
  }
  std::string all(count * length, '\0');
  if (calls().H5Aread(attribute, type, all.data()) < 0) damaged_file("a text");
  for (std::size_t i = 0; i < count; ++i) {
    const std::string piece = all.substr(i * length, length);
    texts.push_back(piece.substr(0, piece.find('\0')));
  }
  return texts;
}

weights::KerasTexts::Attributes texts_of_object(hid_t object, Room& room) {
  Names found;
  found.gather("the attributes of a group", [&](Names* names) {
    return calls().H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr,
                               Names::note<H5A_info_t>, names);
  });
  weights::KerasTexts::Attributes attributes;
  for (const std::string& name : found.names) {
    if (!is_keras_attribute(name)) continue;
    const Handle attribute(calls().H5Aopen(object, name.c_str(), H5P_DEFAULT), calls().H5Aclose,
                           name);
    room.take(1, name.size());
    // Keras writes an empty list as no text at all.
    attributes[name] = texts_of_attribute(attribute, room);
  }
  return attributes;
}

enum class Numbers { floats, doubles, bfloat16 };

/// An array whose numbers are read when its turn comes.
struct Array {
  std::string name;
  std::vector<std::size_t> extents;
  Numbers numbers;
  std::size_t bytes;  ///< in the file
};

std::vector<std::size_t> extents_of(hid_t dataset, const std::string& name) {
  const Handle space(calls().H5Dget_space(dataset), calls().H5Sclose, name);
  const int axes = at_least_zero(calls().H5Sget_simple_extent_ndims(space), name);
  std::vector<hsize_t> extents(to_size(axes));
  if (axes > 0)
    at_least_zero(calls().H5Sget_simple_extent_dims(space, extents.data(), nullptr), name);
  return {extents.begin(), extents.end()};
}

/// Nothing where the numbers are none of floating point.
std::optional<Numbers> numbers_of(hid_t dataset, hid_t type, Room& room) {
  const std::size_t size = calls().H5Tget_size(type);
  if (calls().H5Tget_class(type) == H5T_FLOAT && (size == 2 || size == 4)) return Numbers::floats;
  if (calls().H5Tget_class(type) == H5T_FLOAT && size == 8) return Numbers::doubles;
  if (calls().H5Tget_class(type) != H5T_OPAQUE || size != 2) return {};
  const auto texts = texts_of_object(dataset, room);
  const auto dtype = texts.find("dtype");
  const bool bfloat16 =
      dtype != texts.end() && dtype->second == std::vector<std::string>{"bfloat16"};
  return bfloat16 ? std::optional(Numbers::bfloat16) : std::nullopt;
}

/// Only what lies in the file as it is: no filters, whose plugins are programs, and no other files.
void check_storage(hid_t dataset, const std::string& name) {
  const Handle plan(calls().H5Dget_create_plist(dataset), calls().H5Pclose, name);
  const H5D_layout_t layout = calls().H5Pget_layout(plan);
  const char* why = nullptr;
  if (layout != H5D_CONTIGUOUS && layout != H5D_COMPACT && layout != H5D_CHUNKED) {
    why = "is made of other arrays";
  } else if (layout == H5D_CONTIGUOUS && calls().H5Pget_external_count(plan) != 0) {
    why = "lies in another file";
  } else if (calls().H5Pget_nfilters(plan) != 0) {
    why = "is compressed, where Keras compresses nothing";
  }
  if (why) throw std::runtime_error(fmt::format("has an array {} that {}", name, why));
}

std::optional<Array> look_at_array(hid_t dataset, const std::string& name, std::size_t most_bytes,
                                   Room& room) {
  const Handle type(calls().H5Dget_type(dataset), calls().H5Tclose, name);
  const auto numbers = numbers_of(dataset, type, room);
  if (!numbers) return {};
  check_storage(dataset, name);
  Array array{name, extents_of(dataset, name), *numbers, calls().H5Tget_size(type)};
  for (const std::size_t extent : array.extents) {
    if (extent != 0 && array.bytes > most_bytes / extent) {
      throw std::runtime_error(fmt::format("has an array {} larger than the file", name));
    }
    array.bytes *= extent;
  }
  if (calls().H5Dget_storage_size(dataset) < array.bytes) {
    throw std::runtime_error(fmt::format("has no numbers for its array {}", name));
  }
  return array;
}

template <class T>
std::vector<T> read_array(hid_t file, const Array& array, hid_t type) {
  const Handle dataset(calls().H5Dopen2(file, array.name.c_str(), H5P_DEFAULT), calls().H5Dclose,
                       array.name);
  std::vector<T> values(weights::product(array.extents));
  const Handle own(type < 0 ? calls().H5Dget_type(dataset) : calls().H5Tcopy(type),
                   calls().H5Tclose, array.name);
  if (!values.empty() &&
      calls().H5Dread(dataset, own, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) {
    damaged_file(fmt::format("the array {}", array.name));
  }
  return values;
}

std::vector<float> read_bfloat16(hid_t file, const Array& array) {
  const auto bits = read_array<std::uint16_t>(file, array, H5I_INVALID_HID);
  std::vector<float> values(bits.size());
  std::ranges::transform(bits, values.begin(), [](std::uint16_t half) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  });
  return values;
}

weights::safetensors::OutTensor out_tensor(hid_t file, Array array) {
  weights::safetensors::OutTensor tensor{array.name, array.extents, {}};
  switch (array.numbers) {
    case Numbers::floats:
      tensor.values = [=] { return read_array<float>(file, array, calls().native_float); };
      break;
    case Numbers::doubles:
      tensor.doubles = [=] { return read_array<double>(file, array, calls().native_double); };
      break;
    case Numbers::bfloat16:
      tensor.values = [=] { return read_bfloat16(file, array); };
  }
  return tensor;
}

class Contents {
 public:
  Contents(hid_t file, std::size_t bytes, weights::KerasTexts texts)
      : file_(file), bytes_(bytes), texts_(std::move(texts)) {}

  void gather() {
    take_texts(file_, "");
    take_config();
    Names found;
    found.gather("the list of its arrays", [&](Names* names) {
      return calls().H5Lvisit(file_, H5_INDEX_NAME, H5_ITER_NATIVE, Names::note_link, names);
    });
    for (const std::string& name : found.names) {
      const Handle object(calls().H5Oopen(file_, name.c_str(), H5P_DEFAULT), calls().H5Oclose,
                          name);
      const H5I_type_t kind = calls().H5Iget_type(object);
      if (kind == H5I_GROUP) take_texts(object, name);
      if (kind == H5I_DATASET) take_array(object, name);
    }
  }

  void write(system::OutputFile& output) {
    weights::safetensors::write(output, weights::to_metadata(texts_), std::move(tensors_));
  }

 private:
  void take_texts(hid_t group, const std::string& name) {
    auto texts = texts_of_object(group, room_);
    if (texts.empty()) return;
    room_.take(1, name.size());
    texts_.attributes[name] = std::move(texts);
  }

  void take_config() {
    auto& attributes = texts_.attributes[""];
    const auto config = attributes.extract(kModelConfig);
    if (config && texts_.config.empty() && config.mapped().size() == 1) {
      texts_.config = config.mapped().front();
    }
    if (attributes.empty()) texts_.attributes.erase("");
  }

  void take_array(hid_t dataset, const std::string& name) {
    std::optional<Array> array;
    if (!weights::is_of_no_layer(name)) array = look_at_array(dataset, name, bytes_, room_);
    if (!array) {
      texts_.unread.push_back(name);
      return;
    }
    if (tensors_.size() == kMostArrays) {
      throw std::runtime_error(fmt::format("has more than {} arrays", kMostArrays));
    }
    total_ += array->bytes;
    if (total_ > bytes_) throw std::runtime_error("has arrays that are larger than the file");
    tensors_.push_back(out_tensor(file_, std::move(*array)));
  }

  hid_t file_;
  std::size_t bytes_;
  weights::KerasTexts texts_;
  std::vector<weights::safetensors::OutTensor> tensors_;
  std::size_t total_ = 0;
  Room room_;
};

}  // namespace

void write_contents(std::span<std::byte> bytes, weights::KerasTexts texts,
                    system::OutputFile& output) {
  calls().H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // else it prints what it thinks
  calls().H5PLset_loading_state(0);
  Image image{bytes.data()};
  const hid_t opened = open_image(bytes, image);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (opened < 0 && text.starts_with(kBeginning)) {
    throw std::runtime_error("is cut or damaged (libhdf5 cannot open it)");
  }
  const Handle file(opened, calls().H5Fclose, "its beginning");
  Contents contents(file, bytes.size(), std::move(texts));
  contents.gather();
  contents.write(output);
}

std::string built_with() {
  return fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
}

}  // namespace cputrain::hdf5
