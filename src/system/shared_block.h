#pragma once

#include <cstddef>
#include <span>

namespace cputrain::system {

/// Memory that is freed with the object, of this process or shared by the ranks of a node. Zeroed;
/// 64-byte aligned.
class SharedBlock {
 public:
  virtual ~SharedBlock() = default;
  virtual std::span<std::byte> bytes() const = 0;
};

}  // namespace cputrain::system
