#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "system/bounded_file.h"

namespace cputrain::weights {

/// A value that a pickle makes, without what it means: nothing is called and nothing is looked up.
/// It names others by their places, so that neither depth nor loops matter.
struct PickledValue {
  using Place = std::uint32_t;
  enum class Kind : std::uint8_t {
    other,   ///< None, a fraction, bytes, a set, a long number
    number,  ///< a whole one, or a truth value
    text,
    sequence,  ///< a list or a tuple: `items`
    dict,      ///< `items`: a key and its value by turns
    global,    ///< `text`: "torch.FloatStorage"
    call,      ///< `items`: what is called, its arguments, then as of a dict
    outside    ///< `items`: the name of what lies elsewhere in the file
  };

  Kind kind = Kind::other;
  Place state = 0;  ///< what BUILD gave a call; 0: nothing
  std::int64_t number = 0;
  std::string text{};
  std::vector<Place> items{};
};

/// What a pickle makes in all.
struct Pickled {
  std::deque<PickledValue> values;
  PickledValue::Place top;
  std::uint64_t end;  ///< behind its last byte

  const PickledValue& operator[](PickledValue::Place place) const { return values[place]; }
};

/// Reads a pickle of Python (protocols 2 to 5: its documentation is in pickletools.py) that begins
/// at byte `begin` of a file and ends before `end`. It may have 64 MB and 4,000,000 values, which
/// take up to 400 MB. Other instructions than those that data is made of are refused, and
/// globals ("os.system") unless they are `known`. Throws std::runtime_error with what is wrong.
Pickled read_pickle(const system::RegularFile&, std::uint64_t begin, std::uint64_t end,
                    const std::function<bool(std::string_view)>& known);

}  // namespace cputrain::weights
