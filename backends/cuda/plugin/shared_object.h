#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cputrain::cuda {

/// A file as the system's loader would read it, looked at before that: the loader trusts what it
/// maps, so that a file that was cut short, or that other headers were made into, would end the
/// process instead of being refused.
class SharedObject {
 public:
  /// Empty, with why(), where it cannot be read whole or is no shared object for this machine.
  explicit SharedObject(const std::filesystem::path&);

  /// "" for one that is whole, else what is wrong with it.
  const std::string& why_not() const { return why_not_; }
  /// The text behind `mark` up to `end`; "" where there is none.
  std::string text_behind(std::string_view mark, char end) const;

 private:
  std::string bytes_, why_not_;
};

}  // namespace cputrain::cuda
