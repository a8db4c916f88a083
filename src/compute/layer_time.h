#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cputrain::compute {

/// Time that one node of the program took in all passes that were timed by layer.
struct LayerTime {
  std::string name;
  std::string algorithm;  ///< what runs it, in the library's own words; in training forward
  double forward = 0;     ///< seconds
  double backward_data = 0;
  double backward_weights = 0;
  double macs = 0;  ///< per image, forward
  /// Parts of an activation that are not zero, as last counted: in a call that skips zeros.
  std::optional<double> density{};           ///< in what forward reads
  std::optional<double> gradient_density{};  ///< in the gradient that comes back
  /// What runs the ways back; empty where nothing needs a word of its own.
  std::string data_algorithm{}, weights_algorithm{};

  double seconds() const { return forward + backward_data + backward_weights; }
};

/// One way through a layer, for tables.
struct LayerDirection {
  std::string_view name;   ///< in JSON
  std::string_view title;  ///< in tables
  double LayerTime::*seconds;
  std::string LayerTime::*own_algorithm;

  const std::string& algorithm(const LayerTime& layer) const {
    const std::string& own = layer.*own_algorithm;
    return own.empty() ? layer.algorithm : own;
  }
};

inline constexpr std::array<LayerDirection, 3> kLayerDirections{{
    {"forward", "forward", &LayerTime::forward, &LayerTime::algorithm},
    {"backward_data", "bwd data", &LayerTime::backward_data, &LayerTime::data_algorithm},
    {"backward_weights", "bwd wei.", &LayerTime::backward_weights, &LayerTime::weights_algorithm},
}};

/// "A, weights B, data C".
std::string algorithms_text(const LayerTime&);

/// What was spent between two readings of one program; all but seconds is `now`'s.
std::vector<LayerTime> difference(std::vector<LayerTime> now, const std::vector<LayerTime>& before);

/// GFLOP/s of so many images, counting direct convolution; 0 where no time was taken.
double gflops(double macs, double images, double seconds);

/// Density of the activations that convolutions and dense layers read, weighted by their work, of
/// those layers that have counted it; nothing where none has.
std::optional<double> density_of(const std::vector<LayerTime>&);

/// "0.123", or nothing where it is not known.
std::string density_text(const std::optional<double>&);

}  // namespace cputrain::compute
