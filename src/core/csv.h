#pragma once

#include <string>

namespace cputrain {

/// A field of CSV (RFC 4180): in quotes where the text has commas, quotes or line ends.
std::string csv_field(const std::string& text);

}  // namespace cputrain
