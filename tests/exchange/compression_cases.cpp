#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "comm/open_channel.h"
#include "exchange/compression/compression.h"
#include "exchange/make_exchange.h"
#include "tests/exchange/cases.h"

namespace cputrain::exchange {
namespace {

/// One parameter of these extents.
compute::ParameterLayout layout_of(std::vector<int> extents, DType dtype, std::size_t panel = 0) {
  std::size_t count = 1;
  for (const int n : extents) count *= static_cast<std::size_t>(n);
  compute::ParameterLayout layout;
  layout.dtype = dtype;
  layout.parameters = {{.name = "p",
                        .extents = std::move(extents),
                        .count = count,
                        .range = {0, count},
                        .decays = true,
                        .learnt = true,
                        .averaged = false,
                        .l2 = 0,
                        .rate = 1,
                        .panel = panel}};
  layout.gradient_size = layout.arena_size = count;
  return layout;
}

std::unique_ptr<GradientSum> make(const std::string& text, comm::Communicator& comm,
                                  const compute::ParameterLayout& layout) {
  return make_gradient_sum(parse_compression(text), layout, comm::open_world(comm, {{"ring"}}));
}

compute::ParameterLayout vector_of(std::size_t size, DType dtype) {
  return layout_of({static_cast<int>(size)}, dtype);
}

/// From nothing to several messages; no length that the number of ranks divides.
constexpr std::size_t kSizes[] = {0, 1, 2, 7, 8, 1000, 100003, 600011};

/// Numbers of rank r whose sum over 8 ranks is a whole number below 256: exact in every format.
template <class T>
T whole(int rank, std::size_t i) {
  return static_cast<T>((rank + 1) * (static_cast<int>(i % 15) - 7));
}

template <class T>
void expect_exact(const std::string& text, comm::Communicator& comm) {
  const int factor = comm.size() * (comm.size() + 1) / 2;
  for (const std::size_t size : kSizes) {
    const auto sum = make(text, comm, vector_of(size, dtype_of<T>()));
    std::vector<T> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = whole<T>(comm.rank(), i);
    sum->sum({0, size}, Array::of(std::span(values)));
    for (std::size_t i = 0; i < size; ++i) {
      const T expected = static_cast<T>(factor) * whole<T>(0, i);
      if (values[i] != expected) FAIL() << values[i] << " at " << i << " of " << size;
    }
  }
}

void exact_sums(const std::string& text, comm::Communicator& comm) {
  expect_exact<float>(text, comm);
  expect_exact<double>(text, comm);
}

template <class T>
void expect_same_bits(comm::Communicator& comm, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  const auto texts = comm.gather({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (const std::string& text : texts) ASSERT_TRUE(text == texts[0]);
}

/// Gradients of many sizes, as small as they come.
float small_number(std::size_t i, int rank) {
  return std::sin(static_cast<float>(i + 1) * static_cast<float>(rank + 1)) *
         std::pow(10.0f, -7.0f - static_cast<float>((i + static_cast<std::size_t>(rank)) % 3));
}

/// Half a unit in the last place of what each other rank sends and of the sum: 2^-11 in fp16,
/// 2^-8 in bf16, relative. Beside it what fp16 has for numbers far below a message's largest.
void rounding_is_bounded(const std::string& text, comm::Communicator& comm) {
  constexpr std::size_t kSize = 40009;
  const double half_unit = text == "fp16" ? 0x1p-11 : 0x1p-8;
  const auto sum = make(text, comm, vector_of(kSize, DType::f32));
  std::vector<float> values(kSize);
  for (std::size_t i = 0; i < kSize; ++i) values[i] = small_number(i, comm.rank());
  sum->sum({0, kSize}, Array::of(std::span(values)));
  expect_same_bits(comm, values);
  bool rounded = false;
  for (std::size_t i = 0; i < kSize; ++i) {
    double exact = 0, size = 0;
    for (int rank = 0; rank < comm.size(); ++rank) {
      exact += static_cast<double>(small_number(i, rank));
      size += std::abs(static_cast<double>(small_number(i, rank)));
    }
    const double far = std::abs(static_cast<double>(values[i]) - exact);
    ASSERT_LE(far, 2.01 * half_unit * size + 1e-7 * 0x1p-36) << "at " << i;
    rounded |= far > 0.1 * half_unit * size;
  }
  EXPECT_TRUE(rounded);  // else nothing was in 16 bits
}

/// A diverged run must end: what is no number stays none, on all ranks, and its neighbours stay.
void nan_survives(const std::string& text, comm::Communicator& comm) {
  constexpr std::size_t kSize = 20000;
  const auto sum = make(text, comm, layout_of({100, 200}, DType::f32));
  std::vector<float> values(kSize, 1.0f);
  const bool last = comm.rank() == comm.size() - 1;
  if (last) values[7] = std::numeric_limits<float>::quiet_NaN();
  if (last) values[12345] = -std::numeric_limits<float>::infinity();
  sum->sum({0, kSize}, Array::of(std::span(values)));
  EXPECT_TRUE(std::isnan(values[7]));
  EXPECT_FALSE(std::isfinite(values[12345]));
  if (text == "fp16" || text == "bf16") {
    EXPECT_EQ(values[12345], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(values[8], static_cast<float>(comm.size()));
  }
}

/// Only so many numbers of each rank arrive in a step, the largest, and in the end all do: steps
/// without a gradient bring what was kept back.
void what_is_kept_back_comes_later(comm::Communicator& comm) {
  constexpr std::size_t kSize = 10007, kChosen = 1001;  // a tenth, rounded up
  const auto sum = make("topk:0.1", comm, vector_of(kSize, DType::f64));
  std::vector<double> total(kSize), gradients(kSize), values(kSize);
  for (int step = 0; step < 16; ++step) {
    for (std::size_t i = 0; i < kSize; ++i) {
      const auto mixed = static_cast<int>((i * 7919 + 31 * static_cast<std::size_t>(step)) % 1009);
      values[i] = step < 6 ? (comm.rank() + 1) * (mixed - 500) : 0;
      gradients[i] += step < 6 ? comm.size() * (comm.size() + 1) / 2 * (mixed - 500) : 0;
    }
    sum->sum({0, kSize}, Array::of(std::span(values)));
    const auto sent = kSize - static_cast<std::size_t>(std::ranges::count(values, 0.0));
    EXPECT_LE(sent, kChosen * static_cast<std::size_t>(comm.size()));
    EXPECT_GT(sent + 10, step < 6 ? kChosen : 0);
    if (step == 0) {
      EXPECT_EQ(values[0] != 0, true) << "the largest, -500, is not among them";
    }
    for (std::size_t i = 0; i < kSize; ++i) total[i] += values[i];
  }
  EXPECT_EQ(total, gradients);
}

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
      const auto sum = make("powersgd", comm, layout);
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
  const auto sum = make("powersgd:2", comm, layout);
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

/// A range that begins and ends within parameters: whole rows or panels of each are matrices, the
/// rest travels, and elements stay where they are.
void ranges_cut_matrices(comm::Communicator& comm) {
  for (const std::size_t panel : {std::size_t{0}, std::size_t{8}}) {
    const auto layout = layout_of({64, 32}, DType::f64, panel);
    const auto sum = make("powersgd:1", comm, layout);
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

/// Through exchanges, with buckets and slices that cut matrices: the same weights on all ranks.
void exchanges_give_the_same_bits(const std::string& text, comm::Communicator& comm) {
  compute::ParameterLayout layout = layout_of({300, 200}, DType::f32);
  layout.parameters.push_back({"bias", {77}, 77, {60000, 60077}, false, true, false, 0, 1});
  layout.gradient_size = layout.arena_size = 60080;
  for (const char* allreduce : {"rabenseifner", "hierarchical+ring"}) {
    ExchangeParts parts{comm, layout, 1000, Overlap::thread, {}, comm::sum_plainly};
    parts.compression = parse_compression(text);
    const auto exchange = make_exchange(parts, comm::parse_allreduce(allreduce)).exchange;
    const compute::Arenas arenas = exchange->arenas();
    const auto weights = arenas.weights.as<float>(), gradients = arenas.gradients.as<float>();
    for (int step = 0; step < 3; ++step) {
      exchange->begin(0, true);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        gradients[i] = small_number(i, comm.rank() + step);
      }
      exchange->ready(layout.gradient_size);
      exchange->finish([&](Range range) {
        for (std::size_t i = range.begin; i < range.end; ++i) weights[i] -= gradients[i];
      });
    }
    expect_same_bits(comm, std::vector<float>(weights.begin(), weights.end()));
    EXPECT_NE(std::ranges::count(weights, 0.0f), std::ssize(weights));
  }
}

/// Numbers of a rank in a step, of which compression leaves some behind.
std::vector<double> numbers_of_step(std::size_t size, int rank, int step) {
  std::vector<double> values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values[i] = std::sin(static_cast<double>(i + 1) * (rank + 2) + step);
  }
  return values;
}

/// What a sum keeps, given to another one, which then forms the same sums. Ranges are cut as those
/// of buckets; the first is small enough to travel whole.
void what_is_kept_goes_on(const std::string& text, comm::Communicator& comm) {
  const auto layout = layout_of({120, 60}, DType::f64);
  const Range ranges[] = {{0, 100}, {100, 5000}, {5000, 7200}};
  const auto step_of = [&](GradientSum& sum, int step) {
    std::vector<double> all = numbers_of_step(7200, comm.rank(), step);
    for (const Range& r : ranges) {
      sum.sum(r, Array::of(std::span(all).subspan(r.begin, r.size())));
    }
    return all;
  };
  const auto first = make(text, comm, layout), second = make(text, comm, layout);
  for (int step = 0; step < 3; ++step) step_of(*first, step);
  const auto fresh = step_of(*second, 7);  // which it is to forget
  KeptParts &theirs = *first->kept_parts(), &mine = *second->kept_parts();
  mine.forget();
  EXPECT_EQ(step_of(*second, 7), fresh);
  mine.forget();
  std::ranges::copy(theirs.unsent().as<double>(), mine.unsent().as<double>().begin());
  for (const compute::ArenaPart& part : theirs.factors()) mine.set_factors(part.range, part.values);
  EXPECT_EQ(theirs.factors().size(), text == "topk:0.1" ? 0u : 3u);
  for (int step = 3; step < 6; ++step) {
    EXPECT_EQ(step_of(*first, step), step_of(*second, step)) << text << " in step " << step;
  }
}

/// Whatever is owed is sent in the end, also where ranges are cut so that nothing is kept of them.
void what_is_owed_is_sent(const std::string& text, comm::Communicator& comm) {
  const std::size_t size = 3000;
  const auto layout = layout_of({60, 50}, DType::f64);
  const auto sum = make(text, comm, layout);
  const auto unsent = sum->kept_parts()->unsent().as<double>();
  for (std::size_t i = 0; i < size; ++i)
    unsent[i] = static_cast<double>(i % 17) * (comm.rank() + 1);
  std::vector<double> total(size), values;
  for (int step = 0; step < 3; ++step) {
    values.assign(size, 0);
    for (std::size_t begin = 0; begin < size; begin += 30) {
      sum->sum({begin, begin + 30}, Array::of(std::span(values).subspan(begin, 30)));
    }
    for (std::size_t i = 0; i < size; ++i) total[i] += values[i];
  }
  const double ranks = comm.size() * (comm.size() + 1) / 2;
  for (std::size_t i = 0; i < size; ++i) {
    ASSERT_NEAR(total[i], ranks * static_cast<double>(i % 17), 1e-9) << text << " at " << i;
  }
}

/// Gradients that were no numbers leave nothing behind.
void nan_is_forgotten(const std::string& text, comm::Communicator& comm) {
  const auto sum = make(text, comm, layout_of({100, 50}, DType::f64));
  std::vector<double> values = numbers_of_step(5000, comm.rank(), 0);
  values[4000] = std::numeric_limits<double>::quiet_NaN();
  sum->sum({0, 5000}, Array::of(std::span(values)));
  sum->kept_parts()->forget_nonfinite();
  for (int step = 1; step < 3; ++step) {
    values = numbers_of_step(5000, comm.rank(), step);
    sum->sum({0, 5000}, Array::of(std::span(values)));
    EXPECT_TRUE(std::ranges::all_of(values, [](double v) { return std::isfinite(v); })) << text;
  }
}

/// What is sent whole leaves nothing for a checkpoint.
void sums_of_everything_keep_nothing(comm::Communicator& comm) {
  for (const char* text : {"none", "fp16", "bf16"}) {
    EXPECT_EQ(make(text, comm, layout_of({100, 50}, DType::f32))->kept_parts(), nullptr) << text;
  }
}

/// Ratios of bytes, and that the exchange says them.
void exchanges_say_what_they_save(comm::Communicator& comm) {
  const auto layout = layout_of({1000, 500}, DType::f32);
  const auto describe = [&](const std::string& text) {
    ExchangeParts parts{comm, layout, 1u << 30, Overlap::none, {}, comm::sum_plainly};
    parts.compression = parse_compression(text);
    return make_exchange(parts, comm::parse_allreduce("ring")).exchange->describe();
  };
  const auto ends_with = [&](const std::string& text, const std::string& end) {
    EXPECT_TRUE(describe(text).ends_with(end)) << describe(text);
  };
  ends_with("none", "rank");
  ends_with("fp16", "gradients as fp16: 2.0 times fewer bytes");
  ends_with("powersgd", "gradients as powersgd:4: 83.3 times fewer bytes");
  const auto sum = make("topk", comm, layout);  // pairs of 8 bytes from every rank
  EXPECT_EQ(sum->volume({0, 500000}), 5000.0 * 8 * comm.size() / 2);
}

}  // namespace

std::vector<comm::CommCase> compression_cases() {
  std::vector<comm::CommCase> cases;
  const auto add = [&](const std::string& text, const char* what, auto body) {
    std::string word = text.substr(0, text.find(':'));
    cases.push_back(
        {word + "_" + what, [text, body](comm::Communicator& comm) { body(text, comm); }});
  };
  for (const char* text : {"none", "fp16", "bf16", "topk:1"}) add(text, "exact_sums", exact_sums);
  for (const char* text : {"fp16", "bf16"}) add(text, "rounding_is_bounded", rounding_is_bounded);
  for (const char* text : {"fp16", "bf16", "topk", "powersgd"}) {
    add(text, "nan_survives", nan_survives);
    add(text, "exchanges_give_the_same_bits", exchanges_give_the_same_bits);
  }
  for (const char* text : {"topk:0.1", "powersgd:2"}) {
    add(text, "what_is_kept_goes_on", what_is_kept_goes_on);
    add(text, "what_is_owed_is_sent", what_is_owed_is_sent);
    add(text, "nan_is_forgotten", nan_is_forgotten);
  }
  cases.push_back({"topk_what_is_kept_back_comes_later", what_is_kept_back_comes_later});
  cases.push_back({"powersgd_low_ranks_are_exact", low_ranks_are_exact});
  cases.push_back({"powersgd_keeps_what_it_lacks", low_rank_keeps_what_it_lacks});
  cases.push_back({"powersgd_ranges_cut_matrices", ranges_cut_matrices});
  cases.push_back({"sums_of_everything_keep_nothing", sums_of_everything_keep_nothing});
  cases.push_back({"compressed_exchanges_say_what_they_save", exchanges_say_what_they_save});
  return cases;
}

}  // namespace cputrain::exchange
