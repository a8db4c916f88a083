#pragma once

#include <cstddef>
#include <memory>

#include "system/pages.h"

namespace cputrain::cpu {

/// Zeros straight from the operating system, for which it is asked to use huge pages; memory that
/// is never touched is never resident. Throws Error(internal).
std::unique_ptr<system::SharedBlock> allocate_huge(std::size_t bytes);

}  // namespace cputrain::cpu
