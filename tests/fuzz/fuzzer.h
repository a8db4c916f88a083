#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace cputrain::testing {

/// Feeds a parser with bytes. Each is a file with one object of this; libfuzzer.cpp runs it alone
/// and mutations_test.cpp all of them.
struct Fuzzer {
  const char* name;
  /// Inputs to begin with, which the parser takes.
  std::vector<std::string> (*seeds)();
  /// Whether the parser takes this; a refusal is no fault. Throws std::logic_error, or whatever the
  /// parser does, where a promise is broken.
  bool (*takes)(const std::string& text);

  Fuzzer(const char* its_name, decltype(seeds) its_seeds, decltype(takes) its_parser)
      : name(its_name), seeds(its_seeds), takes(its_parser) {
    all().push_back(this);
  }

  /// Those that the program is linked from.
  static std::vector<const Fuzzer*>& all() {
    static std::vector<const Fuzzer*> list;
    return list;
  }
};

inline void promise(bool kept, const char* what) {
  if (!kept) throw std::logic_error(what);
}

/// Whether `read` refuses nothing. A refusal is an Error of this code that says why.
template <class Read>
bool is_taken(const Read& read, ExitCode code = ExitCode::data) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    promise(error.code() == code, "a refusal has the code of its kind");
    promise(*error.what() != '\0', "a refusal says why");
    return false;
  }
}

/// A folder of this process.
inline const std::filesystem::path& own_folder() {
  static const TemporaryFolder folder;
  return folder.path();
}

/// A file in it with these bytes.
inline std::filesystem::path own_file(const std::filesystem::path& name, const std::string& bytes) {
  const auto path = own_folder() / name;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

}  // namespace cputrain::testing
