#include "model/layer.h"

#include "core/error.h"

namespace cputrain::model {
namespace {

/// A layer reads one input, unless it joins several.
void check_inputs(const Layer& layer, std::size_t count) {
  const std::string name(type_name(layer));
  if (!facts_of(layer).joins && count != 1) {
    fail(ExitCode::usage,
         "a layer of type " + name + " reads one layer, not " + std::to_string(count));
  }
  if (facts_of(layer).joins && count < 2) {
    fail(ExitCode::usage, name + " reads two or more layers");
  }
}

}  // namespace

std::string_view type_name(const Layer& layer) {
  return std::visit([](const auto& l) { return l.kWord; }, layer);
}

LayerFacts facts_of(const Layer& layer) {
  return std::visit([](const auto& l) { return l.facts(); }, layer);
}

Shape output_shape(const Layer& layer, std::span<const Shape> src) {
  check_inputs(layer, src.size());
  return std::visit(
      [&](const auto& l) {
        if constexpr (requires { l.output(src); }) {
          return l.output(src);
        } else {
          return src.front();
        }
      },
      layer);
}

std::vector<ParameterSpec> parameters(const Layer& layer, const Shape& src) {
  return std::visit(
      [&](const auto& l) {
        if constexpr (requires { l.parameters(src); }) {
          return l.parameters(src);
        } else {
          return std::vector<ParameterSpec>();
        }
      },
      layer);
}

double macs(const Layer& layer, const Shape& src) {
  return std::visit(
      [&](const auto& l) {
        if constexpr (requires { l.macs(src); }) {
          return l.macs(src);
        } else {
          return 0.0;
        }
      },
      layer);
}

void describe(JsonMembers& members, Layer& layer) {
  std::visit(
      [&](auto& l) {
        if constexpr (requires { l.members(members); }) l.members(members);
      },
      layer);
}

}  // namespace cputrain::model
