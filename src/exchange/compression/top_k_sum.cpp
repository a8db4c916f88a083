// The largest numbers of each range travel, as values and positions; what was not sent is added to
// the gradient of the next step (error feedback). Stich, Cordonnier and Jaggi, "Sparsified SGD with
// memory", 2018; Lin et al., "Deep gradient compression", 2017. Every rank gets what all others
// chose: (P - 1) k pairs, so the gain shrinks as ranks are added.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "exchange/compression/compression.h"
#include "exchange/compression/largest.h"
#include "system/pages.h"

namespace cputrain::exchange {
namespace {

/// Smaller ranges cost a network about as much as an empty message.
constexpr std::size_t kWholeBytes = 16384;

template <class T>
class TopKSum final : public GradientSum, public KeptParts {
 public:
  TopKSum(std::size_t elements, double fraction, comm::Channel channel)
      : fraction_(fraction),
        unsent_(elements * sizeof(T)),
        channel_(std::move(channel)),
        ranks_(channel_.members()),
        messages_(static_cast<std::size_t>(ranks_.size())) {}

  void sum(Range range, const Array& gradients) override {
    const bool is_new = summed_.insert({range.begin, range.end}).second;
    const std::span<T> sum = gradients.as<T>();
    const std::span<T> unsent = unsent_of(range);
    if (travels_whole(range)) {
      if (is_new) send_owed(unsent, sum);
      return channel_.allreduce->sum(gradients);
    }
    assert(range.size() <= std::numeric_limits<std::uint32_t>::max());
    for (std::size_t i = 0; i < sum.size(); ++i) unsent[i] += sum[i];
    const std::size_t chosen = chosen_of(range);
    for (auto& message : messages_) message.resize(chosen * kPairBytes);
    take_largest(unsent, chosen);
    gather();
    std::ranges::fill(sum, T{0});
    for (const auto& message : messages_) add(message, chosen, sum);
  }

  double volume(Range range) const override {
    if (travels_whole(range)) return static_cast<double>(range.size() * sizeof(T));
    return static_cast<double>(chosen_of(range) * kPairBytes) * ranks_.size() / 2;
  }
  std::size_t memory() const override { return unsent_.bytes().size(); }
  std::string name() const override {
    return to_text({.method = Compression::Method::topk, .fraction = fraction_});
  }

  KeptParts* kept_parts() override { return this; }

  Array unsent() override {
    return {unsent_.bytes().data(), unsent_.bytes().size() / sizeof(T), dtype_of<T>()};
  }
  void forget() override {
    for (const auto& [begin, end] : summed_) std::ranges::fill(unsent_of({begin, end}), T{0});
    summed_.clear();
  }
  void forget_nonfinite() override {
    for (const auto& [begin, end] : summed_) clear_nonfinite(unsent_of({begin, end}));
  }

 private:
  static constexpr std::size_t kPairBytes = sizeof(T) + sizeof(std::uint32_t);

  static bool travels_whole(Range range) { return range.size() * sizeof(T) < kWholeBytes; }
  std::size_t chosen_of(Range range) const {
    return static_cast<std::size_t>(std::ceil(fraction_ * static_cast<double>(range.size())));
  }
  std::span<T> unsent_of(Range range) {
    return unsent().slice(range.begin, range.end).template as<T>();
  }
  std::vector<std::byte>& message(int rank) { return messages_[static_cast<std::size_t>(rank)]; }

  /// A message holds the values, then their positions in the range.
  void take_largest(std::span<T> unsent, std::size_t chosen) {
    const auto positions = largest_.find(std::span<const T>(unsent), chosen);
    std::byte* const values = message(ranks_.rank()).data();
    for (std::size_t k = 0; k < chosen; ++k) {
      std::memcpy(values + k * sizeof(T), &unsent[positions[k]], sizeof(T));
      unsent[positions[k]] = 0;
    }
    std::memcpy(values + chosen * sizeof(T), positions.data(), positions.size_bytes());
  }

  void gather() {
    const int size = ranks_.size(), rank = ranks_.rank();
    for (int d = 1; d < size; ++d) {
      const int from = (rank - d + size) % size;
      ranks_.exchange((rank + d) % size, message(rank), from, message(from));
    }
  }

  static void add(const std::vector<std::byte>& message, std::size_t chosen, std::span<T> sum) {
    const std::byte* const positions = message.data() + chosen * sizeof(T);
    for (std::size_t k = 0; k < chosen; ++k) {
      T value{};
      std::uint32_t position = 0;
      std::memcpy(&value, message.data() + k * sizeof(T), sizeof value);
      std::memcpy(&position, positions + k * sizeof position, sizeof position);
      sum[position] += value;
    }
  }

  double fraction_;
  system::Pages unsent_;  ///< by element of the arena; pages that no range touches take no memory
  std::set<std::pair<std::size_t, std::size_t>> summed_;  ///< ranges
  comm::Channel channel_;
  comm::PointToPoint& ranks_;
  Largest largest_;
  std::vector<std::vector<std::byte>> messages_;  ///< by rank
};

}  // namespace

template <class T>
std::unique_ptr<GradientSum> make_top_k_sum(std::size_t elements, double fraction,
                                            comm::Channel channel) {
  return std::make_unique<TopKSum<T>>(elements, fraction, std::move(channel));
}

template std::unique_ptr<GradientSum> make_top_k_sum<float>(std::size_t, double, comm::Channel);
template std::unique_ptr<GradientSum> make_top_k_sum<double>(std::size_t, double, comm::Channel);

}  // namespace cputrain::exchange
