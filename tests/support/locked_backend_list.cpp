// The program's list of backends, for a program whose default is the locked one over plain loops.
#include <cstdlib>
#include <string>

#include "backends/reference/reference_backend.h"
#include "composition/services.h"
#include "tests/support/locked_backend.h"

namespace cputrain::composition {
namespace {

/// Bytes that a rank's locked memory has, where the environment says.
std::optional<std::size_t> room() {
  const char* text = std::getenv("LOCKED_MEMORY_ROOM");
  if (!text) return std::nullopt;
  return std::stoull(text);
}

}  // namespace

std::vector<ListedBackend> backend_list() {
  return {{{"locked", {Precision::f32, Precision::f64}},
           [](const training::BackendRequest& request) {
             return testing::make_locked_backend(
                 reference::make_reference_backend(dtype_of(request.precision)), room());
           }},
          {{"reference", {Precision::f32, Precision::f64}},
           [](const training::BackendRequest& request) {
             return reference::make_reference_backend(dtype_of(request.precision));
           }}};
}

}  // namespace cputrain::composition
