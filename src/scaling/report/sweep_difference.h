#pragma once

#include "scaling/report/forms/document.h"
#include "scaling/report/scaling_table.h"

namespace cputrain::report {

/// `absent`: one of the two has no time or one repeat, or an epoch is other work in the other.
enum class Verdict { faster, slower, no_difference_shown, absent };
/// "faster", "slower", "no difference shown", "n/a".
std::string verdict_text(Verdict);

/// One place (CPUs, ranks x threads, batch, backend) of two sweeps.
struct CellDifference {
  cells::Cell before, after;
  std::optional<TimeRatio> ratio;  ///< after by before; nothing without a time, or of other work
  Verdict verdict = Verdict::absent;
  std::string why;  ///< where there is no interval

  /// 95 % of the ratio; nullptr where there is none.
  const Interval* interval() const {
    return ratio && ratio->interval ? &*ratio->interval : nullptr;
  }
};

/// Cells of both, in the order of `before`. A verdict needs a 95 % interval that leaves out 1.
/// Cells whose times have other sources (measured, simulated) are compared and say so; those of
/// sweeps with another model, image size or images per epoch, where both say theirs, are absent.
std::vector<CellDifference> compare_sweeps(const cells::CellTable& before,
                                           const cells::CellTable& after);

/// "They differ in model: dogcat and vgg16.": what makes two sweeps' times incomparable, or what
/// the comparison is about (processors, builds, flags).
std::vector<std::string> conditions_that_differ(const cells::CellTable& before,
                                                const cells::CellTable& after);

Document difference_document(const std::vector<CellDifference>&, const CellSource& before,
                             const CellSource& after);
std::string difference_csv(const std::vector<CellDifference>&);
nlohmann::ordered_json difference_json(const std::vector<CellDifference>&, const CellSource& before,
                                       const CellSource& after);

}  // namespace cputrain::report
