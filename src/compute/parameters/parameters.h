#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/array.h"
#include "model/graph.h"

namespace cputrain::compute {

/// A gradient that is the product x^T diff_y of a few images' factors. In memory: x transposed
/// (rows, images), behind it diff_y (images, columns); images that there are not have x = 0.
struct Factors {
  std::size_t images, rows, columns;
  std::size_t size() const { return images * (rows + columns); }
};

/// Where one parameter lies in the flat arenas of weights, gradients and optimizer state (the same
/// offsets in all of them).
struct Parameter {
  std::string name;          ///< "conv2d/kernel"
  std::vector<int> extents;  ///< canonical (Keras) extents
  std::size_t count;         ///< product of the extents
  Range range;               ///< elements of the arena; may hold more than `count` where a backend
                             ///< pads its blocked layout (padding stays zero)
  bool decays;
  bool learnt;      ///< has a gradient
  bool averaged;    ///< each rank moves its own: what counts is the mean over ranks
  float l2;         ///< the loss grows by l2 * sum of squares
  double rate = 1;  ///< what the learning rate is multiplied by
  /// Elements of a row, where each rank of a node makes the gradient of some rows, of all images of
  /// the node; 0 where every rank makes all of it, of its own images.
  std::size_t row = 0;
  /// Read as a matrix whose columns are the last extent: the columns lie in panels of so many (the
  /// last one filled up with zeros), each panel row by row. 0: in one panel.
  std::size_t panel = 0;
  /// What an arena of gradients holds from the beginning of the range in place of the gradient.
  std::optional<Factors> factors{};
  /// Columns of the matrix, padding included, where they are not the last extent; else 0.
  std::size_t columns = 0;
};

/// The rows of a sharded parameter that are local rank `local` of `ranks`' own; as many as can be
/// the same for all, together the whole of it.
Range shard_of(const Parameter&, int local, int ranks);

/// Parameters in model order. Ranges of those that are learnt run backwards through the arena (the
/// last layer lies first), because that is the order in which backward finishes gradients: buckets
/// are then slices of one array. Behind them, in [gradient_size, arena_size), lies what is not
/// learnt (moving statistics, frozen layers): no rule updates it, it is not reduced, and ranks may
/// differ in it. Every range starts on a 64-byte boundary.
struct ParameterLayout {
  std::vector<Parameter> parameters;
  std::size_t gradient_size = 0;  ///< elements of the gradient arena
  std::size_t arena_size = 0;     ///< elements of the weights arena
  DType dtype = DType::f32;
};

/// Lays out the graph's parameters; `stored[i]` is the number of elements that parameter i (in
/// model order) takes in the backend's own layout.
ParameterLayout lay_out(const model::Graph&, DType, const std::vector<std::size_t>& stored);
/// The same where every parameter is stored as it is, without padding.
ParameterLayout lay_out(const model::Graph&, DType);

/// Sharded parameters in the order of the arena.
std::vector<Parameter> sharded_parameters(const ParameterLayout&);

/// What local rank `local` of `ranks` uses of its array of gradients: everything but other ranks'
/// shards and what factors leave free, ascending.
std::vector<Range> used_gradients(const ParameterLayout&, int local, int ranks);

/// A run of an arena's elements, and an array with a number for each of them.
struct ArenaPart {
  Range range;
  Array values;
};

/// How backward writes gradients: the first micro-batch of a step overwrites, the others add.
enum class Accumulate { overwrite, add };

/// The two arenas of a replica. The communicator owns them (a node may hold one copy of the
/// weights); both start on 64-byte boundaries. A program that only infers has no gradients.
struct Arenas {
  Array weights;
  Array gradients;
};

/// How one parameter lies in an arena of floats: a converter between that and the canonical (Keras)
/// layout, on the host.
class ParameterFormat {
 public:
  virtual ~ParameterFormat() = default;
  virtual std::size_t stored() const = 0;            ///< elements in the arena, padding included
  virtual std::size_t panel() const { return 0; }    ///< as in Parameter
  virtual std::size_t columns() const { return 0; }  ///< as in Parameter
  virtual std::optional<Factors> factors() const { return std::nullopt; }  ///< as in Parameter
  /// Both spans have the parameter's elements, `stored` with its padding, which becomes zero.
  virtual void to_canonical(std::span<const float> stored, std::span<float> canonical) const = 0;
  virtual void from_canonical(std::span<const float> canonical, std::span<float> stored) const = 0;
};

}  // namespace cputrain::compute
