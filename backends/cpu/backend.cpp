#include <fmt/format.h>

#include <exception>
#include <mutex>

#include "backends/cpu/amx/availability.h"
#include "backends/cpu/convolution/convolution_choice.h"
#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/kernels/factored_sum.h"
#include "backends/cpu/kernels/instruction_set.h"
#include "backends/cpu/kernels/parallel.h"
#include "backends/cpu/kernels/sum.h"
#include "backends/cpu/kernels/update.h"
#include "backends/cpu/limits.h"
#include "backends/cpu/sparse/scatter.h"
#include "backends/cpu/target.h"
#include "compute/executor/executor.h"
#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cpu {
namespace {

std::string library_version() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

std::string allowed(const KernelChoice& kernels) {
  std::string text;
  if (kernels.winograd) text += ", Winograd where it pays";
  if (kernels.skip_zeros) text += ", zeros skipped where it pays";
  const amx::Kernels* const tiles = amx::find_kernels(kernels.tiles);
  if (kernels.bf16) {
    text += supports_amx() ? ", bf16 in AMX tiles where it pays" : ", bf16 where it pays";
  }
  if (tiles) text += fmt::format(", bf16 by {} where it pays", tiles->name);
  const amx::Kernels* const floats = amx::find_kernels(kernels.float_tiles);
  if (floats) text += fmt::format(", {} where it pays", floats->float_name);
  return text;
}

compute::BackendFacts facts_of(int threads, const KernelChoice& kernels) {
  const std::string plural = threads == 1 ? "" : "s";
  return {.name = "cpu",
          .description =
              fmt::format("{}, {}, {} thread{}{}", library_version(),
                          name_of(best_instruction_set()), threads, plural, allowed(kernels)),
          .kernels = fmt::format("{}, {}, own kernels {} by {}{}", library_version(),
                                 name_of(best_instruction_set()), kKernelsVersion,
                                 sparse::fitting_blocks(preferred_block()), allowed(kernels)),
          .kernels_version = kKernelsVersion};
}

class CpuBackend final : public compute::Backend {
 public:
  CpuBackend(int threads, const KernelChoice& kernels)
      : threads_(threads), kernels_(kernels), facts_(facts_of(threads, kernels)) {
    const ThreadCount scope(threads_);
    // They start now: OpenMP ends the process where it finds no memory.
    if (const int given = team_size(); given < threads_) refuse_small_team(given);
  }

  const compute::BackendFacts& facts() const override { return facts_; }

  std::unique_ptr<compute::Program> compile(const model::Graph& graph,
                                            const compute::CompileOptions& options,
                                            const compute::ArenaSource& arenas) override {
    check_bf16();
    return std::make_unique<compute::Executor>(
        make_target(options, options.threads.value_or(threads_), kernels_), graph, options, arenas);
  }

  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan& plan) override {
    return compute::make_update_by_slices(
        *this, plan,
        [this](const optim::UpdateStep& step, double decay, const optim::UpdateSlice& slice) {
          const ThreadCount scope(threads_);
          update_in_parallel(step, decay, slice);
        });
  }

  void change_gradients(const optim::GradientOperation& operation,
                        const optim::UpdateSlice& slice) override {
    const ThreadCount scope(threads_);
    change_gradients_in_parallel(operation, slice);
  }

  void sum(std::span<const Array> src, const Array& dst) override {
    const ThreadCount scope(threads_);
    sum_in_parallel(best_instruction_set(), src, dst);
  }

  compute::Pending<std::vector<double>> block_norms(
      std::span<const compute::ArenaPart> parts) override {
    const ThreadCount scope(threads_);
    std::vector<double> sums(compute::norm_blocks(parts));
    std::size_t done = 0;
    for (const compute::ArenaPart& part : parts) {
      const std::size_t blocks = compute::norm_blocks({&part, 1});
      block_norms_in_parallel(part.values, part.range.begin, std::span(sums).subspan(done, blocks));
      done += blocks;
    }
    return sums;
  }

  void on_threads(int count, const std::function<void(int)>& work) override {
    const ThreadCount scope(threads_);
    std::mutex mutex;
    std::exception_ptr failure;
    parallel_tasks(to_size(count), [&](std::size_t i, std::size_t) {
      try {
        work(to_int(i));
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
    if (failure) std::rethrow_exception(failure);
  }

  void add_products(const compute::Factors& factors, std::span<const Array> chunks, Range part,
                    const Array& sum) override {
    const ThreadCount scope(threads_);
    add_products_in_parallel(best_instruction_set(), factors, chunks, part, sum);
  }

  compute::Limits measure_limits(const compute::Together& together) override {
    return measure_machine(threads_, together);
  }

 private:
  /// Barriers of the library count on the threads that were asked for.
  [[noreturn]] void refuse_small_team(int given) const {
    fail(ExitCode::usage,
         "OpenMP gives this process " + std::to_string(given) + " of the " +
             std::to_string(threads_) +
             " threads that it is to compute on (oneDNN would wait for the others for ever); unset "
             "OMP_THREAD_LIMIT and OMP_MAX_ACTIVE_LEVELS, or use --threads " +
             std::to_string(given));
  }
  void check_bf16() const {
    if (!kernels_.bf16 || supports_bf16()) return;
    fail(ExitCode::usage,
         "--precision bf16: this CPU has no instructions for 16-bit brain floats (AVX512-BF16), or "
         "ONEDNN_MAX_CPU_ISA forbids them, and without them they are slower than floats; leave it "
         "out");
  }

  int threads_;
  KernelChoice kernels_;
  compute::BackendFacts facts_;
};

}  // namespace

std::unique_ptr<compute::Backend> make_cpu_backend(int threads, const KernelChoice& kernels) {
  return std::make_unique<CpuBackend>(threads, kernels);
}

bool cpu_backend_available() { return true; }
bool cpu_backend_has_bf16() { return supports_bf16(); }

std::string cpu_library_versions() {
  const std::string narrow = supports_amx()    ? " with bf16 and AMX"
                             : supports_bf16() ? " with bf16"
                                               : "";
  return fmt::format("{} for {}{}, own kernels {}", library_version(),
                     name_of(best_instruction_set()), narrow, kKernelsVersion);
}

}  // namespace cputrain::cpu
