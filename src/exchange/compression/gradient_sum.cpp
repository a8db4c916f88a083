#include "exchange/compression/gradient_sum.h"

#include <fmt/format.h>

#include <utility>

namespace cputrain::exchange {
namespace {

/// What is sent, if anything is, are the numbers themselves.
class Uncompressed : public GradientSum {
 public:
  explicit Uncompressed(DType dtype) : dtype_(dtype) {}
  double volume(Range range) const override {
    return static_cast<double>(range.size() * size_of(dtype_));
  }
  std::size_t memory() const override { return 0; }
  std::string name() const override { return "they are"; }

 private:
  DType dtype_;
};

class PlainSum final : public Uncompressed {
 public:
  PlainSum(DType dtype, comm::Channel channel)
      : Uncompressed(dtype), channel_(std::move(channel)) {}
  void sum(Range, const Array& gradients) override { channel_.allreduce->sum(gradients); }

 private:
  comm::Channel channel_;
};

class SumOfOne final : public Uncompressed {
 public:
  using Uncompressed::Uncompressed;
  void sum(Range, const Array&) override {}
  bool is_nothing() const override { return true; }
};

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

std::unique_ptr<GradientSum> make_plain_sum(DType dtype, comm::Channel channel) {
  return std::make_unique<PlainSum>(dtype, std::move(channel));
}

std::unique_ptr<GradientSum> make_sum_of_one(DType dtype) {
  return std::make_unique<SumOfOne>(dtype);
}

double compression_ratio(const GradientSum& sum, std::span<const Range> ranges, DType dtype) {
  double plain = 0, moved = 0;
  for (const Range& range : ranges) {
    plain += static_cast<double>(range.size() * size_of(dtype));
    moved += sum.volume(range);
  }
  return moved > 0 ? plain / moved : 1;
}

std::string describe_volume(const GradientSum& sum, std::span<const Range> ranges, DType dtype) {
  const double ratio = compression_ratio(sum, ranges, dtype);
  if (ratio == 1) return "";
  const bool fewer = ratio > 1;
  return fmt::format(", gradients as {}: {:.1f} times {} bytes", sum.name(),
                     fewer ? ratio : 1 / ratio, fewer ? "fewer" : "more");
}

std::unique_ptr<GradientSum> make_staged_sum(compute::Memory& memory, std::size_t most, DType dtype,
                                             std::unique_ptr<GradientSum> on_host) {
  return std::make_unique<StagedSum>(memory, most, dtype, std::move(on_host));
}

}  // namespace cputrain::exchange
