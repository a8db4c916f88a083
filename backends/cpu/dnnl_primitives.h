#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "compute/executor/memory_plan.h"
#include "model/layer.h"

/// Everything that differs between oneDNN's versions 2 and 3, and the one checked way into the
/// library: its errors leave here as Error(internal).
namespace cputrain::cpu {

struct DnnlContext {
  dnnl::engine engine;
  dnnl::stream stream;
};
DnnlContext make_dnnl_context();

/// Channels in a block of the layout that the library's kernels like on this CPU: 16 or 8.
int preferred_block();

using NumberType = dnnl::memory::data_type;

/// Where the arguments of a call lie, by name; the scratchpad is one of them.
using CallData = std::map<int, void*>;

/// A primitive that was created, or a kernel of ours, and what it wants to be given.
struct Operation {
  dnnl::primitive primitive;
  std::function<void(const CallData&)> own;  ///< runs instead of the primitive, if not empty
  std::string implementation;                ///< the library's words, "jit:avx512_core", or ours
  dnnl::memory::desc weights;                ///< convolution: of weights or their gradients
  dnnl::memory::desc src, dst;               ///< convolution: of the maps or their gradients
  dnnl::memory::desc workspace;              ///< max pool, training: where the winners are noted
  std::size_t scratchpad = 0;                ///< bytes
  bool bf16 = false;                         ///< convolution: its factors (maps, weights) are bf16
};

enum class Direction { forward, backward_data, backward_weights };

struct ConvolutionProblem {
  int images;
  compute::SampleLayout src, dst;
  int kernel, stride;
  model::PadAmount rows, columns;
  bool bias;
  NumberType src_numbers = NumberType::f32, dst_numbers = NumberType::f32;  ///< the maps'
  int groups = 1;
};
/// direct: of floats. bf16: of factors that are rounded to 16-bit brain floats; products are added
/// as floats, and what comes out is of the problem's numbers, gradients of weights are floats.
enum class ConvolutionAlgorithm { direct, bf16 };
enum class PostOp { none, relu };

/// The library chooses the layout of the weights. Maps lie as the problem asks, or channels-last
/// where the library multiplies bf16 in tiles (AMX) or has no other fast kernel: see `src` and
/// `dst` of the operation. Where the library has no kernel for the problem by the algorithm that is
/// asked for, the operation is a direct one of floats.
Operation convolution_forward(const DnnlContext&, const ConvolutionProblem&, ConvolutionAlgorithm,
                              PostOp);
Operation convolution_backward_data(const DnnlContext&, const ConvolutionProblem&,
                                    ConvolutionAlgorithm);
Operation convolution_backward_weights(const DnnlContext&, const ConvolutionProblem&,
                                       ConvolutionAlgorithm);

struct PoolProblem {
  int images;
  compute::SampleLayout src, dst;
  int height, width;  ///< a window's
  int stride;
  model::PadAmount rows, columns;
  NumberType numbers = NumberType::f32;
};
enum class PoolKind { max, average };

/// For training the winners of a max pool are kept in a workspace.
Operation pool_forward(const DnnlContext&, const PoolProblem&, PoolKind, bool training);
Operation pool_backward(const DnnlContext&, const PoolProblem&, PoolKind);

/// Copies weights or maps from one layout to another, and from one type of number to another.
Operation reorder(const DnnlContext&, const dnnl::memory::desc& from, const dnnl::memory::desc& to);

dnnl::memory::desc activation_desc(const compute::SampleLayout&, int images,
                                   NumberType = NumberType::f32);
/// Without padding: a pixel's channels side by side.
dnnl::memory::desc channels_last_desc(const compute::SampleLayout&, int images,
                                      NumberType = NumberType::f32);
dnnl::memory::desc vector_desc(int size);
/// A kernel as [out / b][in / b][tap][b in][b out] (OIhw16i16o), b being the maps' block.
dnnl::memory::desc blocked_kernel_desc(const compute::SampleLayout& src,
                                       const compute::SampleLayout& dst, int kernel = 3);
/// One of an image's three colours, as [out / b][tap][colour][b out] (Ohwi16o).
dnnl::memory::desc image_kernel_desc(const compute::SampleLayout& dst);
/// Extents of a kernel: out, in, height, width; of several groups each, behind their number.
dnnl::memory::dims kernel_dims(int in, int out, int kernel, int groups);

/// An operation with its memory: running it allocates nothing.
class Call {
 public:
  struct Argument {
    int name;  ///< DNNL_ARG_SRC and so on
    dnnl::memory::desc desc;
    void* data;
  };
  Call() = default;
  Call(const DnnlContext&, const Operation&, void* scratchpad,
       const std::vector<Argument>& arguments);

  void run() const;
  explicit operator bool() const { return own_ || !arguments_.empty(); }

 private:
  dnnl::primitive primitive_;
  dnnl_stream_t stream_ = nullptr;
  std::vector<dnnl::memory> memory_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::function<void(const CallData&)> own_;
  CallData own_data_;
};

/// C (m x n) = op(A) (m x k) * op(B) (k x n) + beta * C; all row by row.
struct MatrixProduct {
  bool transpose_a, transpose_b;
  std::size_t m, n, k;
  /// Numbers from one row of A, and of C, to the next; 0: no gaps.
  std::size_t row_a = 0, row_c = 0;
};
void multiply(const MatrixProduct&, const float* a, const float* b, float beta, float* c);

}  // namespace cputrain::cpu
