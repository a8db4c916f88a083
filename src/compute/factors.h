#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compute/parameters/parameters.h"

/// The gradient of a dense layer's weights, x^T diff_y, is far larger than its factors when images
/// are few. Where gradients of small groups of images are added up one by one, factors may stand in
/// an arena in place of their product (Parameter::factors), and sums are formed from them, image
/// after image: less memory to write and read, and less to send between nodes. After "sufficient
/// factors" (Xie et al. 2016, "Lighter-Communication Distributed Machine Learning").
namespace cputrain::compute {

/// sum[i] += (x^T diff_y)[part.begin + i], image after image of all chunks, those whose x is 0 left
/// out: diff_y of images that are not there may be anything. A chunk's array begins with the
/// factors; `part` counts the product's elements, and `sum` is as long.
using AddProducts = std::function<void(const Factors&, std::span<const Array> chunks, Range part,
                                       const Array& sum)>;
/// The same in plain loops on the calling thread.
void add_products_plainly(const Factors&, std::span<const Array> chunks, Range part,
                          const Array& sum);

/// A part of the gradients that is summed in one way.
struct GradientPart {
  Range range;                          ///< elements of the arena
  const Parameter* factored = nullptr;  ///< if they are elements of a product of factors
  /// Elements of `range` as the product counts them.
  Range of_product() const {
    return {range.begin - factored->range.begin, range.end - factored->range.begin};
  }
};

/// Cuts a range of the gradients where factors begin or end; ascending. Points into the layout.
std::vector<GradientPart> parts_of(const ParameterLayout&, Range);

/// What must be known of a chunk's arena to form the sums of a part: elements of the arena,
/// ascending.
std::vector<Range> needed_for(const GradientPart&);

}  // namespace cputrain::compute
