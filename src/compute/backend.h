#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/device_sums.h"
#include "compute/factors.h"
#include "compute/image_feed.h"
#include "compute/memory.h"
#include "compute/program.h"
#include "compute/update.h"
#include "core/precision.h"
#include "optim/update_rule.h"

namespace cputrain::comm {
class Communicator;
}

namespace cputrain::compute {

struct CompileOptions {
  Phase phase = Phase::train;      ///< `evaluate`: no gradients, no memory for backward
  std::vector<int> micro_batches;  ///< every number of images that will be run at once, >= 1
  /// Where batch normalization takes its statistics from the images of all ranks: every training
  /// step is then one micro-batch on every rank, empty ones included. Borrowed by the program.
  comm::Communicator* synchronise = nullptr;
  std::optional<int> threads{};  ///< the program's, where it should not use all of the backend's
  /// The ranks of a node, which compute sharded layers together; needed where the graph has any.
  /// Every pass, for training or not, is then one micro-batch on each of them, empty ones included.
  /// Borrowed by the program.
  comm::Communicator* node = nullptr;
  /// Images of a usual training pass on the rank that has most: the same on all ranks. By default
  /// the largest of micro_batches.
  std::optional<int> usual_images{};
  /// Gradients may be left as factors (compute/factors.h): the exchange adds up the
  /// products.
  bool keeps_factors = false;
};

/// Makes the arenas once the backend knows how many elements its layout takes.
using ArenaSource = std::function<Arenas(const ParameterLayout&)>;

/// What the machine can do, measured with this backend's threads: the denominators of efficiency.
struct Limits {
  double fma_gflops = 0;  ///< multiply-adds from registers, 2 FLOPs each
  double triad_gbs = 0;   ///< a[i] = b[i] + s * c[i], 24 bytes an element pair of doubles (STREAM)
  /// Products of bf16 in tile registers (AMX), 2 FLOPs each, of numbers as trainings have them:
  /// zeros are quicker. 0 where the backend has none.
  double tiles_gflops = 0;

  /// What rates of products are compared with.
  double peak(Precision precision) const {
    return precision == Precision::bf16 && tiles_gflops > 0 ? tiles_gflops : fma_gflops;
  }
};

/// The better of two measurements: a disturbed one would flatter what is compared with it.
inline Limits better(const Limits& a, const Limits& b) {
  return {std::max(a.fma_gflops, b.fma_gflops), std::max(a.triad_gbs, b.triad_gbs),
          std::max(a.tiles_gflops, b.tiles_gflops)};
}

/// How processes that share a machine measure it together: each pass begins when all are there and
/// lasts until the slowest is done, so that none has the machine to itself. Alone by default.
struct Together {
  int processes = 1;  ///< on this machine
  std::function<void()> meet = [] {};
  std::function<double(double)> slowest = [](double seconds) { return seconds; };
};

/// What does not change of a backend.
struct BackendFacts {
  std::string name;
  /// One line for the log: library, version, instruction set, threads.
  std::string description;
  /// Names what may compute a program: other bits and other speeds come from where it differs.
  /// Empty where there is one way only.
  std::string kernels{};
  /// Our own kernels': grows where bits or speeds change; 0 where there are none.
  int kernels_version = 0;
  DType dtype = DType::f32;  ///< the arenas'
  /// Bytes of a number as maps lie in memory, and weights where products read them.
  std::size_t number_bytes = size_of(dtype);
  /// What a program finds by timing (compute/tuner.h) holds for later trainings, too.
  bool keeps_methods = false;
};

/// How many sums Backend::block_norms() gives of these.
std::size_t norm_blocks(std::span<const ArenaPart> parts);

/// A device and the kernels for it.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual const BackendFacts& facts() const = 0;
  const std::string& name() const { return facts().name; }
  DType dtype() const { return facts().dtype; }
  /// Where all arrays lie that programs and the calls below are given.
  virtual Memory& memory() { return host_memory(); }

  virtual std::unique_ptr<Program> compile(const model::Graph&, const CompileOptions&,
                                           const ArenaSource&) = 0;

  /// The arrays must stay where they are; the backend outlives it.
  virtual std::unique_ptr<Update> make_update(const optim::UpdatePlan&) = 0;

  /// Changes the slice's gradients (and state) in place, before they are updated with.
  virtual void change_gradients(const optim::GradientOperation&, const optim::UpdateSlice&) = 0;

  /// dst = src[0] + src[1] + ..., in that order, of equally long arrays; dst may be one of them.
  virtual void sum(std::span<const Array> src, const Array& dst) = 0;

  /// Sums of x^2 in double of the blocks of kNormBlock elements of the arena (optim/update_math.h)
  /// that parts of it touch: those of a part behind those of the one before. They are of what the
  /// arrays hold now, whenever they are waited for.
  virtual Pending<std::vector<double>> block_norms(std::span<const ArenaPart> parts) = 0;
  /// Sums of x^2 of each array in double; the same bits at any number of threads.
  Pending<std::vector<double>> sums_of_squares(std::span<const Array> arrays);
  /// The same of one, which it waits for.
  double sum_of_squares(const Array&);

  /// Null where arrays lie in the host's memory, which sums them.
  virtual DeviceSums* device_sums() { return nullptr; }

  /// Names what the calling thread asks for from now on, for tools that watch a device. The text
  /// lives for ever.
  virtual void name_work([[maybe_unused]] const char* name) {}

  /// Null where programs read images in the host's memory. Those of a backend that has one read
  /// micro-batches that were not staged, too.
  virtual ImageFeeder* feeder() { return nullptr; }

  // What sums that are the same bits at any number of ranks and threads need besides
  // (chunked_program.h). By default by the calling thread, on arrays in the host's memory: an
  // exchange refuses such sums for others (exchange/make_exchange.cpp).

  /// Calls work(0) to work(count - 1), side by side where the backend has that many threads: those
  /// that sum and update, so that none of them waits in a loop beside the work. Programs that are
  /// run inside have one thread. Throws what one of them threw.
  virtual void on_threads(int count, const std::function<void(int)>& work) {
    for (int i = 0; i < count; ++i) work(i);
  }
  /// AddProducts (factors.h); the same bits however the product is cut into parts.
  virtual void add_products(const Factors& factors, std::span<const Array> chunks, Range part,
                            const Array& sum) {
    add_products_plainly(factors, chunks, part, sum);
  }

  /// This process' part of the machine's limits. Takes about half a second; all processes of
  /// `together` must call it.
  virtual Limits measure_limits(const Together& together) = 0;
};

}  // namespace cputrain::compute
