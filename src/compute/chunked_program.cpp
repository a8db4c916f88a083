#include "compute/chunked_program.h"

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

class ChunkedProgram final : public Program {
 public:
  ChunkedProgram(Backend& backend, const model::Graph& graph, const CompileOptions& options,
                 const ReproducibleChunks& chunks, const LaneArenas& arenas)
      : backend_(backend), chunks_(chunks), tallies_(static_cast<std::size_t>(chunks.lanes)) {
    CompileOptions one = options;
    one.threads = 1;
    one.keeps_factors = true;
    one.usual_images = chunks.images;  // a share, which depends on the ranks, decides nothing
    one.micro_batches = chunk_sizes(options.micro_batches);
    for (int lane = 0; lane < chunks.lanes; ++lane) {
      lanes_.push_back(backend.compile(
          graph, one, [&](const ParameterLayout& layout) { return arenas(layout, lane); }));
    }
  }

  const StoredParameters& parameters() const override { return lanes_[0]->parameters(); }

  void forward(const MicroBatch& batch, const Pass& pass) override {
    assert(batch.size() <= chunks_.images * chunks_.lanes);
    backend_.on_threads(chunks_.lanes, [&](int lane) {
      program(lane).forward(chunk_of_image(batch, lane), pass);
      tally(lane) = program(lane).tally().wait();
      tally(lane).loss = on_grid(tally(lane).loss);
    });
    probabilities_.clear();
    for (int lane = 0; lane < chunks_.lanes; ++lane) {
      sum_ += tally(lane);
      if (!pass.probabilities || tally(lane).images == 0) continue;
      const auto own = program(lane).probabilities();
      probabilities_.insert(probabilities_.end(), own.begin(), own.end());
    }
  }
  Pending<Tally> tally() override { return std::exchange(sum_, {}); }

  void backward(const Backward& call) override {
    assert(call.accumulate == Accumulate::overwrite && !call.update);
    backend_.on_threads(chunks_.lanes,
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

  std::vector<int> chunk_sizes(const std::vector<int>& micro_batches) const {
    std::set<int> sizes{chunks_.images};  // the largest on every rank: layouts depend on it
    for (const int images : micro_batches) {
      if (images % chunks_.images > 0) sizes.insert(images % chunks_.images);
    }
    return {sizes.begin(), sizes.end()};
  }

  MicroBatch chunk_of_image(const MicroBatch& batch, int lane) const {
    const auto images = static_cast<std::size_t>(batch.size());
    const auto chunk = static_cast<std::size_t>(chunks_.images);
    const std::size_t begin = std::min(images, static_cast<std::size_t>(lane) * chunk);
    const std::size_t count = std::min(chunk, images - begin);
    return batch.part(begin, count);
  }

  Backend& backend_;
  ReproducibleChunks chunks_;
  std::vector<std::unique_ptr<Program>> lanes_;
  std::vector<Tally> tallies_;  ///< by lane, in the last pass
  Tally sum_;                   ///< since it was last asked
  std::vector<float> probabilities_;
};

}  // namespace

std::unique_ptr<Program> make_chunked_program(Backend& backend, const model::Graph& graph,
                                              const CompileOptions& options,
                                              const ReproducibleChunks& chunks,
                                              const LaneArenas& arenas) {
  return std::make_unique<ChunkedProgram>(backend, graph, options, chunks, arenas);
}

}  // namespace cputrain::compute
