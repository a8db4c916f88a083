#pragma once

#include "training/session/session.h"
#include "weights/description.h"

/// Which images `eval` looks at: those that tell most about weights, and none that they were learnt
/// from where that can be known.
namespace cputrain::training {

struct EvaluationPart {
  /// Its validation part is what to look at; labels are the weights' outputs.
  data::DataSource source;
  std::string name;       ///< "test", "validation" or "all": a word for programs
  std::string why;        ///< for people: "its 'test' folder"
  bool doubtful = false;  ///< images that training learnt from may be or are among them
};

/// The data's test part; of the data of the training, what it kept for validation; of other data
/// its own validation part; else all of it. --validation-split or --seed ask for a part made by
/// them. --limit-val applies to what was chosen. Error(data) where the data has classes that the
/// weights do not know.
EvaluationPart open_to_evaluate(const TrainingFlags&, const Services&,
                                const weights::ModelDescription&);

}  // namespace cputrain::training
