#pragma once

#include <fmt/format.h>

#include <utility>

#include "core/error.h"

namespace cputrain {

/// The same with a message that is put together, as fmt::format does it.
template <class First, class... Others>
[[noreturn]] void fail(ExitCode code, fmt::format_string<First, Others...> message, First&& first,
                       Others&&... others) {
  fail(code, fmt::format(message, std::forward<First>(first), std::forward<Others>(others)...));
}

}  // namespace cputrain
