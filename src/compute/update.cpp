#include "compute/update.h"

#include <cmath>
#include <utility>

#include "compute/backend.h"

namespace cputrain::compute {
namespace {

class UpdateBySlices final : public Update {
 public:
  UpdateBySlices(Backend& backend, const optim::UpdatePlan& plan, UpdateOfSlice update)
      : backend_(backend), plan_(plan), update_(std::move(update)) {}

  void apply(const optim::UpdateStep& step) override {
    for (std::size_t i = 0; i < plan_.slices.size(); ++i) {
      const optim::UpdateSlice& slice = plan_.slices[i];
      if (slice.added_weights > 0) {
        backend_.change_gradients(optim::AddWeights{slice.added_weights}, slice);
      }
      if (std::isfinite(plan_.limit)) {
        backend_.change_gradients(optim::ClipValues{plan_.limit}, slice);
      }
      optim::UpdateStep of_slice = step;
      if (!step.trust.empty()) of_slice.learning_rate *= step.trust[i];
      update_(of_slice, slice.decays ? plan_.weight_decay : 0, slice);
    }
  }

 private:
  Backend& backend_;
  optim::UpdatePlan plan_;
  UpdateOfSlice update_;
};

}  // namespace

std::unique_ptr<Update> make_update_by_slices(Backend& backend, const optim::UpdatePlan& plan,
                                              UpdateOfSlice update) {
  return std::make_unique<UpdateBySlices>(backend, plan, std::move(update));
}

}  // namespace cputrain::compute
