#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cputrain::datasets {

/// Archives that --data or a path names, and a folder or file in them: "photos.zip",
/// "photos.zip/photos/cat", "train-{000..015}.tar".
struct ArchiveSpec {
  std::vector<std::string> archives;  ///< one, or those of a range in its order
  std::string name;                   ///< of them all, as it was written
  std::string inner;                  ///< empty: all that they hold
};

/// Endings of archives that are read, for messages: ".zip .tar ...".
std::string archive_endings();

/// Nothing where no archive is named: by its ending, and a file, or a range of files that need not
/// be there. Error(data) for a range that is too long or turned round.
std::optional<ArchiveSpec> parse_archive_spec(const std::string& text);

}  // namespace cputrain::datasets
