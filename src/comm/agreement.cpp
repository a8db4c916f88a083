#include "comm/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "system/print.h"

namespace cputrain::comm {

void check_agreement(Communicator& communicator, const std::string& what, const std::string& mine) {
  const std::vector<std::string> all = communicator.gather(mine);
  if (std::ranges::all_of(all, [&](const std::string& other) { return other == all.front(); })) {
    return;
  }
  std::map<std::string, std::vector<std::string>> ranks;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    ranks[all[rank]].push_back(std::to_string(rank));
  }
  for (const auto& [value, who] : ranks) {
    if (communicator.rank() == 0) system::tell(fmt::format("ranks {}: {}", join(who, ","), value));
  }
  fail(ExitCode::disagree,
       fmt::format(
           "ranks differ in {} (they would train different things; the lines above say which "
           "has what); start all of them with the same program, flags and data",
           what));
}

void attempt_together(Communicator& communicator, const std::function<void()>& make,
                      const std::function<void()>& undo) {
  std::string failure;
  try {
    make();
  } catch (const std::exception& error) {  // Error, and no memory: the other ranks wait
    failure = error.what();
  }
  for (const std::string& text : communicator.gather(failure)) {
    if (text.empty()) continue;
    undo();  // now, not while an exception is on its way, when shared memory is left alone
    fail(ExitCode::internal, text);
  }
}

}  // namespace cputrain::comm
