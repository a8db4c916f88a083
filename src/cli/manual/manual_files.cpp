#include "cli/manual/manual_files.h"

namespace cputrain::cli {

std::vector<ManualFile> manual_files(const std::vector<CommandEntry>&) { return {}; }

}  // namespace cputrain::cli
