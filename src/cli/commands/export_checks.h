#pragma once

#include <string>
#include <vector>

/// What `export` is asked for, looked at before anything is read or written.
namespace cputrain::commands {

/// Error(usage) where the file's name has the ending of another format than `ending`, the one of
/// what the flag writes: a program that opens it would take it for that.
void check_ending(const std::string& flag, const std::string& file, const std::string& ending);

/// --class-names: "cat,dog", or a file with a name a line, where there is no comma. Error(usage)
/// where names are empty, doubled or not printable, Error(data) where the file cannot be read.
std::vector<std::string> parse_names_of_classes(const std::string& text);

}  // namespace cputrain::commands
