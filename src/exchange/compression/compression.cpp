#include "exchange/compression/compression.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "comm/allreduce.h"
#include "core/error.h"
#include "core/text.h"
#include "exchange/compression/sixteen_bits.h"

namespace cputrain::exchange {
namespace {

using Method = Compression::Method;

constexpr int kMostRank = 64;

[[noreturn]] void wrong(const std::string& text, const std::string& why) {
  fail(ExitCode::usage,
       "--compress {}: {}; write none, fp16, bf16, topk[:FRACTION] with a FRACTION above 0 and up "
       "to 1, or powersgd[:RANK] with a RANK from 1 to {}",
       text, why, kMostRank);
}

template <class T>
T number(const std::string& text, const std::string& word) {
  const auto value = number_in<T>(word);
  if (!value) wrong(text, "'" + word + "' is no such number");
  return *value;
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

/// fp16 reaches from 2^-24 to 2^16 and gradients may lie below it, so each message is scaled by a
/// power of two that brings its largest finite number just below 2^15; its inverse goes before.
template <class T>
float fp16_scale(std::span<const T> values) {
  std::int32_t largest = 0;  // as bits, which are ordered as the sizes are
  for (const T value : values) {
    const auto size = std::bit_cast<std::int32_t>(static_cast<float>(value)) & 0x7fffffff;
    const std::int32_t finite = size < 0x7f800000 ? size : 0;
    largest = finite > largest ? finite : largest;
  }
  if (largest == 0) return 1;
  return std::ldexp(1.0f, std::min(126, 14 - std::ilogb(std::bit_cast<float>(largest))));
}

/// Words of a message before its numbers.
template <Method format>
constexpr std::size_t kHeader = format == Method::fp16 ? 2 : 0;

template <Method format, class T>
void encode(std::span<const T> values, std::uint16_t* message) {
  if constexpr (format == Method::fp16) {
    const float scale = fp16_scale(values), inverse = 1 / scale;
    std::memcpy(message, &inverse, sizeof inverse);
    for (std::size_t i = 0; i < values.size(); ++i) {
      message[kHeader<format> + i] = to_fp16(static_cast<float>(values[i]) * scale);
    }
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      message[i] = to_bf16(static_cast<float>(values[i]));
    }
  }
}

/// Adds a message's numbers to `values`.
template <Method format, class T>
void decode_and_add(const std::uint16_t* message, std::span<T> values) {
  if constexpr (format == Method::fp16) {
    float inverse = 0;
    std::memcpy(&inverse, message, sizeof inverse);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += static_cast<T>(from_fp16(message[kHeader<format> + i]) * inverse);
    }
  } else {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += static_cast<T>(from_bf16(message[i]));
    }
  }
}

/// Gradients in 16 bits: each rank sends every other rank the chunk whose sum it forms, adds what
/// it gets in float, in the order of ranks, and sends the sum to all. Half the bytes of a ring;
/// every number is rounded twice, whatever the number of ranks. Micikevicius et al., "Mixed
/// precision training", 2018, and Jia et al., arXiv 1807.11205, exchange gradients so.
template <class T, Method format>
class SixteenBitSum final : public GradientSum {
 public:
  explicit SixteenBitSum(comm::Channel channel)
      : channel_(std::move(channel)), ranks_(channel_.members()) {}

  /// Segment by segment, so that a few megabytes of messages are enough.
  void sum(Range, const Array& gradients) override {
    const int size = ranks_.size();
    const std::size_t most =
        (gradients.size + static_cast<std::size_t>(size) - 1) / static_cast<std::size_t>(size);
    for (std::size_t begin = 0; begin < most; begin += kSegment) {
      segments_.clear();
      for (int rank = 0; rank < size; ++rank) {
        const Array chunk = comm::chunk_of(gradients, rank, size);
        segments_.push_back(
            chunk.slice(std::min(begin, chunk.size), std::min(begin + kSegment, chunk.size))
                .template as<T>());
      }
      const std::size_t longest = std::min(kSegment, most - begin) + kHeader<format>;
      out_.resize(std::max(out_.size(), longest));
      in_.resize(static_cast<std::size_t>(size), {});
      for (auto& message : in_) message.resize(std::max(message.size(), longest));
      scatter();
      add_up();
      gather();
    }
  }

  double volume(Range range) const override { return 2.0 * static_cast<double>(range.size()); }
  std::size_t memory() const override { return 0; }
  std::string name() const override { return to_text({.method = format}); }

 private:
  static constexpr std::size_t kSegment = std::size_t{1} << 18;  // elements: half a megabyte

  std::span<T> segment(int rank) const { return segments_[static_cast<std::size_t>(rank)]; }
  std::vector<std::uint16_t>& in(int rank) { return in_[static_cast<std::size_t>(rank)]; }
  /// The message about a segment; none about an empty one.
  static std::span<std::byte> message(std::vector<std::uint16_t>& memory, std::span<T> numbers) {
    const std::size_t words = numbers.empty() ? 0 : numbers.size() + kHeader<format>;
    return std::as_writable_bytes(std::span(memory).first(words));
  }

  /// Each step with another pair of ranks, so that none is addressed by two at once.
  template <class Step>
  void for_others(Step step) {
    const int size = ranks_.size(), rank = ranks_.rank();
    for (int d = 1; d < size; ++d) step((rank + d) % size, (rank - d + size) % size);
  }

  void scatter() {
    const std::span<T> mine = segment(ranks_.rank());
    for_others([&](int to, int from) {
      encode<format, T>(segment(to), out_.data());
      ranks_.exchange(to, message(out_, segment(to)), from, message(in(from), mine));
    });
  }

  void add_up() {
    const std::span<T> mine = segment(ranks_.rank());
    sum_.assign(mine.size(), T{0});
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      if (rank == ranks_.rank()) {
        for (std::size_t i = 0; i < mine.size(); ++i) sum_[i] += mine[i];
      } else {
        decode_and_add<format, T>(in(rank).data(), sum_);
      }
    }
  }

  /// A rank takes its own sum from the message, too: rounded as the others get it.
  void gather() {
    const int self = ranks_.rank();
    encode<format, T>(sum_, out_.data());
    for_others([&](int to, int from) {
      ranks_.exchange(to, message(out_, segment(self)), from, message(in(from), segment(from)));
    });
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      std::ranges::fill(segment(rank), T{0});
      decode_and_add<format, T>((rank == self ? out_ : in(rank)).data(), segment(rank));
    }
  }

  comm::Channel channel_;
  comm::PointToPoint& ranks_;
  std::vector<std::span<T>> segments_;  ///< by rank, of the chunk whose sum it forms
  std::vector<std::uint16_t> out_;
  std::vector<std::vector<std::uint16_t>> in_;
  std::vector<T> sum_;
};

template <class T>
std::unique_ptr<GradientSum> make_sum(const Compression& compression,
                                      const compute::ParameterLayout& layout,
                                      comm::Channel channel) {
  switch (compression.method) {
    case Method::none:
      break;
    case Method::fp16:
      return std::make_unique<SixteenBitSum<T, Method::fp16>>(std::move(channel));
    case Method::bf16:
      return std::make_unique<SixteenBitSum<T, Method::bf16>>(std::move(channel));
    case Method::topk:
      return make_top_k_sum<T>(layout.gradient_size, compression.fraction, std::move(channel));
    case Method::powersgd:
      return make_power_sgd_sum<T>(layout, compression.rank, std::move(channel));
  }
  return std::make_unique<PlainSum>(layout.dtype, std::move(channel));
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
       "--compress {} with --allreduce {} ({}); use --allreduce auto, hierarchical or an algorithm "
       "between ranks, or leave --compress out",
       to_text(compression), comm::to_text(choice),
       choice.one_node ? "a sum over shared memory sends nothing that could be smaller"
                       : "the parameter server takes gradients as they are");
}

std::unique_ptr<GradientSum> make_gradient_sum(const Compression& compression,
                                               const compute::ParameterLayout& layout,
                                               comm::Channel channel) {
  return layout.dtype == DType::f32 ? make_sum<float>(compression, layout, std::move(channel))
                                    : make_sum<double>(compression, layout, std::move(channel));
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
