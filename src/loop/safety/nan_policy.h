#pragma once

#include "core/names.h"

namespace cputrain::loop {

/// What happens where the gradients of a step are NaN or infinite. `abort`: the training ends.
/// `skip`: the step changes nothing. `rollback`: back to the last checkpoint, and on without it.
enum class NanPolicy { abort, skip, rollback };
constexpr auto names(NanPolicy) {
  return std::to_array<Name<NanPolicy>>(
      {{NanPolicy::abort, "abort"}, {NanPolicy::skip, "skip"}, {NanPolicy::rollback, "rollback"}});
}

}  // namespace cputrain::loop
