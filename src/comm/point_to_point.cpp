#include "comm/point_to_point.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace cputrain::comm {

PointToPointGroup::PointToPointGroup(PointToPoint& all, std::vector<int> members)
    : all_(all),
      members_(std::move(members)),
      rank_(static_cast<int>(std::ranges::find(members_, all.rank()) - members_.begin())) {
  assert(rank_ < size());
}

}  // namespace cputrain::comm
