#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/array.h"

namespace cputrain::comm {

/// dst[i] += src[i], in arrays of one length and type.
using AddArrays = std::function<void(const Array& dst, const Array& src)>;

/// Messages between the ranks of a group; what the algorithms of allreduce are written on. Each
/// object is a channel of its own: its messages meet no others.
class PointToPoint {
 public:
  virtual ~PointToPoint() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Sends `out` to one rank while receiving `in` from another (or the same). Both sides name the
  /// same length; nothing is sent where it is 0. Returns when `in` is there and `out` may change.
  virtual void exchange(int to, std::span<const std::byte> out, int from,
                        std::span<std::byte> in) = 0;
  /// Adds what has come to what is here, as AddArrays does; the seconds for it are a part of a sum.
  virtual void add(const Array& dst, const Array& src);

  void send(int to, std::span<const std::byte> out) { exchange(to, out, to, {}); }
  void receive(int from, std::span<std::byte> in) { exchange(from, {}, from, in); }
};

/// Some ranks of a larger group, numbered anew in the order given. Borrows the larger one.
class PointToPointGroup final : public PointToPoint {
 public:
  /// `members` are ranks of `all`, this one among them.
  PointToPointGroup(PointToPoint& all, std::vector<int> members);
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  void exchange(int to, std::span<const std::byte> out, int from,
                std::span<std::byte> in) override {
    all_.exchange(members_[static_cast<std::size_t>(to)], out,
                  members_[static_cast<std::size_t>(from)], in);
  }
  void add(const Array& dst, const Array& src) override { all_.add(dst, src); }

 private:
  PointToPoint& all_;
  std::vector<int> members_;
  int rank_;
};

/// Messages of another channel, each sent by `around`, which calls the function that it gets once.
class MessagesWithin final : public PointToPoint {
 public:
  MessagesWithin(std::unique_ptr<PointToPoint> peers,
                 std::function<void(const std::function<void()>& exchange)> around)
      : peers_(std::move(peers)), around_(std::move(around)) {}
  int rank() const override { return peers_->rank(); }
  int size() const override { return peers_->size(); }
  void exchange(int to, std::span<const std::byte> out, int from,
                std::span<std::byte> in) override {
    const auto message = [&] { peers_->exchange(to, out, from, in); };
    around_(std::cref(message));
  }
  void add(const Array& dst, const Array& src) override { peers_->add(dst, src); }

 private:
  std::unique_ptr<PointToPoint> peers_;
  std::function<void(const std::function<void()>& exchange)> around_;
};

}  // namespace cputrain::comm
