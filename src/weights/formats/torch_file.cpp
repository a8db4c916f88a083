#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "system/zip_archive.h"
#include "weights/formats/tensor_file.h"
#include "weights/formats/torch_pickle.h"

namespace cputrain::weights {
namespace {

using namespace std::string_view_literals;
using Kind = PickledValue::Kind;
using Place = PickledValue::Place;

constexpr const char* kHowToSave =
    "save the arrays alone in the program that wrote it: torch.save(model.state_dict(), "
    "'weights.pth')";
constexpr std::size_t kMostArrays = 100'000;

[[noreturn]] void unfit(const std::string& what) { throw std::runtime_error(what); }

/// Numbers of one kind that lie one behind the other in the file.
struct Storage {
  const NumberKind* numbers;
  std::uint64_t begin, count;
};

/// How many numbers the extents have, at most `most`; nothing where they are more.
std::optional<std::uint64_t> count_of(std::span<const std::size_t> extents, std::uint64_t most) {
  if (std::ranges::find(extents, 0u) != extents.end()) return 0;
  std::uint64_t count = 1;
  for (const std::size_t extent : extents) {
    if (extent > most / count) return {};
    count *= extent;
  }
  return count <= most ? std::optional(count) : std::nullopt;
}

/// How many numbers lie from the first one of an array to its last, at most `most`; nothing where
/// they are more.
std::optional<std::uint64_t> span_of(std::span<const std::size_t> extents,
                                     std::span<const std::size_t> strides, std::uint64_t most) {
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::uint64_t steps = extents[i] - 1;
    if (steps > 0 && strides[i] > (most - last) / steps) return {};
    last += steps * strides[i];
  }
  return last < most ? std::optional(last + 1) : std::nullopt;
}

/// Whether rows lie one behind the other without holes.
bool is_dense(std::span<const std::size_t> extents, std::span<const std::size_t> strides) {
  std::size_t stride = 1;
  for (std::size_t i = extents.size(); i-- > 0;) {
    if (extents[i] != 1 && strides[i] != stride) return false;
    stride *= extents[i];
  }
  return true;
}

/// An array of `state` whose storage lies there.
TensorInfo tensor_of(const TorchPickle& state, const std::string& name,
                     std::span<const Place> parts, const Storage& storage) {
  TensorInfo tensor{name, std::string(storage.numbers->dtype), state.sizes(parts[2])};
  std::vector<std::size_t> strides = state.sizes(parts[3]);
  const std::uint64_t offset = state.size_of(parts[1]);
  const auto wrong = [&](const char* what) {
    unfit(fmt::format("has an array {} {}", printable(name), what));
  };
  if (parts.size() > 6 && !state.pickled()[parts[6]].items.empty()) {
    wrong("whose numbers have another sign, or are complex");
  }
  if (strides.size() != tensor.extents.size()) wrong("of so many extents and other strides");
  if (offset > storage.count) wrong("that begins behind its storage");
  const auto count = count_of(tensor.extents, storage.count);
  if (!count) wrong("of more numbers than its storage has");
  std::uint64_t span = 0;
  if (*count > 0) {
    const auto found = span_of(tensor.extents, strides, storage.count - offset);
    if (!found) wrong("that ends behind its storage");
    span = *found;
  }
  const std::size_t bytes = storage.numbers->bytes;
  tensor.begin = storage.begin + offset * bytes;
  tensor.end = tensor.begin + span * bytes;
  if (*count > 0 && !is_dense(tensor.extents, strides)) tensor.strides = std::move(strides);
  return tensor;
}

/// The dict of arrays: the file's own, or one of those that a checkpoint has.
std::vector<Place> arrays_of(const TorchPickle& state) {
  const Pickled& values = state.pickled();
  const std::vector<Place> own = state.pairs(values[values.top]);
  for (const std::string_view wanted :
       {"state_dict_ema"sv, "model_ema"sv, "state_dict"sv, "model"sv}) {
    for (std::size_t i = 0; i + 1 < own.size(); i += 2) {
      if (values[own[i]].text != wanted) continue;
      std::vector<Place> pairs = state.pairs(values[own[i + 1]]);
      if (!pairs.empty()) return pairs;
    }
  }
  return own;
}

/// "epoch, net, optimizer": what a file has in place of arrays.
std::string names_in(const TorchPickle& state) {
  std::vector<std::string> names;
  const std::vector<Place> own = state.pairs(state.pickled()[state.pickled().top]);
  for (std::size_t i = 0; i + 1 < own.size(); i += 2) {
    names.push_back(state.pickled()[own[i]].text);
  }
  return names.empty() ? "" : fmt::format(" (it has {})", first_few(names, 5));
}

/// `find`: where a storage lies.
template <class Find>
std::vector<TensorInfo> tensors_of(const TorchPickle& state, const Find& find) {
  std::map<std::string, TensorInfo> tensors;  // of two of one name the last counts, as in Python
  const std::vector<Place> pairs = arrays_of(state);
  std::size_t arrays = 0;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const auto parts = state.array(pairs[i + 1]);
    if (parts.size() < 4 || state.pickled()[pairs[i]].kind != Kind::text) continue;
    const PickledValue& storage = state.pickled()[parts[0]];
    if (storage.kind != Kind::outside) unfit("has an array without numbers");
    const std::string& name = state.name_of(pairs[i]);
    if (++arrays > kMostArrays) unfit("has over 100,000 arrays");
    tensors.insert_or_assign(name, tensor_of(state, name, parts, find(state.storage(storage))));
  }
  if (tensors.empty()) unfit("holds no arrays by name" + names_in(state));
  std::vector<TensorInfo> list;
  for (auto& [name, tensor] : tensors) list.push_back(std::move(tensor));
  return list;
}

/// The bytes of a storage lie where they should.
Storage checked_storage(const StorageName& name, std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t all = name.of.value_or(name.count);
  if (all > bytes / name.numbers->bytes) {
    unfit(
        fmt::format("has a storage {} of {} numbers in {} bytes", printable(name.key), all, bytes));
  }
  return {name.numbers, begin + name.first * name.numbers->bytes, name.count};
}

/// What an archive gives; what is wrong with it is damage, and no matter of what was saved.
template <class Ask>
auto of_archive(const std::filesystem::path& path, const Ask& ask) {
  try {
    return ask();
  } catch (const std::runtime_error& error) {
    unusable(
        path, error.what(),
        "copy or fetch it again, or save it anew by torch.save() in the program that wrote it");
  }
}

std::vector<TensorInfo> tensors_of_archive(const std::filesystem::path& path,
                                           const system::RegularFile& file) {
  constexpr std::string_view kPickle = "/data.pkl";
  system::ZipFiles files = of_archive(path, [&] {
    return system::ZipFiles(file.size(), [&](std::uint64_t offset, std::span<std::byte> dst) {
      file.read_at(offset, dst);
    });
  });
  const auto stored = [&](const std::string& name) {
    return of_archive(path, [&] { return files.stored(name); });
  };
  std::string root;
  for (const std::string& name : files.names()) {
    if (name.ends_with(kPickle)) root = name.substr(0, name.size() - kPickle.size());
  }
  const auto pickle = stored(root + std::string(kPickle));
  if (!pickle) unfit("is a zip archive without PyTorch's data.pkl");
  if (const auto order = stored(root + "/byteorder"); order && order->size == 3) {
    unfit("has numbers with the highest byte first");
  }
  const TorchPickle state(file, pickle->begin, pickle->begin + pickle->size);
  return tensors_of(state, [&](const StorageName& name) {
    const auto place = stored(root + "/data/" + name.key);
    if (!place) unfit(fmt::format("lacks the numbers {}", printable(name.key)));
    return checked_storage(name, place->begin, place->size);
  });
}

/// The first of the pickles is a number, by which such files are known.
constexpr std::string_view kMagic = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."sv;

/// Behind the pickles of the number, a version, the machine, the values and the keys of storages
/// lies each storage: how many numbers it has in 8 bytes, then these.
std::vector<TensorInfo> tensors_of_pickles(const system::RegularFile& file) {
  const std::uint64_t size = file.size();
  std::array<char, kMagic.size()> begin{};
  const std::size_t read = file.read_some(0, std::as_writable_bytes(std::span(begin)));
  if (std::string_view(begin.data(), read) != kMagic) {
    unfit("is a pickle, and none that torch.save wrote");
  }
  std::uint64_t at = kMagic.size();
  const auto next = [&] {
    TorchPickle state(file, at, size);
    at = state.pickled().end;
    return state;
  };
  next();  // the version
  const TorchPickle machine = next();
  const std::vector<Place> facts = machine.pairs(machine.pickled()[machine.pickled().top]);
  for (std::size_t i = 0; i + 1 < facts.size(); i += 2) {
    const PickledValue& order = machine.pickled()[facts[i + 1]];
    if (machine.pickled()[facts[i]].text == "little_endian" && order.number == 0) {
      unfit("has numbers with the highest byte first");
    }
  }
  const TorchPickle state = next();
  std::map<std::string, const NumberKind*> kinds;
  for (const PickledValue& value : state.pickled().values) {
    if (value.kind != Kind::outside) continue;
    const StorageName name = state.storage(value);
    kinds[name.key] = name.numbers;
  }
  const TorchPickle keys = next();
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> places;  // begin, bytes
  for (const Place place : keys.items_of(keys.pickled()[keys.pickled().top])) {
    const std::string& key = keys.name_of(place);
    const auto kind = kinds.find(key);
    if (kind == kinds.end()) unfit(fmt::format("has numbers {} of no kind", printable(key)));
    std::uint64_t count = 0;
    if (size - at < sizeof count) unfit("is cut off within its numbers");
    file.read_at(at, std::as_writable_bytes(std::span(&count, 1)));
    at += sizeof count;
    if (count > (size - at) / kind->second->bytes) unfit("is cut off within its numbers");
    places[key] = {at, count * kind->second->bytes};
    at += count * kind->second->bytes;
  }
  return tensors_of(state, [&](const StorageName& name) {
    const auto found = places.find(name.key);
    if (found == places.end()) unfit(fmt::format("lacks the numbers {}", printable(name.key)));
    return checked_storage(name, found->second.first, found->second.second);
  });
}

}  // namespace

TensorFile open_torch_file(const std::filesystem::path& path) {
  try {
    const auto file = std::make_shared<const system::RegularFile>(path);
    std::array<char, 2> begin{};
    file->read_some(0, std::as_writable_bytes(std::span(begin)));
    const bool archive = begin[0] == 'P' && begin[1] == 'K';
    std::vector<TensorInfo> tensors =
        archive ? tensors_of_archive(path, *file) : tensors_of_pickles(*file);
    return {path, file, kHowToSave, 0, {}, std::move(tensors)};
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    unusable(path, error.what(), kHowToSave);
  }
}

}  // namespace cputrain::weights
