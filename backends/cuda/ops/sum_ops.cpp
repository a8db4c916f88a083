#include "backends/cuda/ops/sum_ops.h"

#include "backends/cuda/kernels/elementwise.h"

namespace cputrain::cuda {

AddOp::AddOp(const Planning& planning, int op, std::string name, std::vector<Source> parts,
             const Activation& dst)
    : SumOp(planning, op, std::move(parts), dst, planning, std::move(name), "in order") {}

/// The first call takes as many as it can; each further one adds its own to what is there.
void AddOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    for (std::size_t done = 0; done < src_data_.size();) {
      MapList maps{};
      if (done > 0) maps.of[maps.count++] = dst_data_;
      while (done < src_data_.size() && maps.count < kMostMaps) {
        maps.of[maps.count++] = src_data_[done++];
      }
      add_maps(stream(), numbers(), dst_.count(execution.images), maps, dst_data_);
    }
  });
}

void AddOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  timed(data_time_, [&] {
    // Where one activation is added twice, the last part writes first.
    for (std::size_t i = parts_.size(); i-- > 0;) {
      if (!src_diff_[i]) continue;
      pass_on(stream(), numbers(), dst_.count(execution.images), dst_diff_, src_diff_[i],
              parts_[i].adds);
    }
  });
}

void pass_on(Stream stream, Numbers numbers, std::size_t count, const void* diff, void* of_part,
             bool add) {
  const MapList both{{of_part, diff}, 2}, alone{{diff}, 1};
  add_maps(stream, numbers, count, add ? both : alone, of_part);
}

ConcatOp::ConcatOp(const Planning& planning, int op, std::string name, std::vector<Source> parts,
                   const Activation& dst)
    : SumOp(planning, op, std::move(parts), dst, planning, std::move(name), "copies") {
  int first = 0;
  for (const Source& part : parts_) {
    firsts_.push_back(first);
    first += part.layout.shape.channels;
  }
}

ConcatPart ConcatOp::part(std::size_t i, int images) const {
  const Shape& whole = dst_.layout.shape;
  return {.positions = images * whole.height * whole.width,
          .channels = parts_[i].layout.shape.channels,
          .first = firsts_[i],
          .whole = whole.channels};
}

void ConcatOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      concat_forward(stream(), numbers(), part(i, execution.images), src_data_[i], dst_data_);
    }
  });
}

void ConcatOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  timed(data_time_, [&] {
    // Where one activation is two parts, the last one writes first.
    for (std::size_t i = parts_.size(); i-- > 0;) {
      if (!src_diff_[i]) continue;
      concat_backward(stream(), numbers(), part(i, execution.images), dst_diff_, src_diff_[i],
                      parts_[i].adds);
    }
  });
}

}  // namespace cputrain::cuda
