// PowerSGD: a gradient matrix M travels as two thin factors, found by one step of subspace
// iteration that starts from those of the step before. P = M Q, summed and made orthonormal, then
// Q = M^T P, summed; the sum is P Q^T. What a rank's own P Q^T lacks of its M is added to its
// gradient of the next step. Vogels, Karimireddy and Jaggi, arXiv 1905.13727, algorithms 1 and 2.
//
// A parameter of two or more extents is a matrix as the backend stores it
// (compute/parameters/parameters.h): its columns are the last extent or all others, its rows in
// whatever order. Of a range that cuts a parameter, whole panels form the matrix, or whole rows
// where there is one panel. Vectors, matrices too small to gain, and what is left over travel as
// they are.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/random/random.h"
#include "exchange/compression/compression.h"
#include "system/pages.h"

namespace cputrain::exchange {
namespace {

// Products of a matrix with a few columns. Matrices M are row by row; factors P (rows x rank) and Q
// (columns x rank) column by column. Plain loops, the same bits on every rank.

/// In partial sums, so that the loop is vectorised.
template <class T>
T dot(const T* a, const T* b, std::size_t n) {
  constexpr std::size_t kLanes = 16;
  T sums[kLanes]{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  T sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const T part : sums) sum += part;
  return sum;
}

/// y += factor * x.
template <class T>
void add_scaled(T* __restrict y, T factor, const T* __restrict x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

template <class T>
void scale(T* x, T factor, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] *= factor;
}

/// Part of a parameter that lies in a range. Columns are a whole number of panels, each of which
/// holds `panel` columns of M row by row.
struct Matrix {
  std::size_t begin;  ///< in the range
  std::size_t rows, columns, panel, rank;
  std::uint32_t parameter = 0;
  std::size_t p = 0, q = 0;  ///< where its factors lie in the arrays that travel

  std::size_t size() const { return rows * columns; }
  std::size_t end() const { return begin + size(); }
  std::size_t p_size() const { return rows * rank; }
  std::size_t q_size() const { return columns * rank; }
  /// For each panel, row and factor: work(element of P, where the row's part begins in M, in Q).
  template <class Work>
  void for_parts(Work work) const {
    for (std::size_t first = 0; first < columns; first += panel) {
      for (std::size_t i = 0; i < rows; ++i) {
        const std::size_t in_m = first * rows + i * panel;
        for (std::size_t k = 0; k < rank; ++k) work(i + k * rows, in_m, first + k * columns);
      }
    }
  }
};

/// P = M Q.
template <class T>
void multiply(const T* m, const T* q, T* p, const Matrix& matrix) {
  std::fill_n(p, matrix.p_size(), T{0});
  matrix.for_parts([&](std::size_t in_p, std::size_t in_m, std::size_t in_q) {
    p[in_p] += dot(m + in_m, q + in_q, matrix.panel);
  });
}

/// Q = M^T P.
template <class T>
void multiply_transposed(const T* m, const T* p, T* q, const Matrix& matrix) {
  std::fill_n(q, matrix.q_size(), T{0});
  matrix.for_parts([&](std::size_t in_p, std::size_t in_m, std::size_t in_q) {
    add_scaled(q + in_q, p[in_p], m + in_m, matrix.panel);
  });
}

/// M += sign P Q^T.
template <class T>
void add_product(T* m, T sign, const T* p, const T* q, const Matrix& matrix) {
  matrix.for_parts([&](std::size_t in_p, std::size_t in_m, std::size_t in_q) {
    add_scaled(m + in_m, sign * p[in_p], q + in_q, matrix.panel);
  });
}

/// Makes the columns orthonormal by the modified Gram-Schmidt process, twice over each ("twice is
/// enough"). A column that depends on those before it becomes zero: its direction would be that of
/// rounding errors. NaN spreads.
template <class T>
void orthonormalise(T* p, std::size_t rows, std::size_t rank) {
  constexpr T kNothing = 100 * std::numeric_limits<T>::epsilon();
  for (std::size_t k = 0; k < rank; ++k) {
    T* const column = p + k * rows;
    const T before = std::sqrt(dot(column, column, rows));
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < k; ++j) {
        add_scaled(column, -dot(p + j * rows, column, rows), p + j * rows, rows);
      }
    }
    const T left = std::sqrt(dot(column, column, rows));
    scale(column, left <= kNothing * before ? T{0} : 1 / left, rows);
  }
}

/// What a range consists of.
struct Parts {
  std::vector<Matrix> matrices;
  std::vector<Range> rest;  ///< in the range
  std::size_t left = 0;     ///< elements of the rest and all P
  std::size_t right = 0;    ///< elements of all Q
};

/// What can be a matrix of a parameter that lies in the range, at least in part.
Matrix matrix_in(Range range, const compute::Parameter& parameter, std::size_t rank) {
  const auto last_extent = static_cast<std::size_t>(parameter.extents.back());
  const std::size_t columns = parameter.columns > 0 ? parameter.columns : last_extent;
  const std::size_t panel = parameter.panel > 0 ? parameter.panel : columns;
  const std::size_t panels = (columns + panel - 1) / panel;
  const std::size_t rows = parameter.range.size() / (panels * panel);
  const std::size_t unit = panels == 1 ? panel : rows * panel;  // what is not cut
  const std::size_t most = panels == 1 ? rows : panels;
  const std::size_t begin = std::max(range.begin, parameter.range.begin) - parameter.range.begin;
  const std::size_t end = std::min(range.end, parameter.range.end) - parameter.range.begin;
  const std::size_t first = (begin + unit - 1) / unit;
  const std::size_t last = std::max(first, std::min(end / unit, most));
  return {.begin = parameter.range.begin + first * unit - range.begin,
          .rows = panels == 1 ? last - first : rows,
          .columns = panels == 1 ? panel : (last - first) * panel,
          .panel = panel,
          .rank = rank};
}

Parts parts_of(Range range, const compute::ParameterLayout& layout, std::size_t rank) {
  Parts parts;
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const compute::Parameter& parameter = layout.parameters[i];
    const bool outside = parameter.range.end <= range.begin || parameter.range.begin >= range.end;
    if (!parameter.learnt || outside || parameter.extents.size() < 2) continue;
    Matrix matrix = matrix_in(range, parameter, rank);
    matrix.parameter = static_cast<std::uint32_t>(i);
    if (matrix.p_size() + matrix.q_size() < matrix.size()) parts.matrices.push_back(matrix);
  }
  std::ranges::sort(parts.matrices, {}, &Matrix::begin);
  std::size_t done = 0;
  const auto add_rest = [&](std::size_t until) {
    if (until > done) parts.rest.push_back({done, until});
    parts.left += until - done;
  };
  for (const Matrix& matrix : parts.matrices) {
    add_rest(matrix.begin);
    done = matrix.end();
  }
  add_rest(range.size());
  for (Matrix& matrix : parts.matrices) {
    matrix.p = std::exchange(parts.left, parts.left + matrix.p_size());
    matrix.q = std::exchange(parts.right, parts.right + matrix.q_size());
  }
  return parts;
}

/// Column k of the first Q of a parameter: the same on all ranks, from -1 to 1.
template <class T>
void draw_column(const Matrix& matrix, std::size_t k, T* column) {
  const RandomStream stream(0, Purpose::compression, matrix.parameter,
                            static_cast<std::uint32_t>(k));
  for (std::size_t j = 0; j < matrix.columns; ++j) {
    const auto words = stream.at(static_cast<std::uint32_t>(j / 4));
    column[j] = static_cast<T>(2 * unit_float(words[j % 4]) - 1);
  }
}

/// Columns of length 1, so that P has the gradient's scale. One that brought nothing begins anew.
template <class T>
void start_from(const Matrix& matrix, T* q) {
  for (std::size_t k = 0; k < matrix.rank; ++k) {
    T* const column = q + k * matrix.columns;
    T length = std::sqrt(dot(column, column, matrix.columns));
    if (length == 0) {
      draw_column(matrix, k, column);
      length = std::sqrt(dot(column, column, matrix.columns));
    }
    scale(column, 1 / length, matrix.columns);
  }
}

template <class T>
class PowerSgdSum final : public GradientSum, public KeptParts {
 public:
  PowerSgdSum(const compute::ParameterLayout& layout, int rank, comm::Channel channel)
      : layout_(layout),
        rank_(static_cast<std::size_t>(rank)),
        unsent_(layout.gradient_size * sizeof(T)),
        channel_(std::move(channel)) {}

  void sum(Range range, const Array& gradients) override {
    State& state = state_of(range);
    const Parts& parts = state.parts;
    T* const sum = gradients.as<T>().data();
    T* const unsent = unsent_from(range.begin);
    if (std::exchange(state.is_new, false)) send_owed_rest(parts, unsent, sum);
    left_.resize(std::max(left_.size(), parts.left));
    right_.resize(std::max(right_.size(), parts.right));

    pack_rest(parts, sum);
    for (const Matrix& m : parts.matrices) {
      add_scaled(unsent + m.begin, T{1}, sum + m.begin, m.end() - m.begin);
      multiply(unsent + m.begin, state.q.data() + m.q, left_.data() + m.p, m);
    }
    channel_.allreduce->sum(Array::of(std::span(left_).first(parts.left)));
    for (const Matrix& m : parts.matrices) {
      orthonormalise(left_.data() + m.p, m.rows, m.rank);
      multiply_transposed(unsent + m.begin, left_.data() + m.p, state.q.data() + m.q, m);
    }
    std::copy_n(state.q.begin(), parts.right, right_.begin());
    channel_.allreduce->sum(Array::of(std::span(right_).first(parts.right)));
    unpack_rest(parts, sum);
    for (const Matrix& m : parts.matrices) rebuild(m, state.q.data() + m.q, sum, unsent);
  }

  double volume(Range range) const override {
    const Parts parts = parts_of(range, layout_, rank_);
    return static_cast<double>((parts.left + parts.right) * sizeof(T));
  }
  std::size_t memory() const override { return unsent_.bytes().size(); }
  std::string name() const override {
    return to_text({.method = Compression::Method::powersgd, .rank = static_cast<int>(rank_)});
  }

  KeptParts* kept_parts() override { return this; }

  Array unsent() override {
    return {unsent_.bytes().data(), unsent_.bytes().size() / sizeof(T), dtype_of<T>()};
  }
  std::vector<compute::ArenaPart> factors() override {
    std::vector<compute::ArenaPart> list;
    for (auto& [range, state] : states_) {
      list.push_back({{range.first, range.second}, Array::of(std::span(state.q))});
    }
    return list;
  }
  void set_factors(Range range, const Array& values) override {
    State& state = state_of(range);
    if (values.size == state.q.size()) std::ranges::copy(values.as<T>(), state.q.begin());
  }
  void forget() override {
    for_unsent([](std::span<T> matrix) { std::ranges::fill(matrix, T{0}); });
    states_.clear();
  }
  void forget_nonfinite() override {
    for_unsent([](std::span<T> matrix) { clear_nonfinite(matrix); });
    for (auto& [range, state] : states_) {
      if (std::ranges::all_of(state.q, [](T value) { return std::isfinite(value); })) continue;
      begin_anew(state);
    }
  }

 private:
  /// A range's parts, and the Q that the next step starts from.
  struct State {
    Parts parts;
    std::vector<T> q;
    bool is_new = true;  ///< no sum of it was formed
  };

  T* unsent_from(std::size_t position) {
    return reinterpret_cast<T*>(unsent_.bytes().data()) + position;
  }

  /// Calls f for every matrix of the ranges that were summed.
  template <class F>
  void for_unsent(F f) {
    for (const auto& [range, state] : states_) {
      for (const Matrix& m : state.parts.matrices) {
        f(std::span(unsent_from(range.first + m.begin), m.size()));
      }
    }
  }

  static void send_owed_rest(const Parts& parts, T* unsent, T* sum) {
    for (const Range& r : parts.rest) {
      send_owed(std::span(unsent + r.begin, r.size()), std::span(sum + r.begin, r.size()));
    }
  }

  static void begin_anew(State& state) {
    state.q.assign(state.parts.right, T{0});
    for (const Matrix& matrix : state.parts.matrices) start_from(matrix, &state.q[matrix.q]);
  }

  State& state_of(Range range) {
    const auto [found, is_new] = states_.try_emplace({range.begin, range.end});
    State& state = found->second;
    if (is_new) {
      state.parts = parts_of(range, layout_, rank_);
      begin_anew(state);
    }
    return state;
  }

  void pack_rest(const Parts& parts, const T* sum) {
    T* to = left_.data();
    for (const Range& r : parts.rest) to = std::copy(sum + r.begin, sum + r.end, to);
  }
  void unpack_rest(const Parts& parts, T* sum) const {
    const T* from = left_.data();
    for (const Range& r : parts.rest) {
      std::copy_n(from, r.size(), sum + r.begin);
      from += r.size();
    }
  }

  /// The sum of all ranks, and what this rank still owes; q: its own one, then the next step's.
  void rebuild(const Matrix& m, T* q, T* sum, T* unsent) {
    const T* const p = left_.data() + m.p;
    const T* const q_sum = right_.data() + m.q;
    std::fill(sum + m.begin, sum + m.end(), T{0});
    add_product(sum + m.begin, T{1}, p, q_sum, m);
    add_product(unsent + m.begin, T{-1}, p, q, m);
    std::copy_n(q_sum, m.q_size(), q);
    start_from(m, q);
  }

  compute::ParameterLayout layout_;
  std::size_t rank_;
  system::Pages unsent_;  ///< by element of the arena; pages that no range touches take no memory
  comm::Channel channel_;
  std::map<std::pair<std::size_t, std::size_t>, State> states_;
  std::vector<T> left_, right_;  ///< what travels: the rest and all P, then all Q
};

}  // namespace

template <class T>
std::unique_ptr<GradientSum> make_power_sgd_sum(const compute::ParameterLayout& layout, int rank,
                                                comm::Channel channel) {
  return std::make_unique<PowerSgdSum<T>>(layout, rank, std::move(channel));
}

template std::unique_ptr<GradientSum> make_power_sgd_sum<float>(const compute::ParameterLayout&,
                                                                int, comm::Channel);
template std::unique_ptr<GradientSum> make_power_sgd_sum<double>(const compute::ParameterLayout&,
                                                                 int, comm::Channel);

}  // namespace cputrain::exchange
