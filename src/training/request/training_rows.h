#pragma once

#include <deque>
#include <string_view>

#include "training/request/flag_row.h"

namespace cputrain::training {

/// The flags of a training, in the order of help.
const std::deque<FlagRow>& training_rows();
/// One of them, which must be there.
const FlagRow& training_row(std::string_view name);

/// Those of running_rows.cpp.
void add_running(FlagRows&);

}  // namespace cputrain::training
