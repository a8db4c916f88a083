#pragma once

#include "backends/cuda/kernels/convolution_operands.h"

/// The matrix products of a convolution, for gemm.h: part(z) says what blocks whose z is this one
/// compute, and A and B are the operands that gather it.
namespace cputrain::cuda {

/// A result whose rows lie in order.
template <class A, class B>
struct OrderedPart {
  int rows, columns, depth;
  A a;
  B b;

  CPUTRAIN_DEVICE std::size_t place(int row) const { return static_cast<std::size_t>(row); }
};

/// dst[window][output channel] = sum over taps
template <class Element>
struct ForwardProblem {
  template <class Precision, int kRows, int kThreads>
  using A = WindowRows<Precision, kRows, kThreads>;
  template <class Precision, int kRows, int kThreads>
  using B = MatrixRows<Precision, kRows, kThreads>;
  using Part = OrderedPart<MapWindows<Element>, Matrix<Element>>;

  WindowShape shape;
  const Element* src;
  const Element* weights;

  CPUTRAIN_DEVICE Part part(int) const {
    const int taps = shape.taps(), channels = shape.dst.channels;
    return {
        shape.windows(), channels, taps, {windows_on_src(shape), src}, {channels, taps, weights}};
  }
};

/// diff_src[position][input channel] = sum over the taps that cover it, and output channels. A part
/// for each class of positions.
template <class Element>
struct DataProblem {
  template <class Precision, int kRows, int kThreads>
  using A = WindowRows<Precision, kRows, kThreads>;
  template <class Precision, int kRows, int kThreads>
  using B = WeightColumns<Precision, kRows, kThreads>;

  struct Part {
    int rows, columns, depth;
    MapWindows<Element> a;
    ClassWeights<Element> b;
    WindowShape shape;
    PositionClasses classes;

    CPUTRAIN_DEVICE std::size_t place(int row) const { return classes.position(shape, row); }
  };

  WindowShape shape;
  const Element* diff_dst;
  const Element* weights;

  CPUTRAIN_DEVICE Part part(int number) const {
    const PositionClasses classes = PositionClasses::of(shape, number);
    const WindowGrid grid = classes.windows_on_dst(shape);
    return {grid.windows(),
            shape.src.channels,
            grid.taps(),
            {grid, diff_dst},
            {shape.dst.channels, shape.src.channels, grid.tap_rows, grid.tap_columns,
             classes.row_phase, classes.column_phase, shape.stride, shape.size, weights},
            shape,
            classes};
  }
};

/// diff_weights[output channel][tap] = sum over windows
template <class Element>
struct WeightsProblem {
  template <class Precision, int kRows, int kThreads>
  using A = MatrixColumns<Precision, kRows, kThreads>;
  template <class Precision, int kRows, int kThreads>
  using B = WindowColumns<Precision, kRows, kThreads>;
  using Part = OrderedPart<Matrix<Element>, MapWindows<Element>>;

  WindowShape shape;
  const Element* src;
  const Element* diff_dst;

  CPUTRAIN_DEVICE Part part(int) const {
    const int windows = shape.windows(), channels = shape.dst.channels;
    return {channels,
            shape.taps(),
            windows,
            {windows, channels, diff_dst},
            {windows_on_src(shape), src}};
  }
};

}  // namespace cputrain::cuda
