#pragma once

#include <optional>

#include "core/json_fields.h"
#include "model/layers/facts.h"
#include "model/layers/pools.h"

namespace cputrain::model {

/// The most that a model file may ask for; beyond it is a damaged or hostile one.
inline constexpr int kMaxExtent = 65536;

/// The members of a layer in a model file, for both directions: each layer's `members` names them
/// once. Those with a usual value may be left out.
class LayerMembers : public JsonMembers {
 public:
  /// `classes`: what "units": "classes" stands for; none: a number must stand there.
  LayerMembers(const JsonFields& file, std::optional<int> classes)
      : JsonMembers(file), classes_(classes) {}
  explicit LayerMembers(nlohmann::ordered_json& json) : JsonMembers(json) {}

  /// "stride" and "padding" of a layer with windows.
  void windows(int& stride, Padding& padding);
  void units(int& member);
  /// What most layers with a kernel do without is written only where there is some. `groups`: null
  /// where the layer knows none.
  void rarities(float& l2, int* groups, Initializer& init);

 private:
  std::optional<int> classes_;
};

}  // namespace cputrain::model
