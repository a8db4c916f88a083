#include "compute/factors.h"

#include <algorithm>
#include <cassert>

namespace cputrain::compute {
namespace {

template <class T>
void add_products(const Factors& factors, const Array& chunk, Range part, std::span<T> sum) {
  const T* const x = chunk.as<T>().data();
  const T* const diff_y = x + factors.rows * factors.images;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const std::size_t row = i / factors.columns, column = i % factors.columns;
    for (std::size_t image = 0; image < factors.images; ++image) {
      const T value = x[row * factors.images + image];
      if (value != 0) sum[i - part.begin] += value * diff_y[image * factors.columns + column];
    }
  }
}

}  // namespace

void add_products_plainly(const Factors& factors, std::span<const Array> chunks, Range part,
                          const Array& sum) {
  assert(sum.size == part.size());
  for (const Array& chunk : chunks) {
    if (sum.dtype == DType::f32) {
      add_products(factors, chunk, part, sum.as<float>());
    } else {
      add_products(factors, chunk, part, sum.as<double>());
    }
  }
}

std::vector<GradientPart> parts_of(const ParameterLayout& layout, Range whole) {
  std::vector<const Parameter*> factored;
  for (const Parameter& parameter : layout.parameters) {
    if (parameter.factors) factored.push_back(&parameter);
  }
  std::ranges::sort(factored, {}, [](const Parameter* p) { return p->range.begin; });
  std::vector<GradientPart> parts;
  const auto add = [&](Range range, const Parameter* parameter) {
    const Range cut{std::max(range.begin, whole.begin), std::min(range.end, whole.end)};
    if (cut.begin < cut.end) parts.push_back({cut, parameter});
  };
  std::size_t position = whole.begin;
  for (const Parameter* parameter : factored) {
    add({position, parameter->range.begin}, nullptr);
    add(parameter->range, parameter);
    position = std::max(position, parameter->range.end);
  }
  add({position, whole.end}, nullptr);
  return parts;
}

std::vector<Range> needed_for(const GradientPart& part) {
  if (!part.factored) return {part.range};
  const Factors& factors = *part.factored->factors;
  const Range own = part.of_product();
  const std::size_t x = part.factored->range.begin, diff_y = x + factors.rows * factors.images;
  const std::size_t first_row = own.begin / factors.columns,
                    end_row = (own.end + factors.columns - 1) / factors.columns;
  return {{x + first_row * factors.images, x + end_row * factors.images},
          {diff_y, diff_y + factors.images * factors.columns}};
}

}  // namespace cputrain::compute
