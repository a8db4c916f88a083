#pragma once

#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/products/gemm_slices.h"

/// Epilogues: what a lane does with sums of its columns, which lie in shared memory behind the main
/// loop, or are those of all slices (split-K). An epilogue's parameters are a type of
/// gemm_slices.h; Epilogue of that type has
///   Sums               so many neighbours
///   Epilogue(p, c)     loads what all rows share from column c on
///   store(sums, at)    at number `at` of the result; returns what it rounded
namespace cputrain::cuda {

template <class Parameters, int kCount = kNumbersOfChunk<typename Parameters::Numbers>>
class Epilogue;

/// Rounds once, when all is added.
template <class N, int kCount>
class Epilogue<BiasAndAdd<N>, kCount> {
 public:
  using Sums = Pack<N, kCount>;

  CPUTRAIN_DEVICE Epilogue(const BiasAndAdd<N>& parameters, std::int64_t column)
      : to_(parameters), bias_(to_.bias ? Sums::of_floats(to_.bias + column) : Sums::all(0)) {}

  CPUTRAIN_DEVICE Sums store(const Sums& sums, std::int64_t at) const {
    const Sums made = result(sums, at);
    made.store(to_.values + at);
    return made;
  }

 protected:
  CPUTRAIN_DEVICE Sums result(Sums sums, std::int64_t at) const {
    sums += bias_;
    if (to_.added) sums += Sums::load(to_.added + at);
    return sums;
  }

 private:
  const BiasAndAdd<N>& to_;
  Sums bias_;
};

/// f(parameters of the epilogue of a slice's sums): the product's own if it is the only one, with
/// sums of columns where they are wanted, else they are stored as floats, for add_slices().
template <class Parameters, class F>
CPUTRAIN_DEVICE void with_epilogue(const GemmResult<Parameters>& result, int slice, int slices,
                                   const F& f) {
  using Plain = BiasAndAdd<typename Parameters::Numbers>;
  if constexpr (Parameters::kSums) {
    if (result.epilogue.sums.values) return f(result.epilogue);
  }
  float* const partials = result.partials + slice * result.numbers;
  const Plain& own = result.epilogue;
  if constexpr (std::is_same_v<Plain, BiasAndAdd<ExactNumbers>>) {
    // Both are of one type, so one piece of code does for them.
    const bool whole = slices == 1;
    f(Plain{whole ? own.values : partials, whole ? own.bias : nullptr,
            whole ? own.added : nullptr});
  } else if (slices > 1) {
    f(BiasAndAdd<ExactNumbers>{partials});
  } else {
    f(own);
  }
}

}  // namespace cputrain::cuda
