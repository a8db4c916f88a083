#include "exchange/compression/compression.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "core/error.h"

namespace cputrain::exchange {
namespace {

using Method = Compression::Method;

constexpr int kMostRank = 64;

[[noreturn]] void wrong(const std::string& text, const std::string& why) {
  fail(ExitCode::usage,
       fmt::format("--compress {}: {}; write none, fp16, bf16, topk[:FRACTION] with a FRACTION "
                   "above 0 and up to 1, or powersgd[:RANK] with a RANK from 1 to {}",
                   text, why, kMostRank));
}

template <class T>
T number(const std::string& text, const std::string& word) {
  T value{};
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || stop != end) wrong(text, "'" + word + "' is no such number");
  return value;
}

Compression parse_method(const std::string& text, const std::string& name) {
  if (const auto method = value_named<Method>(name)) return {*method};
  wrong(text, "'" + name + "' is no way to compress");
}

template <class T>
std::unique_ptr<GradientSum> make_sum(const Compression& compression,
                                      const compute::ParameterLayout& layout,
                                      comm::Channel channel) {
  switch (compression.method) {
    case Method::none:
      break;
    case Method::fp16:
      return make_fp16_sum<T>(std::move(channel));
    case Method::bf16:
      return make_bf16_sum<T>(std::move(channel));
    case Method::topk:
      return make_top_k_sum<T>(layout.gradient_size, compression.fraction, std::move(channel));
    case Method::powersgd:
      return make_power_sgd_sum<T>(layout, compression.rank, std::move(channel));
  }
  return make_plain_sum(layout.dtype, std::move(channel));
}

}  // namespace

Compression parse_compression(const std::string& text) {
  const std::size_t colon = text.find(':');
  Compression compression = parse_method(text, text.substr(0, colon));
  if (colon == std::string::npos) return compression;
  const std::string word = text.substr(colon + 1);
  if (compression.method == Method::topk) {
    compression.fraction = number<double>(text, word);
    if (!(compression.fraction > 0 && compression.fraction <= 1)) {
      wrong(text, "'" + word + "' is no such number");
    }
  } else if (compression.method == Method::powersgd) {
    compression.rank = number<int>(text, word);
    if (compression.rank < 1 || compression.rank > kMostRank) {
      wrong(text, "'" + word + "' is no such number");
    }
  } else {
    wrong(text, text.substr(0, colon) + " takes no number");
  }
  return compression;
}

std::string to_text(const Compression& compression) {
  const std::string_view word = word_of(compression.method);
  if (compression.method == Method::topk) return fmt::format("{}:{}", word, compression.fraction);
  if (compression.method == Method::powersgd) return fmt::format("{}:{}", word, compression.rank);
  return std::string(word);
}

std::vector<Compression> compressions() {
  std::vector<Compression> all;
  for (const Name<Method>& name : names(Method{})) {
    if (name.value != Method::none) all.push_back({name.value});
  }
  return all;
}

void check_compression(const Compression& compression, const comm::AllreduceChoice& choice) {
  if (compression.method == Method::none) return;
  if (!choice.one_node && choice.scheme != comm::AllreduceChoice::Scheme::server) return;
  fail(ExitCode::usage,
       fmt::format("--compress {} with --allreduce {} ({}); use --allreduce auto, hierarchical or "
                   "an algorithm between ranks, or leave --compress out",
                   to_text(compression), comm::to_text(choice),
                   choice.one_node ? "a sum over shared memory sends nothing that could be smaller"
                                   : "the parameter server takes gradients as they are"));
}

std::unique_ptr<GradientSum> make_gradient_sum(const Compression& compression,
                                               const compute::ParameterLayout& layout,
                                               comm::Channel channel) {
  return layout.dtype == DType::f32 ? make_sum<float>(compression, layout, std::move(channel))
                                    : make_sum<double>(compression, layout, std::move(channel));
}

}  // namespace cputrain::exchange
