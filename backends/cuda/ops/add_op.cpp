#include "backends/cuda/ops/add_op.h"

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

}  // namespace cputrain::cuda
