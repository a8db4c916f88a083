#include "weights/step_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "core/overloaded.h"
#include "core/text.h"

namespace cputrain::weights {
namespace {

Sides square(int side) { return {side, side}; }

NetworkStep step_of(const model::Layer& layer) {
  const auto plain = [](StepKind kind) { return NetworkStep{.kind = kind}; };
  return std::visit(Overloaded{
                        [&](const model::Input&) { return plain(StepKind::input); },
                        [&](const model::Convolution& convolution) {
                          return NetworkStep{.kind = StepKind::weights,
                                             .size = square(convolution.kernel),
                                             .stride = square(convolution.stride),
                                             .padding = convolution.padding,
                                             .groups = convolution.groups};
                        },
                        [&](const model::ZeroPad& pad) {
                          return NetworkStep{.kind = StepKind::zero_pad,
                                             .zeros = {pad.top, pad.bottom, pad.left, pad.right}};
                        },
                        [&]<bool largest>(const model::Pool<largest>& pool) {
                          return NetworkStep{
                              .kind = largest ? StepKind::max_pool : StepKind::average_pool,
                              .size = square(pool.size),
                              .stride = square(pool.stride),
                              .padding = pool.padding};
                        },
                        [&](const model::GlobalAveragePool&) {
                          return NetworkStep{.kind = StepKind::average_pool, .global = true};
                        },
                        [&](const model::Dense&) { return plain(StepKind::weights); },
                        [&](const model::Add&) { return plain(StepKind::add); },
                        [&](const model::Concat&) { return plain(StepKind::concat); },
                        [&](const auto& other) {
                          const model::LayerFacts facts = other.facts();
                          if (!facts.formula.empty()) {
                            return NetworkStep{.kind = StepKind::activation, .word = facts.formula};
                          }
                          if (facts.epsilon) {
                            return NetworkStep{.kind = StepKind::weights, .epsilon = facts.epsilon};
                          }
                          const bool same = facts.drops || facts.lays_out;
                          return plain(same ? StepKind::same : StepKind::unknown);
                        },
                    },
                    layer);
}

using Zeros = std::array<int, 4>;

/// A longer path is not compared: no network has one.
constexpr std::size_t kMostSteps = 1000;

bool is_pad(const NetworkStep& step) { return step.kind == StepKind::zero_pad; }

/// Whether numbers are the same where the activation comes before the other step.
bool may_change_places(const NetworkStep& other, const NetworkStep& activation) {
  if (activation.kind != StepKind::activation) return false;
  const bool grows = activation.word.find("relu") != std::string::npos;  // a rectifier
  if (other.kind == StepKind::max_pool) return grows;
  return is_pad(other) && (grows || activation.word == "silu");
}

bool is_again(const NetworkStep* before, const NetworkStep* step) {
  return step->kind == StepKind::activation && step->word.starts_with("relu") &&
         before->word == step->word;
}

/// A second ReLU behind another changes nothing.
void order_activations(std::vector<const NetworkStep*>& steps) {
  for (std::size_t i = 1; i < steps.size(); ++i) {
    for (std::size_t at = i; at > 0 && may_change_places(*steps[at - 1], *steps[at]); --at) {
      std::swap(steps[at - 1], steps[at]);
    }
  }
  steps.erase(std::unique(steps.begin(), steps.end(), is_again), steps.end());
}

bool goes_on(const NetworkStep& step) {
  const StepKind kind = step.kind;
  if (kind == StepKind::foreign) return step.src.size() <= 1;  // else it joins others
  return kind == StepKind::same || kind == StepKind::activation || kind == StepKind::zero_pad ||
         kind == StepKind::max_pool || kind == StepKind::average_pool || kind == StepKind::pixels;
}

void add_zeros(Zeros& sum, const Zeros& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

StepPath folded(int end, const std::vector<const NetworkStep*>& steps) {
  StepPath path{.end = end};
  const NetworkStep* pad = nullptr;
  for (const NetworkStep* step : steps) {
    if (is_pad(*step)) {
      add_zeros(path.zeros, step->zeros);
      pad = step;
      continue;
    }
    if (step->kind != StepKind::max_pool && pad) path.steps.push_back({pad, path.zeros});
    path.steps.push_back({step, step->kind == StepKind::max_pool ? path.zeros : Zeros{}});
    path.zeros = {};
    pad = nullptr;
  }
  return path;
}

/// Where the windows of an axis lie: how many, and which pixels each of them reads.
struct Windows {
  int before = 0, count = 0, size = 0, stride = 0;
  bool operator==(const Windows&) const = default;
};

Windows windows_of(const NetworkStep& step, int axis, int pixels, int zeros_before,
                   int zeros_after) {
  if (step.global) return {.before = 0, .count = 1, .size = pixels};
  const int size = (*step.size)[axis], stride = (*step.stride)[axis];
  const int padded = pixels + zeros_before + zeros_after;
  const model::PadAmount pad = model::pad_amount(*step.padding, padded, size, stride);
  const int left = padded + pad.before + pad.after - size;
  if (left < 0) return {};
  const int count = left / stride + 1;
  return {zeros_before + pad.before, count, size, count > 1 ? stride : 0};
}

/// Whether any window reads more than the image.
bool reads_padding(const PathStep& path, const Shape& image) {
  const std::array<int, 2> pixels{image.height, image.width};
  const Zeros& zeros = path.zeros;
  return std::ranges::any_of(std::array{0, 1}, [&](int axis) {
    const Windows windows =
        windows_of(*path.step, axis, pixels[axis], zeros[2 * axis], zeros[2 * axis + 1]);
    const int end = (windows.count - 1) * windows.stride + windows.size - windows.before;
    return windows.before > 0 || end > pixels[axis];
  });
}

/// A pool of windows of one pixel: the largest is the mean.
bool picks_pixels(const PathStep& path) {
  return path.step->size == Sides{1, 1} && path.zeros == Zeros{};
}

bool has_windows(const NetworkStep& step) {
  return step.global || (step.size && step.stride && step.padding);
}

}  // namespace

NetworkSteps network_steps(const model::Graph& graph) {
  NetworkSteps steps;
  for (const model::Graph::Node& node : graph.nodes()) {
    NetworkStep step = step_of(node.layer);
    step.name = node.name;
    step.src = node.src;
    step.dst = node.dst;
    steps.push_back(std::move(step));
  }
  return steps;
}

StepPath path_to(const NetworkSteps& steps, int from) {
  std::vector<const NetworkStep*> between;
  int at = from;
  while (goes_on(steps[at])) {
    if (steps[at].src.size() != 1 || between.size() == kMostSteps) return {};
    if (steps[at].kind != StepKind::same) between.push_back(&steps[at]);
    at = steps[at].src.front();
  }
  if (steps[at].kind == StepKind::unknown) return {};
  if (steps[at].kind == StepKind::input) {
    std::erase_if(between, [](const auto* step) { return step->kind == StepKind::pixels; });
  }
  std::ranges::reverse(between);
  order_activations(between);
  return folded(at, between);
}

bool same_windows(const NetworkStep& theirs, const Zeros& their_zeros, const NetworkStep& ours,
                  const Zeros& our_zeros, const Shape& before) {
  if (!has_windows(theirs) || !has_windows(ours)) return true;
  const std::array<int, 2> pixels{before.height, before.width};
  for (int axis = 0; axis < 2; ++axis) {
    const auto windows = [&](const NetworkStep& step, const Zeros& zeros) {
      return windows_of(step, axis, pixels[axis], zeros[2 * axis], zeros[2 * axis + 1]);
    };
    if (windows(theirs, their_zeros) != windows(ours, our_zeros)) return false;
  }
  return true;
}

bool alike(const PathStep& theirs, const PathStep& ours, const Shape& before, bool positive) {
  if (!theirs.step->unlike.empty()) return false;
  const bool pick = picks_pixels(theirs) && picks_pixels(ours);
  if (theirs.step->kind != ours.step->kind && !pick) return false;
  if (theirs.step->kind == StepKind::activation) return theirs.step->word == ours.step->word;
  if (is_pad(*theirs.step)) return theirs.zeros == ours.zeros;
  if (!same_windows(*theirs.step, theirs.zeros, *ours.step, ours.zeros, before)) return false;
  return positive || theirs.zeros == ours.zeros || !reads_padding(ours, before);
}

std::string sides_text(const Sides& sides) {
  return sides[0] == sides[1] ? std::to_string(sides[0]) : fmt::format("{}x{}", sides[0], sides[1]);
}

std::string padding_text(const NetworkStep& step, const Zeros& zeros) {
  std::string text(step.padding ? word_of(*step.padding) : "unknown");
  if (zeros != Zeros{}) text += fmt::format(" behind zeros {}", fmt::join(zeros, ","));
  return text;
}

std::string text_of(const StepPath& path) {
  std::vector<std::string> parts;
  for (const auto& [step, zeros] : path.steps) {
    const bool most = step->kind == StepKind::max_pool;
    if (!step->word.empty()) {
      parts.push_back(step->word);
    } else if (is_pad(*step)) {
      parts.push_back(fmt::format("zero_pad {}", fmt::join(zeros, ",")));
    } else if (step->global) {
      parts.push_back(most ? "global_max_pool" : "global_average_pool");
    } else {
      parts.push_back(fmt::format("{} of {} (stride {}, {})", most ? "max_pool" : "average_pool",
                                  sides_text(*step->size), sides_text(*step->stride),
                                  padding_text(*step, zeros)));
    }
    if (!step->unlike.empty()) parts.back() += " " + step->unlike;
  }
  return parts.empty() ? "nothing" : join(parts, " then ");
}

}  // namespace cputrain::weights
