#pragma once

#include "job/session/session.h"

namespace cputrain::cli {

/// Where nobody named data: a line that says what is taken instead, and what to type for other
/// data.
void ask_for_data(const job::Session&, const job::TrainingFlags&);

}  // namespace cputrain::cli
