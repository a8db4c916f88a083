#include "exchange/gradient_sum.h"

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

}  // namespace cputrain::exchange
