#include "composition/services.h"

#include <algorithm>
#include <variant>

#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/reference/reference_backend.h"

namespace cputrain::composition {
namespace {

constexpr const char *kNoWinograd = "no-winograd", *kNoSkipZeros = "no-skip-zeros",
                     *kNoTiles = "no-tiles", *kNoGraph = "no-graph";

std::unique_ptr<compute::Backend> make_cpu(const training::BackendRequest& request) {
  using Tiles = cpu::KernelChoice::Tiles;
  const bool bf16 = request.precision == Precision::bf16;
  const bool tiles = !request.options.contains(kNoTiles);
  const bool floats = request.precision == Precision::f32 && !request.reproducible;
  return cpu::make_cpu_backend(request.threads,
                               {.winograd = !request.options.contains(kNoWinograd),
                                .skip_zeros = !request.options.contains(kNoSkipZeros),
                                .bf16 = bf16,
                                .tiles = bf16 && tiles ? Tiles::hardware : Tiles::none,
                                .float_tiles = floats && tiles ? Tiles::hardware : Tiles::none,
                                .measure = !request.reproducible});
}

/// Winograd's algorithm is for these, and rounds what exact cases need.
bool has_plain_3x3(const selftest::LayerCase& c) {
  return !c.exact && std::ranges::any_of(c.graph.nodes(), [](const model::Graph::Node& node) {
    const auto* layer = std::get_if<model::Convolution>(&node.layer);
    return layer && layer->kernel == 3 && layer->stride == 1;
  });
}
/// Zeros come from these.
bool has_zeros(const selftest::LayerCase& c) { return c.exact; }

ListedBackend cpu_backend() {
  return {
      .choice = {.name = "cpu",
                 // On a CPU `exact` is what `float` is there.
                 .precisions = {Precision::f32, Precision::exact, Precision::bf16},
                 .built = cpu::cpu_backend_available(),
                 .options = {{kNoWinograd,
                              "compute 3x3 convolutions directly, which is slower and rounds "
                              "less"},
                             {kNoSkipZeros, "compute with zeros of activations and gradients, too"},
                             {kNoTiles,
                              "compute without own AMX kernels, also on CPUs that have it"}}},
      .make = make_cpu,
      .own = {.ways = {{"", {kNoWinograd, kNoSkipZeros}},
                       {"Winograd", {kNoSkipZeros}, 1e-4, has_plain_3x3},
                       {"zeros skipped", {kNoWinograd}, 1e-5, has_zeros}}}};
}

/// bf16 is for comparisons with a backend that rounds: here nothing but the factors is rounded.
std::unique_ptr<compute::Backend> make_reference(const training::BackendRequest& request) {
  if (request.precision != Precision::bf16) {
    return reference::make_reference_backend(dtype_of(request.precision));
  }
  return reference::make_reference_backend(DType::f64, reference::Factors::bf16);
}

/// How a GPU stores numbers: `float` there is TF32.
cuda::Numbers numbers_of(Precision precision) {
  if (precision == Precision::bf16) return cuda::Numbers::bf16;
  return precision == Precision::exact ? cuda::Numbers::exact : cuda::Numbers::tf32;
}

ListedBackend cuda_backend() {
  const bool built = cuda::cuda_plugin_built();
  std::string lack;
  if (!built) lack = compute::no_device_text("cuda", cuda::cuda_devices());
  return {
      .choice = {.name = "cuda",
                 .precisions = {Precision::exact, Precision::f32, Precision::bf16},
                 .built = built,
                 .lack = lack,
                 .options = {{kNoGraph,
                              "enqueue each kernel of a step by itself, not as a CUDA graph, and "
                              "try no tiles; for finding mistakes. --profile and bench never make "
                              "graphs"}}},
      .make =
          [](const training::BackendRequest& request) {
            const bool graphs = !request.options.contains(kNoGraph);
            const bool measures = graphs && !request.reproducible && !request.brief;
            return cuda::make_cuda_backend({.device = request.device,
                                            .ranks_on_device = request.ranks_on_device,
                                            .numbers = numbers_of(request.precision),
                                            .captures = graphs,
                                            .measures = measures});
          },
      .devices = cuda::cuda_devices,
      .own = {.rounded = {{Precision::f32, {"tf32", 0x1p-11}}, {Precision::bf16, {"bf16", 0x1p-8}}},
              .cases = cuda::run_kernel_cases}};
}

}  // namespace

std::vector<ListedBackend> backend_list() {
  return {cpu_backend(),
          {{"reference", {Precision::f32, Precision::exact, Precision::f64}}, make_reference},
          cuda_backend()};
}

}  // namespace cputrain::composition
