#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "comm/allreduce.h"
#include "comm/node.h"
#include "comm/point_to_point.h"
#include "comm/pulse.h"
#include "core/array.h"

namespace cputrain::comm {

/// A fixed set of ranks. Every rank makes the same calls in the same order. One rank is a real,
/// working communicator (make_solo()), so no code asks whether there is more than one.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// "one process", "Open MPI 4.1.4", "threads": for the log.
  virtual std::string describe() const = 0;

  /// Element by element, in place: the sum over ranks, the same bits on every rank.
  virtual void sum(Array values) = 0;
  virtual void broadcast(std::span<std::byte> data, int root) = 0;
  /// All ranks' texts, by rank, on every rank.
  virtual std::vector<std::string> gather(std::string_view text) = 0;
  virtual void barrier() = 0;

  virtual NodeMemory& node_memory() = 0;

  /// A new channel for messages between all ranks. Collective.
  virtual std::unique_ptr<PointToPoint> make_point_to_point() = 0;
  /// The engine's own allreduce, whatever its algorithm, over the ranks that name the same group.
  /// Collective over all ranks.
  virtual std::unique_ptr<Allreduce> make_allreduce(int group) = 0;
  /// Whether make_allreduce() of all ranks' own group takes addresses of GPUs.
  virtual bool reads_devices() const { return false; }
  /// Whether another thread than the one that made the communicator may use what
  /// make_point_to_point() and make_allreduce() returned, while that one makes calls of its own.
  virtual bool serves_threads() const = 0;

  /// Ends all ranks with this exit code, so that none waits for ever for one that failed.
  [[noreturn]] virtual void abort(int code) = 0;

  /// Where this rank is in its work, by its own account.
  Pulse& pulse() { return *pulse_; }
  /// For a thread that reads it until after the communicator's end.
  std::shared_ptr<Pulse> share_pulse() const { return pulse_; }

 private:
  std::shared_ptr<Pulse> pulse_ = std::make_shared<Pulse>();
};

/// All ranks' values, by rank, on every rank, bit for bit. Collective.
template <class T>
requires std::is_trivially_copyable_v<T> std::vector<T> gather_values(Communicator& communicator,
                                                                      const T& mine) {
  const std::vector<std::string> all =
      communicator.gather({reinterpret_cast<const char*>(&mine), sizeof(T)});
  std::vector<T> values(all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::memcpy(&values[rank], all[rank].data(), sizeof(T));
  }
  return values;
}

/// Each of these numbers, 16 at most, becomes its sum over ranks; they travel together. Collective.
void sum_numbers(Communicator&, std::span<double* const> numbers);

/// The mean of the ranks' values, on every rank. Collective.
double mean_of_ranks(Communicator&, double mine);

/// The largest of the ranks' values that are known, on every rank. Collective.
std::optional<double> largest_of_ranks(Communicator&, std::optional<double> mine);

/// One rank: this process alone. Nothing is sent, all contracts hold; abort ends the process.
std::unique_ptr<Communicator> make_solo();

/// Throws Error(disagree) where the ranks' texts differ; `what` names what they are of. Rank 0
/// prints a table of them before. Collective.
void check_agreement(Communicator&, const std::string& what, const std::string& mine);

/// What one rank could not have, no rank has: where `make` throws an Error on some ranks, `undo`
/// lets go of what it made on all of them, which then throw the same Error(internal). Collective.
void attempt_together(Communicator&, const std::function<void()>& make,
                      const std::function<void()>& undo);

/// Does it on rank 0; where that fails, all ranks end with the same Error. Collective.
void on_rank_0(Communicator&, const std::function<void()>& work);

}  // namespace cputrain::comm
