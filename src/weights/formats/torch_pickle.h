#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/formats/pickle.h"

namespace cputrain::weights {

/// A kind of numbers, by what PyTorch calls their storage: "Float" of "torch.FloatStorage".
struct NumberKind {
  std::string_view word, dtype;
  std::size_t bytes;
};

/// What a pickle says of a storage.
struct StorageName {
  const NumberKind* numbers;
  std::string key;
  std::uint64_t count;
  std::uint64_t first = 0;               ///< of the numbers of `key` that it has
  std::optional<std::uint64_t> of = {};  ///< how many `key` has, where it has a part of them
};

/// A pickle of torch.save, and what its values mean. All members throw std::runtime_error with what
/// is wrong.
class TorchPickle {
 public:
  using Place = PickledValue::Place;

  /// The pickle that begins at byte `begin` of a file and ends before `end`; one that calls what
  /// makes no arrays is refused.
  TorchPickle(const system::RegularFile&, std::uint64_t begin, std::uint64_t end);

  const Pickled& pickled() const { return p_; }

  /// What lies elsewhere in the file; a name of another kind is refused.
  StorageName storage(const PickledValue&) const;
  /// The pairs of a dict, a key and its value by turns; none of what is no dict.
  std::vector<Place> pairs(const PickledValue&) const;
  /// {storage, offset, extents, strides} of an array, and what PyTorch adds; nothing of other
  /// values.
  std::span<const Place> array(Place) const;
  /// Extents or strides: at most 64.
  std::vector<std::size_t> sizes(Place) const;
  std::uint64_t size_of(Place) const;
  /// At most 4,096 bytes, since it is copied wherever it is used.
  const std::string& name_of(Place) const;
  std::span<const Place> items_of(const PickledValue&) const;

 private:
  Pickled p_;
};

}  // namespace cputrain::weights
