#pragma once

#include <string>
#include <vector>

#include "tests/datasets/made_files.h"

/// Archives written by hand (PKWARE's APPNOTE.TXT; POSIX ustar), so that each of their numbers may
/// be wrong.
namespace cputrain::datasets {

struct ArchivedFile {
  std::string name;  ///< of a folder with '/' behind it
  Bytes content{};
  bool deflated = false;    ///< in zip archives
  std::uint16_t flags = 0;  ///< in zip archives; 1: encrypted
  std::uint32_t mode = 0;   ///< in zip archives: of Unix
  char type = '0';          ///< in tar archives: 2 is a symbolic link
  std::uint32_t grows = 0;  ///< by so much its size is told too large
  std::uint8_t system = 3;  ///< in zip archives: that wrote it; 0 is DOS, 3 Unix
};

Bytes zip_of(const std::vector<ArchivedFile>&);
/// With the numbers of ZIP64 in the place of the usual ones.
Bytes zip64_of(const std::vector<ArchivedFile>&);
Bytes tar_of(const std::vector<ArchivedFile>&);

/// Sets the checksums of the headers that the sizes in them lead to.
Bytes with_tar_checksums(const Bytes& tar);

}  // namespace cputrain::datasets
