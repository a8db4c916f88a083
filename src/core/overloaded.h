#pragma once

namespace cputrain {

/// For std::visit with one lambda a type.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace cputrain
