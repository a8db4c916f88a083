#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/made_zip.h"

/// Files of torch.save, put together byte by byte from the formats' descriptions.
namespace cputrain::testing {

// Instructions of pickles (Python's pickletools).
inline const std::string kProtocol = "\x80\x02", kMark = "(", kTuple = "t", kStop = ".";
inline std::string pickled_text(const std::string& text) {
  return "X" + little(text.size(), 4) + text;
}
/// LONG1: any whole number.
inline std::string pickled_number(std::int64_t value) {
  return "\x8a\x08" + little(static_cast<std::uint64_t>(value), 8);
}
inline std::string pickled_numbers(const std::vector<std::int64_t>& values) {
  std::string text = kMark;
  for (const std::int64_t value : values) text += pickled_number(value);
  return text + kTuple;
}
inline std::string pickled_global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

/// An array of F32 as a pickle has it, whatever it claims.
struct MadeTensor {
  std::string name = "a", key = "0", kind = "FloatStorage";
  std::int64_t stored = 6, offset = 0;
  std::vector<std::int64_t> extents{2, 3}, strides{3, 1};
  std::string more{};  ///< behind its hooks

  std::string storage(bool older) const {
    return kMark + pickled_text("storage") + pickled_global("torch", kind) + pickled_text(key) +
           pickled_text("cpu") + pickled_number(stored) + (older ? "N" : "") + kTuple + "Q";
  }
  std::string value(bool older) const {
    const std::string hooks = pickled_global("collections", "OrderedDict") + ")R";
    return pickled_global("torch._utils", "_rebuild_tensor_v2") + kMark + storage(older) +
           pickled_number(offset) + pickled_numbers(extents) + pickled_numbers(strides) + "\x89" +
           hooks + more + kTuple + "R";
  }
};

inline std::string pickled_state(const std::vector<MadeTensor>& tensors, bool older = false) {
  std::string text = kProtocol + "}" + kMark;
  for (const MadeTensor& tensor : tensors) text += pickled_text(tensor.name) + tensor.value(older);
  return text + "u" + kStop;
}

/// The zip archive of PyTorch from 1.6 on.
inline std::string torch_archive(const std::string& pickle, const std::string& numbers,
                                 bool checksums = true) {
  return made_zip({{"w/data.pkl", pickle}, {"w/data/0", numbers}}, checksums);
}

/// The form before: pickles, then each storage behind its count.
inline std::string torch_pickles(const std::string& pickle, std::int64_t count,
                                 const std::string& numbers) {
  const std::string magic = "\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19";
  const std::string machine = "}" + pickled_text("little_endian") + "\x88s";
  return kProtocol + magic + kStop + kProtocol + pickled_number(1001) + kStop + kProtocol +
         machine + kStop + pickle + kProtocol + "]" + pickled_text("0") + "a" + kStop +
         little(static_cast<std::uint64_t>(count), 8) + numbers;
}

}  // namespace cputrain::testing
