#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "tests/exchange/compressed_sums.h"

namespace cputrain::exchange {
namespace {

/// Element (i, j) of a matrix of rank `terms` in panels; each rank has a multiple of it.
double low_rank(std::size_t i, std::size_t j, int terms) {
  double value = 0;
  for (int k = 0; k < terms; ++k) {
    value += std::cos(static_cast<double>((k + 1) * (i + 1))) *
             std::sin(static_cast<double>((k + 2) * (j + 1)));
  }
  return value;
}

struct Panelled {
  std::size_t rows, columns, panel;
  std::size_t at(std::size_t i, std::size_t j) const {
    return j / panel * panel * rows + i * panel + j % panel;
  }
};

/// Rank 4 carries a matrix of rank 3 or 4 whole.
void low_ranks_are_exact(comm::Communicator& comm) {
  for (const Panelled m : {Panelled{61, 48, 48}, Panelled{61, 48, 16}}) {
    for (const int terms : {0, 1, 3, 4}) {
      const auto layout = layout_of({61, 48}, DType::f64, m.panel == 48 ? 0 : m.panel);
      const auto sum = make_sum("powersgd", comm, layout);
      for (int step = 0; step < 3; ++step) {
        std::vector<double> values(m.rows * m.columns);
        const double factor = comm.rank() + 1 + step;
        for (std::size_t i = 0; i < m.rows; ++i) {
          for (std::size_t j = 0; j < m.columns; ++j) {
            values[m.at(i, j)] = factor * low_rank(i, j, terms);
          }
        }
        sum->sum({0, values.size()}, Array::of(std::span(values)));
        const double ranks = comm.size(), all = ranks * (ranks + 1) / 2 + ranks * step;
        for (std::size_t i = 0; i < m.rows; ++i) {
          for (std::size_t j = 0; j < m.columns; ++j) {
            ASSERT_NEAR(values[m.at(i, j)], all * low_rank(i, j, terms), 1e-9 * all)
                << i << ", " << j << " of rank " << terms << " in step " << step;
          }
        }
      }
    }
  }
}

/// A matrix of full rank does not arrive at once, and does in the end; vectors do at once.
void low_rank_keeps_what_it_lacks(comm::Communicator& comm) {
  compute::ParameterLayout layout = layout_of({20, 12}, DType::f64);
  layout.parameters.push_back({"bias", {7}, 7, {240, 247}, false, true, false, 0, 1});
  layout.gradient_size = layout.arena_size = 248;
  const auto sum = make_sum("powersgd:2", comm, layout);
  EXPECT_EQ(sum->volume({0, 248}), 8 * (2 * (20 + 12) + 8));
  std::vector<double> total(248), gradients(248), values(248);
  double norm = 0;
  for (int step = 0; step < 60; ++step) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double whole = static_cast<double>((i * i + 5 * i) % 101) - 50;
      values[i] = step < 3 ? whole * (comm.rank() + 1 + step) : 0;
      gradients[i] +=
          step < 3 ? whole * (comm.size() * (comm.size() + 1) / 2 + comm.size() * step) : 0;
    }
    sum->sum({0, 248}, Array::of(std::span(values)));
    for (std::size_t i = 0; i < values.size(); ++i) total[i] += values[i];
    if (step == 0) {
      expect_same_bits(comm, values);
      for (std::size_t i = 240; i < 248; ++i) ASSERT_EQ(values[i], gradients[i]);
      for (std::size_t i = 0; i < 240; ++i) norm += std::abs(values[i] - gradients[i]);
      EXPECT_GT(norm, 1000);
    }
  }
  for (std::size_t i = 0; i < total.size(); ++i) ASSERT_NEAR(total[i], gradients[i], 1e-6 * norm);
}

/// Matrices that are alike are approximated from other beginnings.
void each_matrix_begins_elsewhere(comm::Communicator& comm) {
  compute::ParameterLayout layout = layout_of({20, 12}, DType::f64);
  layout.parameters.push_back(layout.parameters[0]);
  layout.parameters[1].range = {240, 480};
  layout.gradient_size = layout.arena_size = 480;
  const auto sum = make_sum("powersgd:1", comm, layout);
  std::vector<double> values(480);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>((i % 240 * (i % 240) + 5 * (i % 240)) % 101) - 50;
  }
  sum->sum({0, 480}, Array::of(std::span(values)));
  EXPECT_FALSE(std::equal(values.begin(), values.begin() + 240, values.begin() + 240));
}

/// A range that begins and ends within parameters: whole rows or panels of each are matrices, the
/// rest travels, and elements stay where they are.
void ranges_cut_matrices(comm::Communicator& comm) {
  for (const std::size_t panel : {std::size_t{0}, std::size_t{8}}) {
    const auto layout = layout_of({64, 32}, DType::f64, panel);
    const auto sum = make_sum("powersgd:1", comm, layout);
    const Range range{37, 1999};  // rows 2 to 61, or panels 1 and 2 (64 x 8 each) of four
    const std::size_t factors = panel == 0 ? 60 + 32 : 64 + 16;
    const std::size_t inside = panel == 0 ? 60 * 32 : 2 * 64 * 8;
    EXPECT_EQ(sum->volume(range), 8.0 * static_cast<double>(factors + range.size() - inside));
    std::vector<double> values(range.size());
    const std::size_t first = (panel == 0 ? 64 : 512) - range.begin;
    for (std::size_t i = 0; i < values.size(); ++i) {
      // Constant along rows, so of rank 1, in one panel as in several.
      const bool in_matrix = i >= first && i < first + inside;
      const std::size_t row = (i - first) / (panel == 0 ? 32 : panel) % 64;
      values[i] = (comm.rank() + 1) * static_cast<double>(in_matrix ? row + 1 : i % 13);
    }
    const auto own = values;
    sum->sum(range, Array::of(std::span(values)));
    const double all = comm.size() * (comm.size() + 1) / 2.0 / (comm.rank() + 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(values[i], all * own[i], 1e-9 * (1 + all * own[i])) << i;
    }
  }
}

}  // namespace

std::vector<comm::CommCase> power_sgd_cases() {
  return {{"powersgd_low_ranks_are_exact", low_ranks_are_exact},
          {"powersgd_keeps_what_it_lacks", low_rank_keeps_what_it_lacks},
          {"powersgd_each_matrix_begins_elsewhere", each_matrix_begins_elsewhere},
          {"powersgd_ranges_cut_matrices", ranges_cut_matrices}};
}

}  // namespace cputrain::exchange
