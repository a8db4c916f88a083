#pragma once

#include <string>

#include "scaling/report/document.h"

namespace cputrain::report {

/// What this build makes pages with; `data_json` is what their plots are drawn from.
PageParts page_parts(std::string data_json);

}  // namespace cputrain::report
