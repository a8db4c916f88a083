#include "compute/devices.h"

#include <fmt/format.h>

namespace cputrain::compute {

std::string no_device_text(const std::string& backend, const DeviceList& list) {
  return fmt::format("--backend {}: {} (it computes on a GPU); {}, or use another --backend",
                     backend, list.why_none, list.remedy);
}

}  // namespace cputrain::compute
