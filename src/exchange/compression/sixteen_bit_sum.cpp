// Gradients in 16 bits: each rank sends every other rank the chunk whose sum it forms, adds what it
// gets in float, in the order of ranks, and sends the sum to all. Half the bytes of a ring; every
// number is rounded twice, whatever the number of ranks. Micikevicius et al., "Mixed precision
// training", 2018, and Jia et al., arXiv 1807.11205, exchange gradients so.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "comm/allreduce/sum_arrays.h"
#include "exchange/compression/compression.h"
#include "exchange/compression/sixteen_bits.h"

namespace cputrain::exchange {
namespace {

/// fp16 reaches from 2^-24 to 2^16 and gradients may lie below it, so each message is scaled by a
/// power of two that brings its largest finite number just below 2^15; its inverse goes before.
struct Fp16 {
  static constexpr const char* kName = "fp16";
  static constexpr std::size_t kHeader = 2;

  template <class T>
  static float scale_of(std::span<const T> values) {
    std::int32_t largest = 0;  // as bits, which are ordered as the sizes are
    for (const T value : values) {
      const auto size = std::bit_cast<std::int32_t>(static_cast<float>(value)) & 0x7fffffff;
      const std::int32_t finite = size < 0x7f800000 ? size : 0;
      largest = finite > largest ? finite : largest;
    }
    if (largest == 0) return 1;
    return std::ldexp(1.0f, std::min(126, 14 - std::ilogb(std::bit_cast<float>(largest))));
  }

  template <class T>
  static void encode(std::span<const T> values, std::uint16_t* message) {
    const float scale = scale_of(values), inverse = 1 / scale;
    std::memcpy(message, &inverse, sizeof inverse);
    for (std::size_t i = 0; i < values.size(); ++i) {
      message[kHeader + i] = to_fp16(static_cast<float>(values[i]) * scale);
    }
  }
  template <class T>
  static void add(const std::uint16_t* message, std::span<T> values) {
    float inverse = 0;
    std::memcpy(&inverse, message, sizeof inverse);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += static_cast<T>(from_fp16(message[kHeader + i]) * inverse);
    }
  }
};

struct Bf16 {
  static constexpr const char* kName = "bf16";
  static constexpr std::size_t kHeader = 0;

  template <class T>
  static void encode(std::span<const T> values, std::uint16_t* message) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      message[i] = to_bf16(static_cast<float>(values[i]));
    }
  }
  template <class T>
  static void add(const std::uint16_t* message, std::span<T> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += static_cast<T>(from_bf16(message[i]));
    }
  }
};

template <class T, class Format>
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
      const std::size_t longest = std::min(kSegment, most - begin) + Format::kHeader;
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
  std::string name() const override { return Format::kName; }

 private:
  static constexpr std::size_t kSegment = std::size_t{1} << 18;  // elements: half a megabyte

  std::span<T> segment(int rank) const { return segments_[static_cast<std::size_t>(rank)]; }
  std::vector<std::uint16_t>& in(int rank) { return in_[static_cast<std::size_t>(rank)]; }
  /// The message about a segment; none about an empty one.
  static std::span<std::byte> message(std::vector<std::uint16_t>& memory, std::span<T> numbers) {
    const std::size_t words = numbers.empty() ? 0 : numbers.size() + Format::kHeader;
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
      Format::template encode<T>(segment(to), out_.data());
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
        Format::template add<T>(in(rank).data(), sum_);
      }
    }
  }

  /// A rank takes its own sum from the message, too: rounded as the others get it.
  void gather() {
    const int self = ranks_.rank();
    Format::template encode<T>(sum_, out_.data());
    for_others([&](int to, int from) {
      ranks_.exchange(to, message(out_, segment(self)), from, message(in(from), segment(from)));
    });
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      std::ranges::fill(segment(rank), T{0});
      Format::template add<T>((rank == self ? out_ : in(rank)).data(), segment(rank));
    }
  }

  comm::Channel channel_;
  comm::PointToPoint& ranks_;
  std::vector<std::span<T>> segments_;  ///< by rank, of the chunk whose sum it forms
  std::vector<std::uint16_t> out_;
  std::vector<std::vector<std::uint16_t>> in_;
  std::vector<T> sum_;
};

}  // namespace

template <class T>
std::unique_ptr<GradientSum> make_fp16_sum(comm::Channel channel) {
  return std::make_unique<SixteenBitSum<T, Fp16>>(std::move(channel));
}

template <class T>
std::unique_ptr<GradientSum> make_bf16_sum(comm::Channel channel) {
  return std::make_unique<SixteenBitSum<T, Bf16>>(std::move(channel));
}

template std::unique_ptr<GradientSum> make_fp16_sum<float>(comm::Channel);
template std::unique_ptr<GradientSum> make_fp16_sum<double>(comm::Channel);
template std::unique_ptr<GradientSum> make_bf16_sum<float>(comm::Channel);
template std::unique_ptr<GradientSum> make_bf16_sum<double>(comm::Channel);

}  // namespace cputrain::exchange
