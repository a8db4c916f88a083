#include "compute/reproducible/leaf_program.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>
#include <utility>

namespace cputrain::compute {
namespace {

/// The nearest multiple of 2^-22. Up to 2^31 sums of such numbers are exact, so that they are the
/// same bits in whatever order lanes and ranks add them up. A sum beyond that has diverged.
double on_grid(double loss) {
  constexpr double kPerUnit = 1 << 22;
  return std::nearbyint(loss * kPerUnit) / kPerUnit;
}

class LeafProgram final : public Program {
 public:
  LeafProgram(Backend& backend, const model::Graph& graph, const CompileOptions& options,
              const Leaves& leaves, const LaneArenas& arenas)
      : leaves_(leaves), tallies_(static_cast<std::size_t>(leaves.lanes)) {
    CompileOptions one = options;
    one.threads = 1;
    one.leaves_factors = true;
    one.micro_batches = leaf_sizes(options.micro_batches);
    for (int lane = 0; lane < leaves.lanes; ++lane) {
      lanes_.push_back(backend.compile(
          graph, one, [&](const ParameterLayout& layout) { return arenas(layout, lane); }));
    }
    threads_ = backend.reproducible();  // the exchange refuses backends without
    assert(threads_);
  }

  const StoredParameters& parameters() const override { return lanes_[0]->parameters(); }

  void forward(const MicroBatch& batch, const Pass& pass) override {
    assert(batch.size() <= leaves_.images * leaves_.lanes);
    threads_->on_threads(leaves_.lanes, [&](int lane) {
      program(lane).forward(leaf_of(batch, lane), pass);
      tally(lane) = program(lane).tally().wait();
      tally(lane).loss = on_grid(tally(lane).loss);
    });
    probabilities_.clear();
    for (int lane = 0; lane < leaves_.lanes; ++lane) {
      sum_ += tally(lane);
      if (!pass.probabilities || tally(lane).images == 0) continue;
      const auto own = program(lane).probabilities();
      probabilities_.insert(probabilities_.end(), own.begin(), own.end());
    }
  }
  Pending<Tally> tally() override { return std::exchange(sum_, {}); }

  void backward(const Backward& call) override {
    assert(call.accumulate == Accumulate::overwrite && !call.update);
    threads_->on_threads(leaves_.lanes,
                         [&](int lane) { program(lane).backward({call.loss_scale}); });
    call.ready(layout().gradient_size, nullptr);
  }

  void publish_statistics() override { lanes_[0]->publish_statistics(); }
  std::span<const float> probabilities() override { return probabilities_; }

  std::vector<LayerTime> layer_times() const override { return lanes_[0]->layer_times(); }
  void time_layers(bool on) override { lanes_[0]->time_layers(on); }

  std::size_t workspace_bytes() const override {
    std::size_t bytes = 0;
    for (const auto& lane : lanes_) bytes += lane->workspace_bytes();
    return bytes;
  }

 private:
  Program& program(int lane) { return *lanes_[static_cast<std::size_t>(lane)]; }
  Tally& tally(int lane) { return tallies_[static_cast<std::size_t>(lane)]; }

  std::vector<int> leaf_sizes(const std::vector<int>& micro_batches) const {
    std::set<int> sizes{leaves_.images};  // the largest on every rank: layouts depend on it
    for (const int images : micro_batches) {
      if (images % leaves_.images > 0) sizes.insert(images % leaves_.images);
    }
    return {sizes.begin(), sizes.end()};
  }

  MicroBatch leaf_of(const MicroBatch& batch, int lane) const {
    const auto images = static_cast<std::size_t>(batch.size());
    const auto leaf = static_cast<std::size_t>(leaves_.images);
    const std::size_t begin = std::min(images, static_cast<std::size_t>(lane) * leaf);
    const std::size_t count = std::min(leaf, images - begin);
    return {batch.images.subspan(begin, count), batch.labels.subspan(begin, count),
            batch.samples.subspan(begin, count)};
  }

  ReproducibleCompute* threads_ = nullptr;
  Leaves leaves_;
  std::vector<std::unique_ptr<Program>> lanes_;
  std::vector<Tally> tallies_;  ///< by lane, in the last pass
  Tally sum_;                   ///< since it was last asked
  std::vector<float> probabilities_;
};

}  // namespace

std::unique_ptr<Program> make_leaf_program(Backend& backend, const model::Graph& graph,
                                           const CompileOptions& options, const Leaves& leaves,
                                           const LaneArenas& arenas) {
  return std::make_unique<LeafProgram>(backend, graph, options, leaves, arenas);
}

}  // namespace cputrain::compute
