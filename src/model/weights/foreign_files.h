#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Weights in forms of other programs that are not read here.
namespace cputrain::model {

/// What a file is and what to do with it, by its first bytes (32 are enough) and its name: "this
/// is ... (why it is not read); do ...". Empty where it is none of those that are known.
std::string foreign_file(const std::filesystem::path&, std::string_view first_bytes);

/// The same of a folder, and of a name that no file has where it is the beginning of the names of
/// files, as TensorFlow's checkpoints are called.
std::string foreign_folder(const std::filesystem::path&);

/// Error(data): `what`, as one of the above gave it.
[[noreturn]] void refuse_foreign(const std::filesystem::path&, const std::string& what);

}  // namespace cputrain::model
