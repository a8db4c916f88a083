#include "exchange/staged_sum.h"

#include <utility>

namespace cputrain::exchange {
namespace {

class StagedSum final : public GradientSum {
 public:
  StagedSum(compute::Memory& memory, std::size_t most, DType dtype,
            std::unique_ptr<GradientSum> on_host)
      : memory_(memory),
        staging_(memory.staging(most * size_of(dtype))),
        buffer_{staging_->bytes().data(), most, dtype},
        on_host_(std::move(on_host)) {}

  void sum(Range range, const Array& gradients) override {
    const Array staged = buffer_.slice(0, gradients.size);
    memory_.read_now(gradients.data, staged.bytes());
    on_host_->sum(range, staged);
    memory_.write_now(staged.bytes(), gradients.data);
  }
  double volume(Range range) const override { return on_host_->volume(range); }
  std::size_t memory() const override { return staging_->bytes().size() + on_host_->memory(); }
  std::string name() const override { return on_host_->name(); }
  KeptParts* kept_parts() override { return on_host_->kept_parts(); }

 private:
  compute::Memory& memory_;
  std::unique_ptr<system::SharedBlock> staging_;
  Array buffer_;  ///< in it
  std::unique_ptr<GradientSum> on_host_;
};

}  // namespace

std::unique_ptr<GradientSum> make_staged_sum(compute::Memory& memory, std::size_t most, DType dtype,
                                             std::unique_ptr<GradientSum> on_host) {
  return std::make_unique<StagedSum>(memory, most, dtype, std::move(on_host));
}

}  // namespace cputrain::exchange
