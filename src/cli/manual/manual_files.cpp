#include "cli/manual/manual_files.h"

#include "cli/manual/bash_completion.h"
#include "cli/manual/man_page.h"
#include "cli/manual/zsh_completion.h"

namespace cputrain::cli {

std::vector<ManualFile> manual_files(const std::vector<CommandEntry>& commands) {
  return {{"man/cputrain.1", man_page(commands)},
          {"bash/cputrain", bash_completion(commands)},
          {"zsh/_cputrain", zsh_completion(commands)}};
}

}  // namespace cputrain::cli
