#include "backends/cpu/dnnl_primitives.h"

#include <cassert>
#include <new>
#include <optional>
#include <string_view>

#include "backends/cpu/kernels/instruction_set.h"
#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cpu {
namespace {

using dnnl::memory;
using dnnl::prop_kind;
using Dims = memory::dims;
constexpr auto kFloat = NumberType::f32;
constexpr auto kNarrow = NumberType::bf16;

/// Runs library code and turns its exceptions into ours.
template <class F>
auto checked(const char* what, const F& f) {
  try {
    return f();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    fail(ExitCode::internal, std::string("oneDNN: ") + what + ": " + error.what() +
                                 " (the layer cannot run); try --backend reference");
  }
}

dnnl::primitive_attr attributes(PostOp post_op = PostOp::none) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (post_op == PostOp::relu) {
    dnnl::post_ops ops;
#if DNNL_VERSION_MAJOR >= 3
    ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
#else
    ops.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
#endif
    attr.set_post_ops(ops);
  }
  return attr;
}

template <class PrimitiveDesc>
Operation describe(const PrimitiveDesc& desc, dnnl::primitive primitive) {
  Operation operation;
  operation.primitive = std::move(primitive);
  operation.implementation = desc.impl_info_str();
  operation.scratchpad = desc.scratchpad_desc().get_size();
  return operation;
}

/// Types of the numbers of what takes part in a convolution, or of its gradient.
struct NumberTypes {
  NumberType src, weights, dst;
};

/// In one direction: factors may be narrow, what comes out is of the map's numbers.
NumberTypes types_in(Direction direction, ConvolutionAlgorithm algorithm,
                     const ConvolutionProblem& p) {
  if (algorithm != ConvolutionAlgorithm::bf16) return {kFloat, kFloat, kFloat};
  switch (direction) {
    case Direction::forward:
      return {kNarrow, kNarrow, p.dst_numbers};
    case Direction::backward_data:
      return {p.src_numbers, kNarrow, kNarrow};
    default:
      return {kNarrow, kFloat, kNarrow};
  }
}

/// What is asked of the library: an algorithm, and how the maps lie.
struct Wish {
  ConvolutionAlgorithm algorithm;
  bool channels_last = false;
};

/// The pieces that every direction of a convolution is described by.
struct ConvolutionDescs {
  ConvolutionDescs(const ConvolutionProblem& p, Direction direction, const Wish& wish) {
    const NumberTypes types = types_in(direction, wish.algorithm, p);
    const auto map = wish.channels_last ? channels_last_desc : activation_desc;
    src = map(p.src, p.images, types.src);
    weights = {kernel_dims(p.src.shape.channels, p.dst.shape.channels, p.kernel, p.groups),
               types.weights, memory::format_tag::any};
    if (p.bias) bias = vector_desc(p.dst.shape.channels);
    dst = map(p.dst, p.images, types.dst);
    strides = {p.stride, p.stride};
    before = {p.rows.before, p.columns.before};
    after = {p.rows.after, p.columns.after};
  }

  memory::desc src, weights, bias, dst;
  Dims strides, before, after;
};

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc forward_desc(const DnnlContext& context,
                                                       const ConvolutionProblem& problem,
                                                       const Wish& wish, PostOp post_op) {
  const ConvolutionDescs d(problem, Direction::forward, wish);
#if DNNL_VERSION_MAJOR >= 3
  return {context.engine,
          prop_kind::forward_training,
          kDirect,
          d.src,
          d.weights,
          d.bias,
          d.dst,
          d.strides,
          d.before,
          d.after,
          attributes(post_op)};
#else
  return {{prop_kind::forward_training, kDirect, d.src, d.weights, d.bias, d.dst, d.strides,
           d.before, d.after},
          attributes(post_op),
          context.engine};
#endif
}

/// `weights`: in the layout that the library chose.
template <class PrimitiveDesc>
Operation describe_convolution(const PrimitiveDesc& desc, dnnl::primitive primitive,
                               const ConvolutionDescs& maps, const memory::desc& weights) {
  Operation operation = describe(desc, std::move(primitive));
  operation.src = maps.src;
  operation.weights = weights;
  operation.dst = maps.dst;
  return operation;
}

Operation make_forward(const DnnlContext& context, const ConvolutionProblem& problem,
                       const Wish& wish, PostOp post_op) {
  const ConvolutionDescs d(problem, Direction::forward, wish);
  const auto desc = forward_desc(context, problem, wish, post_op);
  return describe_convolution(desc, dnnl::convolution_forward(desc), d, desc.weights_desc());
}

Operation make_backward_data(const DnnlContext& context, const ConvolutionProblem& problem,
                             const Wish& wish) {
  const ConvolutionDescs d(problem, Direction::backward_data, wish);
  const auto forward = forward_desc(context, problem, wish, PostOp::none);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::convolution_backward_data::primitive_desc desc(context.engine, kDirect, d.src,
                                                             d.weights, d.dst, d.strides, d.before,
                                                             d.after, forward, attributes());
#else
  const dnnl::convolution_backward_data::primitive_desc desc(
      {kDirect, d.src, d.weights, d.dst, d.strides, d.before, d.after}, attributes(),
      context.engine, forward);
#endif
  return describe_convolution(desc, dnnl::convolution_backward_data(desc), d, desc.weights_desc());
}

Operation make_backward_weights(const DnnlContext& context, const ConvolutionProblem& problem,
                                const Wish& wish) {
  const ConvolutionDescs d(problem, Direction::backward_weights, wish);
  const auto forward = forward_desc(context, problem, wish, PostOp::none);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::convolution_backward_weights::primitive_desc desc(
      context.engine, kDirect, d.src, d.weights, d.bias, d.dst, d.strides, d.before, d.after,
      forward, attributes());
#else
  const dnnl::convolution_backward_weights::primitive_desc desc(
      {kDirect, d.src, d.weights, d.bias, d.dst, d.strides, d.before, d.after}, attributes(),
      context.engine, forward);
#endif
  return describe_convolution(desc, dnnl::convolution_backward_weights(desc), d,
                              desc.diff_weights_desc());
}

/// What to try, best first. AMX multiplies tiles of a pixel's channels by neighbouring pixels: the
/// library's kernels for it read and write channels-last. Kernels that are wider than their maps
/// (3x3 on 2x2 pixels, for the weights' gradients; 13x13 on 6x6 in every direction) have only plain
/// loops in blocks of channels; channels-last they are a product of matrices.
std::vector<Wish> wishes(ConvolutionAlgorithm algorithm) {
  constexpr auto kFloats = ConvolutionAlgorithm::direct;
  std::vector<Wish> list;
  if (algorithm == ConvolutionAlgorithm::bf16 && supports_amx()) list.push_back({algorithm, true});
  if (algorithm != kFloats) list.push_back({algorithm});
  list.push_back({kFloats});
  list.push_back({kFloats, true});
  return list;
}

bool named(const Operation& operation, std::string_view part) {
  return operation.implementation.find(part) != std::string::npos;
}

/// The library may have other kernels: plain loops, a hundred times slower, and bf16 channels-last
/// without AMX, for which maps need not be copied.
bool as_wished(const Operation& operation, const Wish& wish) {
  if (operation.implementation.starts_with("ref")) return false;
  return !operation.bf16 || !wish.channels_last || named(operation, "amx");
}

/// The library's operation for a wish. It refuses by an error, or by choosing another kernel. Where
/// a kernel's code cannot reach from one row of a very large map to the next, it fails to make it.
template <class Make>
std::optional<Operation> granted(const Wish& wish, const Make& make) {
  try {
    Operation operation = make(wish);
    operation.bf16 = wish.algorithm == ConvolutionAlgorithm::bf16;
    if (as_wished(operation, wish)) return operation;
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented && error.status != dnnl_runtime_error) throw;
  }
  return std::nullopt;
}

template <class Make>
Operation with_fallback(const char* what, ConvolutionAlgorithm algorithm, const Make& make) {
  return checked(what, [&] {
    for (const Wish& wish : wishes(algorithm)) {
      if (auto operation = granted(wish, make)) return *operation;
    }
    return make({ConvolutionAlgorithm::direct});
  });
}

dnnl::pooling_forward::primitive_desc pool_desc(const DnnlContext& context, const PoolProblem& p,
                                                PoolKind kind, bool training) {
  const auto algorithm = kind == PoolKind::max ? dnnl::algorithm::pooling_max
                                               : dnnl::algorithm::pooling_avg_exclude_padding;
  const auto prop = training ? prop_kind::forward_training : prop_kind::forward_inference;
  const auto src = activation_desc(p.src, p.images, p.numbers),
             dst = activation_desc(p.dst, p.images, p.numbers);
  const Dims strides{p.stride, p.stride}, window{p.height, p.width};
  const Dims before{p.rows.before, p.columns.before}, after{p.rows.after, p.columns.after};
#if DNNL_VERSION_MAJOR >= 3
  return {context.engine, prop,       algorithm, src,   dst,         strides,
          window,         Dims{0, 0}, before,    after, attributes()};
#else
  return {
      {prop, algorithm, src, dst, strides, window, before, after}, attributes(), context.engine};
#endif
}

}  // namespace

// The first product makes the library's code for all: megabytes that are held from then on.
DnnlContext make_dnnl_context() {
  return checked("starting", [] {
    float zeros[64]{}, product[64];
    multiply({false, false, 8, 8, 8}, zeros, zeros, 0, product);
    dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    return DnnlContext{engine, dnnl::stream(engine)};
  });
}

int preferred_block() { return best_instruction_set() == InstructionSet::avx512 ? 16 : 8; }

Operation convolution_forward(const DnnlContext& context, const ConvolutionProblem& problem,
                              ConvolutionAlgorithm algorithm, PostOp post_op) {
  return with_fallback("convolution, forward", algorithm, [&](const Wish& wish) {
    return make_forward(context, problem, wish, post_op);
  });
}

Operation convolution_backward_data(const DnnlContext& context, const ConvolutionProblem& problem,
                                    ConvolutionAlgorithm algorithm) {
  return with_fallback("convolution, backward data", algorithm, [&](const Wish& wish) {
    return make_backward_data(context, problem, wish);
  });
}

Operation convolution_backward_weights(const DnnlContext& context,
                                       const ConvolutionProblem& problem,
                                       ConvolutionAlgorithm algorithm) {
  return with_fallback("convolution, backward weights", algorithm, [&](const Wish& wish) {
    return make_backward_weights(context, problem, wish);
  });
}

Operation pool_forward(const DnnlContext& context, const PoolProblem& problem, PoolKind kind,
                       bool training) {
  return checked("pooling, forward", [&] {
    const auto desc = pool_desc(context, problem, kind, training);
    Operation operation = describe(desc, dnnl::pooling_forward(desc));
    operation.workspace = desc.workspace_desc();
    return operation;
  });
}

Operation pool_backward(const DnnlContext& context, const PoolProblem& p, PoolKind kind) {
  return checked("pooling, backward", [&] {
    const auto forward = pool_desc(context, p, kind, true);
    const auto algorithm = kind == PoolKind::max ? dnnl::algorithm::pooling_max
                                                 : dnnl::algorithm::pooling_avg_exclude_padding;
    const auto src = activation_desc(p.src, p.images, p.numbers),
               dst = activation_desc(p.dst, p.images, p.numbers);
    const Dims strides{p.stride, p.stride}, window{p.height, p.width};
    const Dims before{p.rows.before, p.columns.before}, after{p.rows.after, p.columns.after};
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::pooling_backward::primitive_desc desc(context.engine, algorithm, src, dst, strides,
                                                      window, Dims{0, 0}, before, after, forward,
                                                      attributes());
#else
    const dnnl::pooling_backward::primitive_desc desc(
        {algorithm, src, dst, strides, window, before, after}, attributes(), context.engine,
        forward);
#endif
    Operation operation = describe(desc, dnnl::pooling_backward(desc));
    operation.workspace = forward.workspace_desc();
    return operation;
  });
}

Operation reorder(const DnnlContext& context, const memory::desc& from, const memory::desc& to) {
  return checked("reorder", [&] {
    const dnnl::reorder::primitive_desc desc(context.engine, from, context.engine, to,
                                             attributes());
    return describe(desc, dnnl::reorder(desc));
  });
}

memory::desc activation_desc(const compute::SampleLayout& layout, int images, NumberType type) {
  const Dims dims{images, layout.shape.channels, layout.shape.height, layout.shape.width};
  const auto tag = layout.block == 16  ? memory::format_tag::nChw16c
                   : layout.block == 8 ? memory::format_tag::nChw8c
                                       : memory::format_tag::nchw;
  return {dims, type, tag};
}

memory::desc channels_last_desc(const compute::SampleLayout& layout, int images, NumberType type) {
  const Dims dims{images, layout.shape.channels, layout.shape.height, layout.shape.width};
  return {dims, type, memory::format_tag::nhwc};
}

memory::desc blocked_kernel_desc(const compute::SampleLayout& src, const compute::SampleLayout& dst,
                                 int kernel) {
  using Tag = memory::format_tag;
  return {Dims{dst.shape.channels, src.shape.channels, kernel, kernel}, kFloat,
          src.block == 16 ? Tag::OIhw16i16o : Tag::OIhw8i8o};
}

memory::desc image_kernel_desc(const compute::SampleLayout& dst) {
  using Tag = memory::format_tag;
  return {Dims{dst.shape.channels, 3, 3, 3}, kFloat, dst.block == 16 ? Tag::Ohwi16o : Tag::Ohwi8o};
}

memory::desc vector_desc(int size) { return {Dims{size}, kFloat, memory::format_tag::a}; }

Dims kernel_dims(int in, int out, int kernel, int groups) {
  if (groups == 1) return {out, in, kernel, kernel};
  return {groups, out / groups, in / groups, kernel, kernel};
}

Call::Call(const DnnlContext& context, const Operation& operation, void* scratchpad,
           const std::vector<Argument>& arguments)
    : primitive_(operation.primitive), stream_(context.stream.get()), own_(operation.own) {
  if (own_) {
    for (const Argument& a : arguments) own_data_[a.name] = a.data;
    own_data_[DNNL_ARG_SCRATCHPAD] = scratchpad;
    return;
  }
  const auto add = [&](int name, const memory::desc& desc, void* data) {
    memory_.push_back(
        checked("binding memory", [&] { return memory(desc, context.engine, data); }));
    arguments_.push_back({name, memory_.back().get()});
  };
  for (const Argument& a : arguments) add(a.name, a.desc, a.data);
  if (operation.scratchpad > 0) {
    assert(scratchpad);
    const memory::desc bytes(Dims{static_cast<memory::dim>(operation.scratchpad)},
                             memory::data_type::u8, memory::format_tag::a);
    add(DNNL_ARG_SCRATCHPAD, bytes, scratchpad);
  }
}

void Call::run() const {
  if (own_) return own_(own_data_);
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream_,
                                                      to_int(arguments_.size()), arguments_.data());
  if (status != dnnl_success) {
    fail(ExitCode::internal, "oneDNN: a primitive failed with status " + std::to_string(status) +
                                 " (the step is lost); try --backend reference");
  }
}

void multiply(const MatrixProduct& p, const float* a, const float* b, float beta, float* c) {
  const auto dim = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
  const std::size_t row_a = p.row_a > 0 ? p.row_a : p.transpose_a ? p.m : p.k;
  const std::size_t row_c = p.row_c > 0 ? p.row_c : p.n;
  const dnnl_status_t status =
      dnnl_sgemm(p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N', dim(p.m), dim(p.n), dim(p.k),
                 1.0f, a, dim(row_a), b, dim(p.transpose_b ? p.k : p.n), beta, c, dim(row_c));
  if (status != dnnl_success) {
    fail(ExitCode::internal, "oneDNN: sgemm failed with status " + std::to_string(status) +
                                 " (the step is lost); try --backend reference");
  }
}

}  // namespace cputrain::cpu
