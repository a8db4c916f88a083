#include "training/weights/start_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/folder.h"
#include "core/error.h"
#include "core/text.h"
#include "data/classes/alike_names.h"
#include "data/classes/class_names.h"
#include "data/dataset.h"
#include "model/layer_patterns.h"
#include "model/normalization.h"
#include "training/weights/past_data.h"
#include "weights/load.h"
#include "weights/weight_file.h"
#include "weights/weight_match.h"

namespace cputrain::training {
namespace {

/// Classes of --weights beside those of the data.
struct KnownClasses {
  std::vector<std::string> file;
  weights::ClassMatch match;
  weights::ClassRows rows;
  bool by_place = false;  ///< names differ, and outputs cannot be moved
};

KnownClasses known_classes(const TrainingPlan& plan, const data::DataSource& source,
                           const weights::WeightArrays& file) {
  const TrainingSpec& spec = plan.spec;
  KnownClasses known{weights::classes_of_weights(file), {}, {}};
  if (known.file.empty()) return known;
  const std::vector<std::string> classes = class_names(source, plan.classes);
  known.match = weights::match_classes(classes, known.file, source.dataset->classes().size());
  const bool moves = known.match.moves();
  weights::ClassRows rows{model::class_outputs(plan.graph), known.match.source, known.file.size()};
  const auto& needed = rows.outputs.count == 1 ? rows.outputs.negated : rows.outputs.arrays;
  if (classes.size() == known.file.size()) {
    known.by_place = moves && needed.empty();
    if (known.by_place && known.match.others.empty() && !spec.flags.partial) {
      fail(ExitCode::data,
           "--weights {} know the classes in the order {}; the data has {} (the layers behind the "
           "last kernel do not let its outputs be put by name); use class names that sort as those "
           "of the weights",
           spec.flags.weights, first_few(known.file), first_few(classes));
    }
    if (!moves || known.by_place) return known;
  }
  known.rows = std::move(rows);
  return known;
}

/// "zzz begins with the output of cat".
std::string others_text(const KnownClasses& known, const std::vector<std::string>& classes) {
  std::vector<std::string> parts;
  for (const std::size_t c : known.match.others) {
    const std::size_t place = known.by_place ? c : *known.match.source[c];
    parts.push_back(fmt::format("{} with that of {}", classes[c], known.file[place]));
  }
  return first_few(parts);
}

/// What users should know of classes whose outputs were loaded.
void say_classes(const Session& session, const TrainingSpec& spec, const KnownClasses& known,
                 const std::vector<std::string>& classes) {
  if (!known.match.names.alike.empty() && !known.by_place) {
    warn_once(session, "--weights {} know classes by names that look alike: {}", spec.flags.weights,
              data::alike_text(known.match.names, classes, known.file));
  }
  if (known.file.size() != classes.size()) return;
  if (!known.match.others.empty()) {
    warn_once(session, "--weights {} know the classes {}; the data has {}: {}, {}",
              spec.flags.weights, first_few(known.file), first_few(classes),
              known.by_place ? "all outputs are taken by place"
                             : fmt::format("the outputs of {} are taken by name",
                                           counted(known.match.by_name, "class")),
              "and " + others_text(known, classes) + " to begin with");
  } else if (known.match.moves() && known.by_place) {
    warn_once(session,
              "--weights {} know the classes in another order ({}), and their outputs could not be "
              "put by name",
              spec.flags.weights, first_few(known.file));
  } else if (known.match.moves()) {
    say_detail_once(
        session,
        "Weights: {} knows the classes in another order ({}): their outputs are put by name",
        spec.flags.weights, first_few(known.file));
  }
}

/// A training that goes on from the weights of another one gets the bits of both in one go from the
/// same kernels only.
void warn_of_other_kernels(const Session& session, const TrainingSpec& spec,
                           const weights::WeightArrays& file) {
  const std::string then = weights::kernels_of(file), now = session.backend->facts().kernels;
  if (!spec.flags.reproducible || then.empty() || then == now) return;
  warn_once(session,
            "--weights {} come from a reproducible training with other kernels ({}; here: {}): the "
            "bits are not those of one training",
            spec.flags.weights, printable(then), now);
}

/// What is done to the images of this training.
weights::Preprocessing preprocessing_here(const TrainingPlan& plan,
                                          const data::DataSource& source) {
  const TrainingFlags& flags = plan.spec.flags;
  const std::string data = flags.data_or_synthetic();
  const auto packed = source.dataset->ready_form();
  weights::Preprocessing here{
      .image = plan.graph.image(), .pixels = plan.graph.input(), .packed = packed.has_value()};
  if (data::parse_data_spec(data).word != data::kSynthetic) here.resize = plan.spec.resize;
  if (packed) {
    here.exif = packed->exif;
  } else if (data::may_have_exif(data)) {
    here.exif = flags.exif_choice();
  }
  return here;
}

void say_what_is_taken_for_granted(const Session& session, const TrainingPlan& plan,
                                   const weights::WeightArrays& file) {
  const TrainingSpec& spec = plan.spec;
  if (file.describes_itself()) return;
  // A file of another program has arrays alone, or Keras' layers beside them.
  const char* of_itself =
      file.says_layers ? "says its layers, which were read, and neither its classes nor its data"
                       : "says nothing about itself";
  const auto& input = plan.graph.input();
  const std::string origin = file.origin.empty() ? "Keras' layout" : file.origin;
  say_detail_once(session,
                  "Weights: {} {}: its arrays are taken by name, in {}, for {} and images of {}, "
                  "pixels as {} (--normalize must say what they were when it learnt); outputs for "
                  "the classes in the order of the data",
                  spec.flags.weights, of_itself, origin, spec.model->name,
                  shape_text(plan.graph.image()), model::normalization_text(input));
}

/// A last kernel that nothing was taken for begins as zeros: all classes are then as likely, where
/// numbers drawn for few outputs of many inputs would begin with answers that are sure and wrong.
void clear_new_head(const model::Graph& graph, const weights::WeightMatch& loaded,
                    const compute::Program& program, const Array& weights) {
  const std::vector<std::string> head = model::head_layers(graph);
  if (head.empty()) return;
  const std::string kernel = head.front() + "/kernel";
  if (loaded.takes(kernel)) return;
  // Behind zeros a ReLU would let no gradient through.
  const auto dies = [](const model::Graph::Node& node) {
    return model::facts_of(node.layer).dies_at_zero;
  };
  const auto& nodes = graph.nodes();
  const auto at = std::ranges::find(nodes, head.front(), &model::Graph::Node::name);
  if (std::any_of(at, nodes.end(), dies)) return;
  const auto& parameters = program.layout().parameters;
  const auto p = static_cast<std::size_t>(
      std::ranges::find(parameters, kernel, &compute::Parameter::name) - parameters.begin());
  program.parameters().from_canonical(p, std::vector<double>(parameters[p].count), weights);
}

/// Frozen layers are to keep what was learnt elsewhere.
void warn_of_frozen_gaps(const Session& session, const TrainingPlan& plan,
                         const weights::WeightMatch& loaded) {
  const auto taken = [&](const auto& parameter) { return loaded.takes(parameter.name); };
  std::vector<std::string> left;
  for (const auto& node : plan.graph.nodes()) {
    if (node.frozen && !std::ranges::all_of(node.parameters, taken)) left.push_back(node.name);
  }
  if (left.empty()) return;
  warn_once(session,
            "--freeze {}: --weights {} lacks arrays of {}, frozen all the same (they stay as they "
            "were drawn at random); freeze other layers, or use a file that has them",
            join(plan.spec.flags.freeze, ","), plan.spec.flags.weights, first_few(left));
}

/// Returns the table of what was taken; empty where that is the whole of a file of this program.
std::string load_start(const Session& session, const TrainingPlan& plan,
                       const data::DataSource& source, const CompiledTraining& compiled,
                       const weights::WeightArrays& file) {
  const TrainingSpec& spec = plan.spec;
  const compute::Program& program = *compiled.program;
  const model::ClassOutputs outputs = model::class_outputs(plan.graph);
  weights::check_outputs_agree(file, outputs);
  const std::vector<std::string> classes = class_names(source, plan.classes);
  const KnownClasses known = known_classes(plan, source, file);
  const bool partial = weights::begins_in_part(file, plan.graph, spec.flags.partial);
  const auto load = partial ? weights::load_fitting_weights : weights::load_weights;
  const weights::WeightMatch loaded =
      load(file, program, compiled.exchange->arenas().weights, known.rows);
  if (partial) {
    clear_new_head(plan.graph, loaded, program, compiled.exchange->arenas().weights);
  }
  if (!loaded.nonfinite.empty()) {
    fail(ExitCode::data,
         weights::nonfinite_text(spec.flags.weights, loaded.nonfinite, loaded.rows.size()) +
             " (no training can go on from them); use those of a training whose "
             "loss was a number");
  }
  say_what_is_taken_for_granted(session, plan, file);
  const std::string& path = spec.flags.weights;
  for (const std::string& line : preprocessing_differences(path, weights::preprocessing_of(file),
                                                           preprocessing_here(plan, source))) {
    warn_once(session, line);
  }
  if (!file.caveat.empty()) {
    warn_once(session, "--weights {}: {}", spec.flags.weights, file.caveat);
  }
  if (partial) warn_of_frozen_gaps(session, plan, loaded);
  const bool tells = partial || !file.origin.empty();
  const std::string taken = "Weights: " + taken_text(file, loaded, known.match, path);
  if (tells && session.told.insert(taken).second) say(session, taken);
  const bool outputs_loaded = std::ranges::any_of(loaded.rows, [&](const auto& row) {
    return row.fit == weights::Fit::whole &&
           (outputs.arrays.empty() || std::ranges::count(outputs.arrays, row.parameter) > 0);
  });
  if (outputs_loaded) say_classes(session, spec, known, classes);
  if (!partial) warn_of_other_kernels(session, spec, file);
  return tells ? taken_table(file, loaded) : "";
}

/// The arrays of --weights for the network of the plan.
weights::WeightArrays arrays_of_flags(const Session& session, const TrainingPlan& plan) {
  const TrainingFlags& flags = plan.spec.flags;
  return weights::open_arrays(flags.weights, plan.graph, plan.spec.model->modules,
                              session.services.read_keras, flags.partial);
}

/// Accuracy is too good where images for validation are among those that weights learnt from. Where
/// files have changed they may also be other data at the same place.
void warn_of_learnt_images(const Session& session, const TrainingSpec& spec,
                           const data::DataSource& source, const weights::PastTraining& past) {
  if (source.validation.empty()) return;
  const std::string& file = spec.flags.weights;
  const Learnt learnt = learnt_from(past, source, spec.flags.data_request(spec.seed));
  const bool other = learnt == Learnt::not_known_to || learnt == Learnt::from_some;
  const std::string image = other ? learnt_image(past, source, source.validation) : "";
  if (!image.empty()) {
    warn_once(session,
              "--weights {} learnt from images that are for validation here, such as {}: its "
              "accuracy will be too good",
              file, image);
  } else if (source.own_validation) {
    return;
  } else if (learnt == Learnt::from_all || learnt == Learnt::earlier) {
    warn_once(session,
              "--weights {} learnt from this data with another validation part (another --seed or "
              "--validation-split): images for validation are among those, so its accuracy will be "
              "too good",
              file);
  } else if (learnt == Learnt::from_some) {
    warn_once(session,
              "--weights {} learnt from files here, which have changed since, and so has the "
              "validation part: images for validation may be among those that it learnt from, and "
              "its accuracy too good; folders train and val keep the parts apart",
              file);
  }
}

/// What the weights of a training on this data will hold about it: earlier trainings, whose weights
/// it begins with, included.
weights::TrainingData training_data(const Session& session, const TrainingSpec& spec,
                                    const data::DataSource& source,
                                    const weights::WeightArrays* start) {
  const data::DataRequest request = spec.flags.data_request(spec.seed);
  const auto past = start ? weights::past_training(*start) : std::nullopt;
  if (past) warn_of_learnt_images(session, spec, source, *past);
  weights::TrainingData data = data_to_keep(source, request, past);
  if (session.leads()) remember_images(data, source, spec.seed);
  return data;
}

}  // namespace

std::vector<std::string> class_names(const data::DataSource& source, int classes) {
  std::vector<std::string> names = source.dataset->classes();
  for (int label = static_cast<int>(names.size()); label < classes; ++label) {
    names.push_back(data::name_of_nameless(names, static_cast<std::size_t>(label)));
  }
  return names;
}

void check_layouts(const Session& session, const CompiledTraining& compiled) {
  check_agreement(session, "how their weights lie in memory (processors of different kinds?)",
                  fmt::format("{:016x}", compute::layout_fingerprint(*compiled.program,
                                                                     session.backend->memory())));
}

weights::TrainingData resumed_data(const Session& session, const TrainingSpec& spec,
                                   const data::DataSource& source,
                                   const std::filesystem::path& checkpoint) {
  const data::DataRequest request = spec.flags.data_request(spec.seed);
  if (!session.leads()) return data_to_keep(source, request);
  const weights::WeightArrays file =
      weights::safetensors::open(checkpoint / checkpoint::kModelName);
  return data_to_keep(source, request, weights::past_training(file));
}

void check_first_weights(const Session& session, const TrainingPlan& plan,
                         const data::DataSource& source) {
  const TrainingFlags& flags = plan.spec.flags;
  if (flags.weights.empty()) return;
  if (session.leads()) {
    const weights::WeightArrays file = arrays_of_flags(session, plan);
    weights::check_fits(file, plan.graph, flags.partial, known_classes(plan, source, file).rows);
  }
  session.communicator->barrier();  // a refusal is rank 0's, and the job's
}

std::pair<weights::TrainingData, std::string> start_weights(const Session& session,
                                                            const TrainingPlan& plan,
                                                            const data::DataSource& source,
                                                            const CompiledTraining& compiled) {
  const TrainingSpec& spec = plan.spec;
  const Array weights = compiled.exchange->arenas().weights;
  const compute::Program& program = *compiled.program;
  check_layouts(session, compiled);
  // Opened once: it stays the same file where its name gets another one meanwhile.
  std::optional<weights::WeightArrays> file;
  if (session.leads() && !spec.flags.weights.empty()) {
    file = arrays_of_flags(session, plan);
  }
  if (session.leads() && (!file || spec.flags.partial || !file->describes_itself())) {
    weights::initialise_weights(plan.graph, program, spec.seed, weights);
  }
  std::string table = file ? load_start(session, plan, source, compiled, *file) : "";
  compiled.exchange->spread_weights();
  check_agreement(session, "their first weights",
                  fmt::format("{:016x}", compute::hash_of(session.backend->memory(), weights)));
  return {training_data(session, spec, source, file ? &*file : nullptr), std::move(table)};
}

}  // namespace cputrain::training
