#include "exchange/compression/compression.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/error.h"

namespace cputrain::exchange {
namespace {

using Method = Compression::Method;

constexpr int kMostRank = 64;

[[noreturn]] void wrong(const std::string& text, const std::string& why) {
  fail(ExitCode::usage,
       fmt::format("--compress {}: {}; write none, fp16, bf16, topk[:FRACTION] with a FRACTION "
                   "above 0 and up to 1, or powersgd[:RANK] with a RANK from 1 to {}",
                   text, why, kMostRank));
}

template <class T>
T number(const std::string& text, const std::string& word) {
  T value{};
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end) wrong(text, "'" + word + "' is no such number");
  return value;
}

Compression parse_method(const std::string& text, const std::string& name) {
  if (const auto method = value_named<Method>(name)) return {*method};
  wrong(text, "'" + name + "' is no way to compress");
}

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

/// What is sent, if anything is, are the numbers themselves.
class PlainSum final : public GradientSum {
 public:
  PlainSum(DType dtype, comm::Channel channel) : dtype_(dtype), channel_(std::move(channel)) {}
  void sum(Range, const Array& gradients) override {
    if (!is_nothing()) channel_.allreduce->sum(gradients);
  }
  bool is_nothing() const override { return !channel_.allreduce; }
  double volume(Range range) const override {
    return static_cast<double>(range.size() * size_of(dtype_));
  }
  std::size_t memory() const override { return 0; }
  std::string name() const override { return "they are"; }

 private:
  DType dtype_;
  comm::Channel channel_;
};

template <class T>
std::unique_ptr<GradientSum> make_sum(const Compression& compression,
                                      const compute::ParameterLayout& layout,
                                      comm::Channel channel) {
  switch (compression.method) {
    case Method::none:
      break;
    case Method::fp16:
      return make_fp16_sum<T>(std::move(channel));
    case Method::bf16:
      return make_bf16_sum<T>(std::move(channel));
    case Method::topk:
      return make_top_k_sum<T>(layout.gradient_size, compression.fraction, std::move(channel));
    case Method::powersgd:
      return make_power_sgd_sum<T>(layout, compression.rank, std::move(channel));
  }
  return make_plain_sum(layout.dtype, std::move(channel));
}

}  // namespace

Compression parse_compression(const std::string& text) {
  const std::size_t colon = text.find(':');
  Compression compression = parse_method(text, text.substr(0, colon));
  if (colon == std::string::npos) return compression;
  const std::string word = text.substr(colon + 1);
  if (compression.method == Method::topk) {
    compression.fraction = number<double>(text, word);
    if (!(compression.fraction > 0 && compression.fraction <= 1)) {
      wrong(text, "'" + word + "' is no such number");
    }
  } else if (compression.method == Method::powersgd) {
    compression.rank = number<int>(text, word);
    if (compression.rank < 1 || compression.rank > kMostRank) {
      wrong(text, "'" + word + "' is no such number");
    }
  } else {
    wrong(text, text.substr(0, colon) + " takes no number");
  }
  return compression;
}

std::string to_text(const Compression& compression) {
  const std::string_view word = word_of(compression.method);
  if (compression.method == Method::topk) return fmt::format("{}:{}", word, compression.fraction);
  if (compression.method == Method::powersgd) return fmt::format("{}:{}", word, compression.rank);
  return std::string(word);
}

std::vector<Compression> compressions() {
  std::vector<Compression> all;
  for (const Name<Method>& name : names(Method{})) {
    if (name.value != Method::none) all.push_back({name.value});
  }
  return all;
}

void check_compression(const Compression& compression, const comm::AllreduceChoice& choice) {
  if (compression.method == Method::none) return;
  if (!choice.one_node && choice.scheme != comm::AllreduceChoice::Scheme::server) return;
  fail(ExitCode::usage,
       fmt::format("--compress {} with --allreduce {} ({}); use --allreduce auto, hierarchical or "
                   "an algorithm between ranks, or leave --compress out",
                   to_text(compression), comm::to_text(choice),
                   choice.one_node ? "a sum over shared memory sends nothing that could be smaller"
                                   : "the parameter server takes gradients as they are"));
}

std::unique_ptr<GradientSum> make_gradient_sum(const Compression& compression,
                                               const compute::ParameterLayout& layout,
                                               comm::Channel channel) {
  return layout.dtype == DType::f32 ? make_sum<float>(compression, layout, std::move(channel))
                                    : make_sum<double>(compression, layout, std::move(channel));
}

std::unique_ptr<GradientSum> make_plain_sum(DType dtype, comm::Channel channel) {
  return std::make_unique<PlainSum>(dtype, std::move(channel));
}

std::unique_ptr<GradientSum> make_staged_sum(compute::Memory& memory, std::size_t most, DType dtype,
                                             std::unique_ptr<GradientSum> on_host) {
  return std::make_unique<StagedSum>(memory, most, dtype, std::move(on_host));
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
