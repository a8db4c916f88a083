#pragma once

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "compute/memory.h"
#include "compute/parameters/parameters.h"
#include "core/names.h"

/// --compress: how gradients travel between ranks, or between nodes.
namespace cputrain::exchange {

struct Compression {
  enum class Method { none, fp16, bf16, topk, powersgd };
  friend constexpr auto names(Method) {
    return std::to_array<Name<Method>>({{Method::none, "none"},
                                        {Method::fp16, "fp16"},
                                        {Method::bf16, "bf16"},
                                        {Method::topk, "topk"},
                                        {Method::powersgd, "powersgd"}});
  }
  Method method = Method::none;
  double fraction = 0.01;  ///< topk: the part that is sent
  int rank = 4;            ///< powersgd

  bool operator==(const Compression&) const = default;
};

/// none | fp16 | bf16 | topk[:FRACTION] | powersgd[:RANK]. Throws Error(usage).
Compression parse_compression(const std::string& text);
/// The same words back.
std::string to_text(const Compression&);
/// Those that change something, each as it is by default.
std::vector<Compression> compressions();

/// Error(usage) where the two exclude each other: what shares memory sends nothing, and a parameter
/// server is there for comparison only.
void check_compression(const Compression&, const comm::AllreduceChoice&);

/// What a sum that sends fewer bytes keeps from step to step, so that a training can go on later.
/// Between two sums.
class KeptParts {
 public:
  virtual ~KeptParts() = default;
  /// What was not sent yet, by element of the arena, in the host's memory. To be read and written,
  /// in ranges that are summed alone: pages of others take no memory. Whatever is written is sent,
  /// however ranges are cut from now on.
  virtual Array unsent() = 0;
  /// Other numbers that the next sum of a range starts from, the same on all ranks of the group.
  /// They stay where they are until the next sum.
  virtual std::vector<compute::ArenaPart> factors() { return {}; }
  /// Puts them back; those of a range of another size are left.
  virtual void set_factors(Range, [[maybe_unused]] const Array& values) {}
  /// Forgets all of it, as before the first sum.
  virtual void forget() = 0;
  /// Forgets NaN and infinities, after gradients that had some.
  virtual void forget_nonfinite() = 0;
};

/// How an exchange sums gradients over the ranks of a group. Unlike an Allreduce it is told where
/// in the arena the numbers lie, since a sum that sends fewer bytes keeps what it did not send for
/// the next step, and must know which numbers form a matrix. Not for two threads at once.
class GradientSum {
 public:
  virtual ~GradientSum() = default;

  /// In place. `gradients` are the elements `range` of the arena; all ranks of the group name the
  /// same range and get the same bits. Ranges either come again in the next step or never.
  virtual void sum(Range range, const Array& gradients) = 0;
  /// Whether the numbers are their own sums, and are not touched.
  virtual bool is_nothing() const { return false; }
  /// Bytes of an array whose plain sum would move as many as the sum of this range does: in a ring
  /// each rank sends 2 (P - 1) / P times that.
  virtual double volume(Range range) const = 0;
  /// Bytes that it keeps from step to step.
  virtual std::size_t memory() const = 0;
  /// "fp16", "topk:0.01".
  virtual std::string name() const = 0;

  /// What it keeps from step to step, a part of the training; null where it sends everything.
  virtual KeptParts* kept_parts() { return nullptr; }
};

/// The sum over the channel's ranks of gradients with this layout. Without compression every byte
/// goes by the channel's algorithm; where it has none, it is that of one rank alone, whose
/// gradients are the sum as they are, wherever they lie.
std::unique_ptr<GradientSum> make_gradient_sum(const Compression&, const compute::ParameterLayout&,
                                               comm::Channel);

/// Any sum, for gradients that do not lie in the host's memory: algorithms and compression add up
/// on the host and send from there, so each range goes there and comes back, without waiting for
/// what else the device is at. Its buffer, memory for staging, holds `most` elements, the longest
/// range.
std::unique_ptr<GradientSum> make_staged_sum(compute::Memory&, std::size_t most, DType,
                                             std::unique_ptr<GradientSum> on_host);

/// How many times fewer bytes move than in a plain sum of the same ranges; 1 where none do.
double compression_ratio(const GradientSum&, std::span<const Range>, DType);
/// ", gradients as fp16: 2.0 times fewer bytes", or nothing: for the log.
std::string describe_volume(const GradientSum&, std::span<const Range>, DType);

// Sums that send a part; each file begins with the method and its source. T is the type of the
// gradients.

/// `elements` of the arena, `fraction` of each range sent, in (0, 1].
template <class T>
std::unique_ptr<GradientSum> make_top_k_sum(std::size_t elements, double fraction, comm::Channel);
template <class T>
std::unique_ptr<GradientSum> make_power_sgd_sum(const compute::ParameterLayout&, int rank,
                                                comm::Channel);

// What they do with the rest, which a checkpoint may have put there.

/// For elements that travel as they are from now on: adds what is owed of them to what is sent.
/// Only what is owed is written, since pages of zeros may take no memory.
template <class T>
void send_owed(std::span<T> unsent, std::span<T> sent) {
  for (std::size_t i = 0; i < unsent.size(); ++i) {
    if (unsent[i] == 0) continue;
    sent[i] += unsent[i];
    unsent[i] = 0;
  }
}

template <class T>
void clear_nonfinite(std::span<T> values) {
  for (T& value : values) {
    if (!std::isfinite(value)) value = 0;
  }
}

}  // namespace cputrain::exchange
