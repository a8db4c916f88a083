// Without libarchive: zip archives alone.
#include <fmt/format.h>

#include "core/error.h"
#include "datasets/archives/archive_entry.h"

namespace cputrain::datasets {

void for_each_tar_entry(const ContainerFile& file, HeldFiles&,
                        const std::function<void(const ArchiveEntry&)>&) {
  fail(ExitCode::data,
       fmt::format("'{0}' is no zip archive, and this build reads no other (CPUTRAIN_ARCHIVE is "
                   "off); unpack it: tar -xf {0}",
                   file.path()));
}

std::string archive_library() { return {}; }

}  // namespace cputrain::datasets
