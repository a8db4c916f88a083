#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

/// A fuzzer feeds a parser with bytes, and throws where it breaks a promise. Each is a file that
/// defines the two functions below; libfuzzer.cpp and mutations_test.cpp call them.
namespace cputrain::testing {

/// Inputs to begin with, which the parser takes.
std::vector<std::string> fuzzer_seeds();

/// Whether the parser takes this; a refusal is no fault. Throws std::logic_error, or whatever the
/// parser does, where a promise is broken.
bool fuzzer_takes(const std::string& text);

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
