#include "weights/keras_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/text.h"
#include "weights/step_paths.h"

namespace cputrain::weights {
namespace {

constexpr int kNone = -1;

/// Epsilons that differ by less (PyTorch's 1e-5 and Keras' 1.001e-5) change no answer that counts.
bool differ(double a, double b) { return std::abs(a - b) > 0.01 * std::max(a, b); }

class Comparison {
 public:
  Comparison(const NetworkSteps& ours, const NetworkSteps& theirs)
      : ours_(ours),
        theirs_(theirs),
        of_theirs_(theirs.size(), kNone),
        of_ours_(ours.size(), kNone) {}

  void pair(int ours, int theirs) {
    of_theirs_[theirs] = ours;
    of_ours_[ours] = theirs;
  }

  /// `output`: the step that makes the answers of the file's network.
  KerasDifferences differences(int output) && {
    for (int ours = 0; ours < static_cast<int>(ours_.size()); ++ours) {
      if (of_ours_[ours] != kNone) compare_layers(ours, of_ours_[ours]);
    }
    if (output != kNone) compare_outputs(ours_.back(), path_to(theirs_, output));
    return std::move(found_);
  }

 private:
  void add(const std::string& of, const std::string& theirs, const std::string& ours) {
    found_.layers.push_back(fmt::format("{}: {} in the file, {} here", of, theirs, ours));
  }

  /// "conv (conv2d_7 in the file)".
  std::string name(int ours, int theirs) const {
    const std::string &here = ours_[ours].name, &there = theirs_[theirs].name;
    return here == there || there.empty()
               ? here
               : fmt::format("{} ({} in the file)", here, printable(there));
  }

  void compare_layers(int ours, int theirs) {
    const NetworkStep &here = ours_[ours], &there = theirs_[theirs];
    const std::string of = name(ours, theirs);
    if (!there.unlike.empty()) add(of, there.unlike, "none");
    const bool strides = here.stride && there.stride && *here.stride != *there.stride;
    if (strides) {
      add(of, "stride " + sides_text(*there.stride), sides_text(*here.stride));
    }
    if (here.groups && there.groups && *here.groups != *there.groups) {
      add(of, fmt::format("groups {}", *there.groups), std::to_string(*here.groups));
    }
    if (here.epsilon && there.epsilon && differ(*here.epsilon, *there.epsilon)) {
      add(of, fmt::format("epsilon {:.6g}", *there.epsilon), fmt::format("{:.6g}", *here.epsilon));
    }
    const bool image = here.dst.height * here.dst.width > 1;
    if (!there.axis.empty() && image) add(of, "axis " + there.axis, "the last one");
    if (there.src.size() == 1) compare_inputs(ours, theirs);
  }

  /// What a layer reads, by its place among all that it does: the path before it, and where windows
  /// lie in the image at its end.
  void compare_inputs(int ours, int theirs, std::size_t our_part = 0, std::size_t their_part = 0) {
    const NetworkStep &our_reader = ours_[ours], &their_reader = theirs_[theirs];
    const StepPath here = path_to(ours_, our_reader.src[our_part]);
    const StepPath there = path_to(theirs_, their_reader.src[their_part]);
    if (here.end == kNone || there.end == kNone) return;
    const std::string of = name(ours, theirs);
    if (!same_end(here.end, there.end)) {
      add(of, "it reads " + their_name(there.end), ours_[here.end].name);
      return;
    }
    compare_joins(here.end, there.end);
    const auto before = shape_behind_equal(here, there);
    const bool windows = our_reader.size && their_reader.size;
    if (!before || (!windows && here.zeros != there.zeros)) {
      add(fmt::format("between {} and {}", ours_[here.end].name, of), text_of(with_zeros(there)),
          text_of(with_zeros(here)));
    } else if (windows && our_reader.stride == their_reader.stride &&
               !same_windows(their_reader, there.zeros, our_reader, here.zeros, *before)) {
      add(of, "padding " + padding_text(their_reader, there.zeros),
          padding_text(our_reader, here.zeros));
    }
  }

  /// The shape in which both paths end, before their zeros; nothing where they differ.
  std::optional<Shape> shape_behind_equal(const StepPath& here, const StepPath& there) const {
    Shape shape = ours_[here.end].dst;
    bool positive = ours_[here.end].kind != StepKind::weights;
    if (here.steps.size() != there.steps.size()) return {};
    for (std::size_t i = 0; i < here.steps.size(); ++i) {
      if (!alike(there.steps[i], here.steps[i], shape, positive)) return {};
      const NetworkStep& step = *here.steps[i].step;
      positive = positive || step.word.starts_with("relu");
      if (step.kind != StepKind::activation) shape = step.dst;
    }
    return shape;
  }

  /// Zeros at the end as a step, for people.
  static StepPath with_zeros(StepPath path) {
    static const NetworkStep pad{.kind = StepKind::zero_pad};
    if (path.zeros != std::array<int, 4>{}) path.steps.push_back({&pad, path.zeros});
    return path;
  }

  /// Behind the last layer with weights, where that is not a new one. A network here ends in
  /// softmax or sigmoid; one of Keras may leave that to its loss.
  void compare_outputs(const NetworkStep& loss, StepPath there) {
    if (loss.kind != StepKind::activation || loss.src.empty()) return;
    const StepPath here = path_to(ours_, loss.src.front());
    const bool paired = here.end != kNone && of_ours_[here.end] != kNone;
    if (!paired || there.end != of_ours_[here.end]) return;
    const std::string last = there.steps.empty() ? "" : there.steps.back().step->word;
    if (last == "softmax" || last == "sigmoid") {
      there.steps.pop_back();
      if (last != loss.word) found_.outputs = last;
    }
    if (shape_behind_equal(here, there) && here.zeros == there.zeros) return;
    add("behind " + name(here.end, there.end), text_of(with_zeros(there)),
        text_of(with_zeros(here)));
  }

  std::string their_name(int theirs) const {
    const int ours = of_theirs_[theirs];
    if (theirs_[theirs].kind == StepKind::foreign) return theirs_[theirs].word;
    return ours == kNone ? printable(theirs_[theirs].name) : ours_[ours].name;
  }

  /// Layers here that the file has none for, such as a new one, may stand anywhere.
  bool same_end(int ours, int theirs) const {
    const StepKind here = ours_[ours].kind;
    if (here != theirs_[theirs].kind) return false;
    return here != StepKind::weights || of_ours_[ours] == kNone || of_ours_[ours] == theirs;
  }

  /// What the parts of a sum or of a list of channels go through. Sums may have them in any order.
  void compare_joins(int ours, int theirs) {
    const NetworkStep &here = ours_[ours], &there = theirs_[theirs];
    const bool sum = here.kind == StepKind::add;
    if (!sum && here.kind != StepKind::concat) return;
    if (here.src.size() != there.src.size() || !seen_.insert({ours, theirs}).second) return;
    for (std::size_t i = 0; i < here.src.size(); ++i) {
      const int part = sum ? same_part(here, there, i) : static_cast<int>(i);
      if (part != kNone) compare_inputs(ours, theirs, i, static_cast<std::size_t>(part));
    }
  }

  /// The only part of the file's sum that comes from where part `i` here does.
  int same_part(const NetworkStep& here, const NetworkStep& there, std::size_t i) const {
    std::vector<int> our_ends, their_ends;
    for (const int src : here.src) {
      const int end = path_to(ours_, src).end;
      our_ends.push_back(key_of(ours_, end, end == kNone || of_ours_[end] == kNone ? kNone : end));
    }
    for (const int src : there.src) {
      const int end = path_to(theirs_, src).end;
      their_ends.push_back(key_of(theirs_, end, end == kNone ? kNone : of_theirs_[end]));
    }
    const bool once = std::ranges::count(our_ends, our_ends[i]) == 1 &&
                      std::ranges::count(their_ends, our_ends[i]) == 1;
    return once ? static_cast<int>(std::ranges::find(their_ends, our_ends[i]) - their_ends.begin())
                : kNone;
  }

  /// A paired layer by its number here (`pair`), others by what they are.
  static int key_of(const NetworkSteps& steps, int end, int pair) {
    if (end == kNone) return kNone;
    const StepKind kind = steps[end].kind;
    return kind == StepKind::weights && pair != kNone ? pair : -2 - static_cast<int>(kind);
  }

  const NetworkSteps &ours_, &theirs_;
  std::vector<int> of_theirs_, of_ours_;  ///< the step that stands for it in the other
  std::set<std::pair<int, int>> seen_;
  KerasDifferences found_;
};

/// "a; b; 3 more".
std::string text_of_all(std::vector<std::string> differences) {
  constexpr std::size_t kMost = 6;
  const std::size_t all = differences.size();
  differences.resize(std::min(all, kMost));
  return join(differences, "; ") + (all > kMost ? fmt::format("; {} more", all - kMost) : "");
}

std::string caveat_of_outputs(const KerasDifferences& found) {
  if (found.outputs.empty()) return "";
  return fmt::format(
      "its network ends in {}, and this one does not (the class that it is most sure "
      "of is the same, but probabilities are others)",
      found.outputs);
}

std::string caveat_of_unknown(const KerasDifferences& found) {
  if (found.not_compared.empty()) return "";
  return fmt::format(
      "what {} does was not compared (its class or function is none of Keras' own, or the file "
      "says too little)",
      first_few(found.not_compared));
}

/// Whether at most one layer is missing, as the last one is that a training begins anew.
bool has_all(const model::Graph& graph, const KerasPairs& pairs) {
  const auto layers = std::ranges::count_if(
      graph.nodes(), [](const model::Graph::Node& node) { return !node.parameters.empty(); });
  return std::ssize(pairs) + 1 >= layers;
}

}  // namespace

KerasDifferences keras_differences(const KerasNetwork& file, const model::Graph& graph,
                                   const KerasPairs& pairs) {
  const NetworkSteps ours = network_steps(graph);
  ByName<int> groups(kNone), names(kNone);
  for (std::size_t i = 0; i < file.steps.size(); ++i) {
    if (file.steps[i].kind != StepKind::weights) continue;
    groups.note(file.steps[i].group, static_cast<int>(i));
    names.note(file.steps[i].name, static_cast<int>(i));
  }
  Comparison comparison(ours, file.steps);
  for (const auto& [node, layer] : pairs) {
    const int step = layer->group.empty() ? names.find(layer->name) : groups.find(layer->group);
    if (step != kNone) comparison.pair(static_cast<int>(node), step);
  }
  KerasDifferences differences = std::move(comparison).differences(file.output);
  differences.not_compared = file.not_compared;
  return differences;
}

std::vector<std::string> check_network(const KerasFile& opened, const KerasNetwork& file,
                                       const model::Graph& graph, const KerasPairs& pairs,
                                       bool may_differ) {
  const KerasDifferences found = keras_differences(file, graph, pairs);
  const std::string outputs = caveat_of_outputs(found);
  const std::string unknown = caveat_of_unknown(found);
  if (found.layers.empty()) return {outputs, unknown};
  const std::string text =
      "its network computes something else than this one: " + text_of_all(found.layers);
  if (may_differ || !has_all(graph, pairs)) return {text, outputs, unknown};
  fail(ExitCode::data,
       "weight file {}: {} (the arrays fit, and the answers would be others); use a model file "
       "that does the same (--model; export --model-file writes one to change), or --partial, with "
       "which a training only warns",
       printable(opened.path.string()), text);
}

}  // namespace cputrain::weights
