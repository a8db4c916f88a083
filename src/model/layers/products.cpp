#include "model/layers/products.h"

#include <string>

#include "core/error.h"
#include "core/json_fields.h"
#include "core/text.h"

namespace cputrain::model {
namespace {

/// The kernel and, where there is one, the bias: a number for each of its outputs.
std::vector<ParameterSpec> with_bias(const ParameterSpec& kernel, bool bias) {
  if (!bias) return {kernel};
  ParameterSpec numbers{.name = "bias", .extents = {kernel.extents.back()}};
  if (kernel.drawn == Initializer::uniform_in) numbers.drawn = kernel.drawn;
  return {kernel, numbers};
}

/// What most layers with a kernel do without is written only where there is some. `groups`: null
/// where the layer knows none.
void rarities(JsonMembers& m, float& l2, int* groups, Initializer& init) {
  std::string word(word_of(init));
  if (!m.file()) {
    if (groups && *groups != 1) m.need("groups", *groups, 1, kMaxExtent);
    m.rare("l2", l2, 0, 1e6);
    if (init != Initializer::glorot_uniform) m.need("init", word);
    return;
  }
  m.rare("l2", l2, 0, 1e6);
  if (groups) m.may("groups", *groups, 1, kMaxExtent);
  m.may("init", word);
  const auto named = value_named<Initializer>(word);
  if (!named) m.file()->wrong("init must be one of " + join(all_words<Initializer>(), ", "));
  init = *named;
}

}  // namespace

LayerFacts Convolution::facts() const {
  return {.keras_name = "conv2d",
          .passage = groups == 1 ? Passage::makes : Passage::mixes,
          .has_kernel = true};
}

Shape Convolution::output(std::span<const Shape> src) const {
  const int channels = src.front().channels;
  if (channels % groups != 0 || filters % groups != 0) {
    fail(ExitCode::usage, "a convolution in " + std::to_string(groups) + " groups cannot deal " +
                              std::to_string(channels) + " channels and " +
                              std::to_string(filters) + " filters evenly; groups must divide both");
  }
  return window_shape("convolution", padding, src.front(), kernel, stride, filters);
}

std::vector<ParameterSpec> Convolution::parameters(const Shape& src) const {
  return with_bias({.name = "kernel",
                    .extents = {kernel, kernel, src.channels / groups, filters},
                    .decays = true,
                    .l2 = l2,
                    .drawn = init,
                    .groups = groups},
                   bias);
}

double Convolution::macs(const Shape& src) const {
  return static_cast<double>(output({&src, 1}).size()) * kernel * kernel * (src.channels / groups);
}

void Convolution::members(JsonMembers& m) {
  m.need("filters", filters, 1, kMaxExtent);
  m.need("kernel", kernel, 1, kMaxExtent);
  window_members(m, stride, padding);
  m.may("bias", bias);
  rarities(m, l2, &groups, init);
}

LayerFacts Dense::facts() const {
  return {
      .keras_name = "dense", .passage = Passage::makes, .has_kernel = true, .reads_vector = true};
}

Shape Dense::output(std::span<const Shape>) const { return {1, 1, units}; }

std::vector<ParameterSpec> Dense::parameters(const Shape& src) const {
  const int inputs = Flatten().output({&src, 1}).channels;
  return with_bias({.name = "kernel",
                    .extents = {inputs, units},
                    .decays = true,
                    .l2 = l2,
                    .drawn = init,
                    .sharded = sharded},
                   bias);
}

double Dense::macs(const Shape& src) const { return static_cast<double>(src.size()) * units; }

void Dense::members(JsonMembers& m) {
  if (!m.file() || m.file()->required("units") != "classes") m.need("units", units, 1, kMaxExtent);
  m.may("bias", bias);
  rarities(m, l2, nullptr, init);
}

}  // namespace cputrain::model
