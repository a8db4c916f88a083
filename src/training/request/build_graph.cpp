#include "training/request/build_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "core/text.h"
#include "model/layer_patterns.h"
#include "model/rewrite.h"

namespace cputrain::training {
namespace {

/// Without the layers of --freeze something must be left to learn.
model::Graph frozen(const TrainingSpec& spec, const model::Graph& graph) {
  if (spec.flags.freeze.empty()) return graph;
  model::Graph result = model::with_frozen(graph, model::layers_matching(graph, spec.flags.freeze));
  if (result.learnt_count() > 0) return result;
  fail(ExitCode::usage, fmt::format("--freeze {} leaves no layer to train; name fewer layers",
                                    join(spec.flags.freeze, ",")));
}

/// The rates of both keep their ratio, whatever the schedule does.
model::Graph with_backbone_rate(const TrainingSpec& spec, const model::Graph& graph) {
  if (!spec.flags.backbone_lr) return graph;
  const double rate = spec.learning_rate.base;
  if (!(rate > 0)) {
    fail(ExitCode::usage, fmt::format("--backbone-lr {:g} needs --lr above 0 (schedules change "
                                      "both rates by one factor); name a small --lr",
                                      *spec.flags.backbone_lr));
  }
  const model::Graph result =
      model::with_rate(graph, model::backbone_layers(graph), *spec.flags.backbone_lr / rate);
  const auto learns = [](const model::Graph::Node& node) { return node.rate != 1 && !node.frozen; };
  if (std::ranges::any_of(result.nodes(), learns) || *spec.flags.backbone_lr == rate) return result;
  fail(ExitCode::usage,
       "--backbone-lr: no layer but the last learns (it would change nothing); "
       "leave it out, or freeze fewer layers");
}

/// A label without an output could not be learnt, an output without a label not be named.
void check_outputs(const TrainingSpec& spec, const model::Graph& graph, int classes) {
  const int outputs = graph.back().dst.channels;
  const bool sigmoid = outputs == 1;  // which tells two classes apart
  const int named = sigmoid ? 2 : outputs;
  if (named == classes) return;
  fail(ExitCode::usage,
       fmt::format("{} ends in {} for {} classes, there are {} (every label needs its output); "
                   "write \"units\": \"classes\" in its last dense layer{}, or use other data or "
                   "--classes",
                   spec.model->name,
                   sigmoid ? "a sigmoid of one output" : fmt::format("{} outputs", outputs), named,
                   classes, sigmoid ? " and \"softmax\" in place of \"sigmoid\"" : ""));
}

void check_has_dropout(const TrainingSpec& spec, const model::Graph& graph) {
  const auto drops = [](const auto& node) { return model::facts_of(node.layer).drops.has_value(); };
  if (std::ranges::any_of(graph.nodes(), drops)) return;
  fail(ExitCode::usage, fmt::format("--dropout: {} has no dropout layer (it would change nothing); "
                                    "leave it out",
                                    spec.model->name));
}

model::Graph unfrozen_graph(const TrainingSpec& spec, int classes) {
  try {
    model::Graph graph = spec.model->build(spec.image, classes);
    check_outputs(spec, graph, classes);
    if (spec.flags.dropout) {
      check_has_dropout(spec, graph);
      graph = model::with_dropout(graph, static_cast<float>(*spec.flags.dropout));
    }
    if (spec.flags.normalize) graph = model::with_input(graph, *spec.flags.normalize);
    if (spec.flags.label_smoothing > 0) {
      graph = model::with_label_smoothing(graph, static_cast<float>(spec.flags.label_smoothing));
    }
    return graph;
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("--image-size") == std::string_view::npos) throw;
    fail(ExitCode::usage, fmt::format("--image-size {} is too small for {}: {}", spec.image.height,
                                      spec.model->name, error.what()));
  }
}

}  // namespace

model::Graph build_graph(const TrainingSpec& spec, int classes) {
  return with_backbone_rate(spec, frozen(spec, unfrozen_graph(spec, classes)));
}

int classes_of(const TrainingSpec& spec, const data::DataSource& source) {
  const auto& names = source.dataset->classes();
  const int found = static_cast<int>(names.size());
  const int classes = spec.flags.classes.value_or(found);
  if (classes < found) {
    fail(ExitCode::usage, fmt::format("--classes {} is less than the {} classes of the data ({}); "
                                      "leave it out, or use other data",
                                      classes, found, printable(join(names, ", "))));
  }
  return classes;
}

}  // namespace cputrain::training
