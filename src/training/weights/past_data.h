#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "training/session/session.h"
#include "weights/description.h"

/// What weights learnt from, and how its images were made, beside the data that is here.
namespace cputrain::training {

/// Whether a past training learnt from images of data that is divided here.
enum class Learnt {
  not_known_to,   ///< it is other data
  not_from_kept,  ///< it learnt from this data, but for the images that are for validation here
  from_all,       ///< and with another validation part, or with none
  earlier,        ///< a training that came before it learnt from this data
  from_some       ///< files at its place have changed since: which is which is not known
};

/// `source` is what `here` opened.
Learnt learnt_from(const weights::PastTraining&, const data::DataSource& source,
                   const data::DataRequest& here);

/// One of these samples that the past training learnt from, by name; empty where that cannot be
/// proven: an image of the same class, name and bytes, or of the same data where either is packed.
/// It knows some of its images alone, so what is few images in common may stay unseen.
std::string learnt_image(const weights::PastTraining&, const data::DataSource&,
                         std::span<const std::uint32_t> samples);

/// Some images of the training part, for learnt_image(): up to 64 are read.
void remember_images(weights::TrainingData&, const data::DataSource&, std::uint64_t seed);

/// Whether the past training divided data by the same seed and share.
bool is_divided_alike(const weights::PastTraining&, const data::DataRequest& here);

/// What the weights of a training will hold about its data. `past`: of the weights that it begins
/// with.
weights::TrainingData data_to_keep(const data::DataSource&, const data::DataRequest&,
                                   const std::optional<weights::PastTraining>& past = {});

// What is done to images before a network sees them, beside what was done where its weights learnt
// from them: another size, other numbers or other pixels cost accuracy, and nothing else shows it.

/// "--weights FILE learnt from ...; here it is ... (--FLAG says how)", for each member that both
/// know and that differs.
std::vector<std::string> preprocessing_differences(const std::string& weights,
                                                   const weights::Preprocessing& then,
                                                   const weights::Preprocessing& here);

// Which images `eval` looks at: those that tell most about weights, and none that they were learnt
// from where that can be known.

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
EvaluationPart open_to_evaluate(const TrainingFlags&, const Session&,
                                const weights::ModelDescription&);

}  // namespace cputrain::training
