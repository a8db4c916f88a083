#pragma once

#include <string>

/// A table of a library's functions, from a list that calls its argument with each name:
/// LIST(CPUTRAIN_LATE_MEMBER) declares its members, LIST(CPUTRAIN_LATE_FIND) fills `table` from
/// `library`. Headers make some names those of a version, so they are written as text afterwards.
#define CPUTRAIN_LATE_MEMBER(name) decltype(&::name) name = nullptr;
#define CPUTRAIN_LATE_FIND(name) library.find(CPUTRAIN_LATE_TEXT(name), table.name);
#define CPUTRAIN_LATE_TEXT(name) CPUTRAIN_LATE_TEXT_OF(name)
#define CPUTRAIN_LATE_TEXT_OF(name) #name

namespace cputrain::system {

/// A shared library that is loaded with its first use, and stays. std::runtime_error has its name,
/// why it cannot be used, and what to do: "libx.so.1, which cannot be loaded (...); install it
/// (...), name its folder in LD_LIBRARY_PATH".
class LateLibrary {
 public:
  /// The system's loader looks for it by its own name, then where it was as this program was built.
  /// `package` of Debian brings it. CMake's cputrain_load_late() says all three.
  LateLibrary(const char* name, const char* file, const char* package);

  template <class Pointer>
  void find(const char* name, Pointer& found) const {
    found = reinterpret_cast<Pointer>(address_of(name));
  }

  [[noreturn]] void refuse(const std::string& why) const;

 private:
  void* address_of(const char* name) const;

  const char *name_, *package_;
  void* library_;
};

}  // namespace cputrain::system
