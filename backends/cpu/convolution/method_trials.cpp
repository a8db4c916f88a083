#include "backends/cpu/convolution/method_trials.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "core/casts.h"

namespace cputrain::cpu {
namespace {

constexpr std::string_view kLetters = "dwsbt";  // as ConvolutionMethod

void keep_least(double& least, double seconds) { least = std::min(least, seconds); }

}  // namespace

MethodTrials::MethodTrials(std::vector<ConvolutionMethod> candidates)
    : candidates_(std::move(candidates)) {
  assert(!candidates_.empty());
  restart();
}

void MethodTrials::restart() {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  least_.assign(candidates_.size(), {kNever, kNever, kNever, kNever});
  next_ = 0;
}

void MethodTrials::note(const MethodTimes& times) {
  MethodTimes& least = least_[next_++ % candidates_.size()];
  keep_least(least.forward, times.forward);
  keep_least(least.weights, times.weights);
  keep_least(least.data, times.data);
  keep_least(least.unpool, times.unpool);
}

ConvolutionMethods MethodTrials::best() const {
  // Both ways back are chosen as a pair: unpooling is needed once if either of them needs it.
  const auto forward = std::ranges::min_element(least_, {}, &MethodTimes::forward);
  ConvolutionMethods best;
  double quickest = std::numeric_limits<double>::infinity();
  for (std::size_t w = 0; w < candidates_.size(); ++w) {
    for (std::size_t d = 0; d < candidates_.size(); ++d) {
      const double unpool = std::max(least_[w].unpool, least_[d].unpool);
      const double seconds = least_[w].weights + least_[d].data + unpool;
      if (seconds >= quickest) continue;
      quickest = seconds;
      best[Direction::backward_weights] = candidates_[w];
      best[Direction::backward_data] = candidates_[d];
    }
  }
  best[Direction::forward] = candidates_[to_size(forward - least_.begin())];
  return best;
}

std::string to_text(const ConvolutionMethods& methods) {
  std::string text;
  for (const ConvolutionMethod method : methods.by_direction) {
    text += kLetters[to_size(method)];
  }
  return text;
}

std::optional<ConvolutionMethods> methods_of(std::string_view text) {
  ConvolutionMethods methods;
  if (text.size() != methods.by_direction.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t letter = kLetters.find(text[i]);
    if (letter == kLetters.npos) return std::nullopt;
    methods.by_direction[i] = static_cast<ConvolutionMethod>(letter);
  }
  return methods;
}

}  // namespace cputrain::cpu
