#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/convolution/convolution_choice.h"
#include "backends/cpu/convolution/convolution_place.h"

namespace cputrain::cpu {

/// A block's convolution for one number of images.
struct ConvolutionOperations {
  ConvolutionProblem problem;
  Operation forward, backward_data, backward_weights;
  const Operation& in(Direction) const;
};

/// Copies of the kernel in layouts that some primitives want and the arena does not have: of floats
/// where a direct backward-data convolution asks for it, or one of maps that lie channels-last.
class KernelCopies {
 public:
  KernelCopies(const dnnl::memory::desc& arena_layout, int time)
      : arena_layout_(arena_layout), time_(time) {}

  /// Index of the copy in this layout, made when first asked for; none if the arena has it.
  std::optional<std::size_t> copy_for(const Planning&, const dnnl::memory::desc&);
  void bind(const DnnlBindings&, float* arena_kernel);
  /// The kernel in the layout of copy `index`, or in the arena.
  float* kernel(std::optional<std::size_t> index) const;
  void refresh(std::size_t index) const { copies_[index].call.run(); }

 private:
  struct Copy {
    dnnl::memory::desc layout;
    compute::MemoryPlan::Block block;
    Operation reorder;
    float* data;
    Call call;
  };
  dnnl::memory::desc arena_layout_;
  int time_;
  float* arena_kernel_ = nullptr;
  std::vector<Copy> copies_;
};

ConvolutionProblem problem_of(const ConvolutionPlace&, int images);

/// Those of an activation and of its gradient.
NumberType numbers_of(const Activation&);

/// Whether Winograd pays in any direction, by the rule, for so many images.
bool winograd_pays(const ConvolutionPlace&, int images);

/// Whether the library has kernels of narrow factors in any direction.
bool has_bf16(const Planning&, const ConvolutionPlace&, int images);

/// `method` is not sparse. With winograd a direction is direct where winograd_pays() refuses it.
ConvolutionOperations make_operations(const Planning&, const ConvolutionPlace&, int images,
                                      ConvolutionMethod);

/// Copies a piece of a map, or of its gradient, between how it lies in ours (blocked, floats or
/// bf16) and what a primitive reads or writes: the other numbers, or channels-last.
class MapCopy {
 public:
  MapCopy(const compute::SampleLayout& layout, NumberType numbers)
      : layout_(layout), numbers_(numbers) {}

  /// Whether a piece of so many images must be copied into the wanted form.
  bool needed(int images, const dnnl::memory::desc& wanted) const;
  /// Plans memory for a copy in the wanted form, the largest of those that are planned, at this
  /// time. None where none is needed.
  void plan(const Planning&, int images, const dnnl::memory::desc& wanted, int time);
  /// What a primitive is given for a piece that lies at `ours`: the copy, or that itself.
  Call::Argument argument(const DnnlBindings&, int name, int images,
                          const dnnl::memory::desc& wanted, void* ours) const;
  /// What fills the copy from the piece, and the piece from the copy; nothing where there is none.
  Call fill(const DnnlBindings&, int images, const dnnl::memory::desc& wanted, void* ours) const;
  Call drain(const DnnlBindings&, int images, const dnnl::memory::desc& wanted, void* ours) const;
  /// Where copies are made; only where one was planned.
  std::byte* data(const DnnlBindings&) const;

 private:
  compute::SampleLayout layout_;
  NumberType numbers_;
  std::optional<compute::MemoryPlan::Block> block_;
};

}  // namespace cputrain::cpu
