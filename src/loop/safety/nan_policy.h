#pragma once

namespace cputrain::loop {

/// What happens where the gradients of a step are no numbers. `abort`: the training ends. `skip`:
/// the step changes nothing. `rollback`: back to the last checkpoint, and on without that step.
enum class NanPolicy { abort, skip, rollback };

}  // namespace cputrain::loop
