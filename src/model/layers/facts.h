#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/names.h"

namespace cputrain {
class JsonMembers;
}

namespace cputrain::model {

/// The most that a model file may ask for; beyond it is a damaged or hostile one.
inline constexpr int kMaxExtent = 65536;

/// The law of a kernel's first values. fan_in is kernel^2 * in / groups, fan_out kernel^2 *
/// filters; a dense layer's are its inputs and its units. Biases begin as zeros, but for one law.
enum class Initializer {
  glorot_uniform,   ///< within sqrt(6 / (fan_in + fan_out)): Keras'
  he_normal,        ///< of deviation sqrt(2 / fan_in)
  he_normal_out,    ///< of deviation sqrt(2 / fan_out)
  he_normal_group,  ///< of deviation sqrt(2 * groups / fan_out)
  uniform_in,       ///< within 1 / sqrt(fan_in), the bias as well: PyTorch's
  uniform_in_only,  ///< the same with a bias of zeros
  uniform_out,      ///< within 1 / sqrt(fan_out)
  normal_hundredth  ///< of deviation 0.01
};
constexpr auto names(Initializer) {
  using enum Initializer;
  return std::to_array<Name<Initializer>>({{glorot_uniform, "glorot_uniform"},
                                           {he_normal, "he_normal"},
                                           {he_normal_out, "he_normal_out"},
                                           {he_normal_group, "he_normal_group"},
                                           {uniform_in, "uniform_in"},
                                           {uniform_in_only, "uniform_in_only"},
                                           {uniform_out, "uniform_out"},
                                           {normal_hundredth, "normal_hundredth"}});
}

/// One array of numbers that belongs to a layer, in Keras' layout.
struct ParameterSpec {
  std::string name{};  ///< "kernel", "bias", "gamma", ...; the graph puts the layer's before it
  std::vector<int> extents{};  ///< HWIO (in: of a group), (in, out) or (out)
  bool decays = false;         ///< weight decay applies: kernels, not biases
  bool learnt = true;          ///< has a gradient; moving statistics have none
  bool averaged = false;       ///< each rank moves its own: what counts is the mean over ranks
  float l2 = 0;                ///< the loss grows by l2 * sum of squares
  double rate = 1;             ///< what the learning rate is multiplied by
  float fill = 0;              ///< what values are at first, unless they are drawn
  std::optional<Initializer> drawn{};  ///< the law, with the fans of the layer's kernel
  int groups = 1;                      ///< runs that the outputs of a kernel are cut into
  bool sharded = false;  ///< each rank of a node makes the gradient of some of its rows

  std::size_t size() const {
    std::size_t count = 1;
    for (const int extent : extents) count *= static_cast<std::size_t>(extent);
    return count;
  }
};

/// What a layer does to channels that come from behind it.
enum class Passage {
  makes,   ///< its own kernel makes them
  scales,  ///< each gets a factor and an addend that are parameters
  linear,  ///< each stays itself, and a change of sign passes
  bends,   ///< each stays itself, but a change of sign does not pass
  mixes,   ///< they are not those of what it reads
};

/// What others ask of a layer whatever its type. Each layer says what it has of this.
struct LayerFacts {
  std::string_view keras_name;  ///< name of the first one in Keras' models: "conv2d"
  Passage passage = Passage::mixes;
  bool has_kernel = false;       ///< its first parameter: outputs are sums of products with it
  bool joins = false;            ///< reads two or more others
  bool keeps_order = false;      ///< numbers, read as one vector, come as in what it reads
  bool reads_vector = false;     ///< reads a map as one vector: height, width, channel
  bool lays_out = false;         ///< moves numbers alone, at most with zeros between them
  bool in_place = false;         ///< its output lies where what it reads does
  bool joins_images = false;     ///< what it makes of an image depends on the others of a step
  std::string formula{};         ///< an activation's word and figures, by which it is compared
  bool has_kinks = false;        ///< its gradient depends on signs, or on which number is largest
  bool dies_at_zero = false;     ///< no gradient passes a zero
  bool behind_pools = false;     ///< a max pool that reads it is computed before it (rewrite.h)
  bool pools_at_once = false;    ///< with a convolution before it, whose map is then never stored
  std::optional<float> drops{};  ///< part of the numbers, at random in training
  float momentum = 0;            ///< the one of its moving statistics
  /// Where it divides by a deviation; its parameters are numbers per channel of what it reads.
  std::optional<float> epsilon{};

  bool normalizes() const { return epsilon.has_value(); }
};

}  // namespace cputrain::model
