#include "backends/cuda/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backends/cuda/device_sums.h"
#include "backends/cuda/image_feed.h"
#include "backends/cuda/kernels/limits.h"
#include "backends/cuda/kernels/updates.h"
#include "backends/cuda/memory.h"
#include "backends/cuda/ops/op.h"
#include "backends/cuda/update.h"
#include "compute/executor/executor.h"
#include "core/casts.h"
#include "optim/update_math.h"

namespace cputrain::cuda {
namespace {

/// Goes up when kernels give other bits or speeds than before.
constexpr int kKernelsVersion = 3;

/// Multiprocessors decide where sums are cut: parts of a GPU, and variants of the same name, have
/// other numbers of them.
compute::BackendFacts facts_of(const DeviceProperties& properties, const DeviceChoice& choice) {
  const Numbers numbers = choice.numbers;
  return {
      .name = "cuda",
      .description =
          fmt::format("{}, {} multiprocessors, {}, {}{}", properties.name,
                      properties.multiprocessors, properties.runtime, word_of(numbers),
                      numbers == Numbers::exact ? " (each product is three of TF32)" : ""),
      .kernels = fmt::format("CUDA kernels {} in {} on {} of {} multiprocessors", kKernelsVersion,
                             word_of(numbers), properties.name, properties.multiprocessors),
      .kernels_version = kKernelsVersion,
      .number_bytes = stored_bytes(numbers),
      .keeps_methods = choice.measures};
}

/// NCCL works with GPUs only, not with emulated devices.
const nccl::Library& library_of(const DeviceGroups& groups, const DeviceProperties& properties) {
  if (groups.library) return *groups.library;
  static const nccl::Library none{.why_none = "emulated devices have no NCCL",
                                  .remedy = "use a GPU"};
  return properties.emulated ? none : nccl::library();
}

/// The quickest of some runs, in seconds of the device; processes that share it run together.
template <class Work>
double best_time(Stream stream, const compute::Together& together, const Work& work) {
  constexpr int kRepeats = 5;
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    Event begin(Event::timed), end(Event::timed);
    together.meet();
    begin.record(stream);
    work();
    end.record(stream);
    end.synchronize();
    const double seconds = together.slowest(end.seconds_since(begin));
    if (repeat == 0 || seconds < best) best = seconds;
  }
  return best;
}

/// Multiply-adds of the program's numbers, in 1e9 operations a second. An emulated device, whose
/// times mean nothing, does little work.
double product_rate(Stream stream, const DeviceProperties& device, Numbers numbers,
                    const compute::Together& together) {
  const int rounds = device.emulated ? 2 : 1 << 14;
  const int processors = device.emulated ? 1 : device.multiprocessors;
  const DeviceBlock sums(multiply_add_sums(processors) * sizeof(float), "sums of multiply-adds");
  const double seconds = best_time(stream, together, [&] {
    launch_multiply_adds(stream, numbers, processors, rounds, sums.as<float>());
  });
  return 2 * multiply_adds(numbers, processors, rounds) / std::max(seconds, 1e-9) / 1e9;
}

/// The triad, in 1e9 bytes a second.
double triad_rate(Stream stream, const DeviceProperties& device,
                  const compute::Together& together) {
  const std::size_t share = device.memory / 64 / to_size(together.processes);
  const std::size_t size =
      device.emulated ? 1024 : std::min(share, std::size_t{1} << 30) / sizeof(double);
  const DeviceBlock arrays(3 * size * sizeof(double), "arrays of the triad");
  auto* a = arrays.as<double>();
  clear_async(a, arrays.size(), stream);
  const double seconds = best_time(
      stream, together, [&] { launch_triad(stream, size, 3.0, a + size, a + 2 * size, a); });
  return 24 * to_double(size) / std::max(seconds, 1e-9) / 1e9;
}

class CudaBackend final : public compute::Backend, private compute::ImageFeeder {
 public:
  CudaBackend(const DeviceChoice& choice, const DeviceGroups& groups)
      : choice_(choice),
        properties_((use_device(choice_.device), device_properties(choice_.device))),
        facts_(facts_of(properties_, choice_)),
        memory_(choice_.device, choice_.ranks_on_device, choice_.numbers, stream_),
        sums_(choice_.device, properties_.identity, stream_, library_of(groups, properties_),
              groups.limits) {}

  const compute::BackendFacts& facts() const override { return facts_; }
  compute::Memory& memory() override { return memory_; }

  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& arenas) override {
    return std::make_unique<compute::Executor>(
        make_target({choice_, properties_.multiprocessors, stream_, memory_}), graph, options,
        arenas);
  }

  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan& plan) override {
    use_device(choice_.device);
    return std::make_unique<DeviceUpdate>(++updates_, choice_.device, stream_, memory_, plan);
  }

  void change_gradients(const optim::GradientOperation& operation,
                        const optim::UpdateSlice& slice) override {
    use_device(choice_.device);
    cuda::change_gradients(stream_.get(), operation, slice);
    stream_.finish_call();
  }

  /// The first call takes as many as it can; each further one adds its own to what is there. Where
  /// dst is one of those, it is kept until its turn.
  void sum(std::span<const Array> src, const Array& dst) override {
    use_device(choice_.device);
    auto* total = dst.as<float>().data();
    const auto is_dst = [&](const Array& array) { return array.data == dst.data; };
    DeviceBlock kept;
    const auto summand = [&](const Array& array) -> const float* {
      return kept.data() && is_dst(array) ? kept.as<const float>() : array.as<float>().data();
    };
    if (src.size() > kMostSummands && std::ranges::any_of(src.subspan(kMostSummands), is_dst)) {
      kept = DeviceBlock(dst.size * sizeof(float), "a summand that is the sum");
      copy_async(kept.data(), total, dst.size * sizeof(float), stream_.get());
    }
    for (std::size_t done = 0; done < src.size();) {
      Summands summands{};
      if (done > 0) summands.src[summands.count++] = total;
      while (done < src.size() && summands.count < kMostSummands) {
        summands.src[summands.count++] = summand(src[done++]);
      }
      sum_arrays(stream_.get(), summands, dst.size, total);
    }
    memory_.weight_copies().written(dst.bytes());
    stream_.finish_call();
    if (kept.data()) stream_.synchronize();
  }

  compute::ImageFeeder* feeder() override { return this; }

  void name_work(const char* name) override { name_range(name); }

  compute::DeviceSums* device_sums() override { return &sums_; }

  compute::Pending<std::vector<double>> block_norms(
      std::span<const compute::ArenaPart> parts) override {
    const std::size_t blocks = compute::norm_blocks(parts);
    if (blocks == 0) return {};
    use_device(choice_.device);
    const std::shared_ptr<Norms> norms = free_norms(blocks * sizeof(double));
    auto* sums = norms->sums.as<double>();
    for (const compute::ArenaPart& part : parts) {
      cuda::block_norms(stream_.get(), part.values.as<float>().data(), part.values.size,
                        part.range.begin, sums);
      sums += compute::norm_blocks({&part, 1});
    }
    copy_async(norms->host.data(), norms->sums.data(), blocks * sizeof(double), stream_.get());
    norms->arrived.record(stream_.get());
    stream_.finish_call();
    return compute::Pending<std::vector<double>>([norms, blocks] {
      norms->arrived.wait();
      const auto* const values = norms->host.as<const double>();
      return std::vector<double>(values, values + blocks);
    });
  }

  compute::Limits measure_limits(const compute::Together& together) override {
    use_device(choice_.device);
    return {product_rate(stream_.get(), properties_, choice_.numbers, together),
            triad_rate(stream_.get(), properties_, together)};
  }

 private:
  std::unique_ptr<compute::ImageFeed> make_feed(const compute::FeedSize& size) override {
    return std::make_unique<DeviceFeed>(choice_.device, memory_, size);
  }
  compute::FeedBytes feed_bytes(const compute::FeedSize& size) const override {
    return DeviceFeed::bytes(size);
  }

  /// Norms that were asked for, on their way to the host.
  struct Norms {
    Norms(const ComputeStream& compute, std::size_t bytes)
        : sums(bytes, "norms"), host(bytes), arrived(compute) {}
    DeviceBlock sums;
    PinnedBlock host;
    StreamEvent arrived;
  };

  /// A block of norms without a pending wait, or a new one.
  std::shared_ptr<Norms> free_norms(std::size_t bytes) {
    const auto found = std::ranges::find_if(norms_, [&](const std::shared_ptr<Norms>& norms) {
      return norms.use_count() == 1 && norms->host.size() >= bytes;
    });
    return found != norms_.end() ? *found
                                 : norms_.emplace_back(std::make_shared<Norms>(stream_, bytes));
  }

  DeviceChoice choice_;
  DeviceProperties properties_;
  compute::BackendFacts facts_;
  ComputeStream stream_;
  DeviceMemory memory_;
  NcclSums sums_;
  std::uint64_t updates_ = 0;                  ///< that were made
  std::vector<std::shared_ptr<Norms>> norms_;  ///< as many as were not waited for at once so far
};

}  // namespace

std::unique_ptr<compute::Backend> make_device_backend(const DeviceChoice& choice,
                                                      const DeviceGroups& groups) {
  return std::make_unique<CudaBackend>(choice, groups);
}

}  // namespace cputrain::cuda
