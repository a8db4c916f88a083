#include "backends/cpu/kernels/dense_product.h"

#include <algorithm>

#include "backends/cpu/dnnl_primitives.h"

namespace cputrain::cpu {

using alive_rows::Sizes;

DenseProduct::DenseProduct(const Size& size, bool zeros_are_dead)
    : size_(size),
      zeros_are_dead_(zeros_are_dead),
      may_skip_(alive_rows::may_pay(size.in, size.out)) {}

std::size_t DenseProduct::kept_bytes() const {
  if (!may_skip_) return 0;
  return alive_rows::mask_count({size_.images, size_.in, size_.out, size_.row_x}) *
         sizeof(std::uint64_t);
}

std::size_t DenseProduct::forward_bytes() const {
  if (!may_skip_) return 0;
  const std::size_t images = std::min(size_.images, alive_rows::kMostImages);
  return alive_rows::forward_scratch({images, size_.in, size_.out, size_.row_x}) * sizeof(float);
}

void DenseProduct::use(std::byte* kept, std::byte* for_forward) {
  masks_ = reinterpret_cast<std::uint64_t*>(kept);
  sums_ = reinterpret_cast<float*>(for_forward);
}

template <class F>
void DenseProduct::for_groups(std::size_t images, const F& f) const {
  for (std::size_t first = 0; first < images; first += alive_rows::kMostImages) {
    const std::size_t count = std::min(alive_rows::kMostImages, images - first);
    f(first, Sizes{count, size_.in, size_.out, size_.row_x},
      masks_ + first * alive_rows::blocks(size_.in));
  }
}

void DenseProduct::look_for_zeros(std::size_t images, const float* x) {
  alive_ = 0;
  for_groups(images, [&](std::size_t first, const Sizes& sizes, std::uint64_t* masks) {
    alive_ += alive_rows::find_alive(instruction_set_, sizes, x + first * size_.row_x, masks);
  });
}

void DenseProduct::forward(std::size_t images, const float* x, const float* weights, bool add,
                           float* y) {
  if (may_skip_) look_for_zeros(images, x);
  if (!may_skip_ || !alive_rows::forward_pays(images, size_.in, alive_)) {
    return multiply({false, false, images, size_.out, size_.in, size_.row_x}, x, weights,
                    add ? 1.0f : 0.0f, y);
  }
  if (!add) std::fill_n(y, images * size_.out, 0.0f);
  for_groups(images, [&](std::size_t first, const Sizes& sizes, const std::uint64_t* masks) {
    alive_rows::forward(instruction_set_, sizes, masks, x + first * size_.row_x, weights, sums_,
                        y + first * size_.out);
  });
}

void DenseProduct::backward_weights(std::size_t images, const float* x, const float* diff_y,
                                    bool add, float* diff_weights) const {
  if (!may_skip_ || !alive_rows::backward_pays(images, size_.in, alive_)) {
    return multiply({true, false, size_.in, size_.out, images, size_.row_x}, x, diff_y,
                    add ? 1.0f : 0.0f, diff_weights);
  }
  for_groups(images, [&](std::size_t first, const Sizes& sizes, const std::uint64_t* masks) {
    alive_rows::backward_weights(instruction_set_, sizes, masks, x + first * size_.row_x,
                                 diff_y + first * size_.out, add || first > 0, diff_weights);
  });
}

void DenseProduct::backward_data(std::size_t images, const float* diff_y, const float* weights,
                                 bool add, float* diff_x) const {
  if (!may_skip_ || !zeros_are_dead_ || !alive_rows::backward_pays(images, size_.in, alive_)) {
    return multiply({false, true, images, size_.in, size_.out, 0, size_.row_x}, diff_y, weights,
                    add ? 1.0f : 0.0f, diff_x);
  }
  for_groups(images, [&](std::size_t first, const Sizes& sizes, const std::uint64_t* masks) {
    alive_rows::backward_data(instruction_set_, sizes, masks, weights, diff_y + first * size_.out,
                              add, diff_x + first * size_.row_x);
  });
}

}  // namespace cputrain::cpu
