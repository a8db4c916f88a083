#pragma once

#include <functional>

#include "scaling/cells/cells.h"
#include "scaling/report/trainings/run_record.h"

namespace cputrain::report {

/// What a report of runs is made from.
struct RunList {
  std::vector<RunRecord> runs{};            ///< by best accuracy of validation, the best first
  std::vector<std::string> left_out{};      ///< folders that hold no run
  std::vector<std::string> sweeps{};        ///< folders that hold a sweep, beside runs
  std::optional<double> wanted_accuracy{};  ///< --target-accuracy of the report
  cells::Prices prices{};
};

/// What the whole training cost; nothing where its backend has no price or its seconds are unknown.
std::optional<double> cost_of(const RunRecord&, const cells::Prices&);

/// Training loss of the last epoch; nothing where it is not finite.
std::optional<double> last_loss(const RunRecord&);

/// Names that several runs have get the folders before them: "first/run", "second/run".
void tell_names_apart(std::vector<RunRecord>&);

/// The best first, then the quicker to it; those without a validation at the end, by their names.
void sort_by_accuracy(std::vector<RunRecord>&);

/// Runs of one configuration, which differ in the seed at most.
struct Repeats {
  std::vector<const RunRecord*> runs;
  std::string what;  ///< what tells it from the other runs: "batch 128, augment flip"
};

/// Groups of two runs at least, in the order of their best runs. Borrows the list.
std::vector<Repeats> repeats_of(const std::vector<RunRecord>&);

/// The last name of each path in a text such as "cifar10:/data/cifar".
std::string without_folders(const std::string& text);

/// Something that a person chose for a run, or that it ran on.
struct Choice {
  std::string head;  ///< a column's
  std::function<std::string(const RunRecord&)> text;
  std::function<std::string(const RunRecord&)> words;              ///< in a sentence
  std::function<std::optional<double>(const RunRecord&)> value{};  ///< to sort by
};

/// Model, data, image size, ranks and threads, backend, batch, optimizer, machine: of these runs,
/// since long paths are cut to the part that tells them apart.
std::vector<Choice> choices_of(const std::vector<RunRecord>&);

}  // namespace cputrain::report
