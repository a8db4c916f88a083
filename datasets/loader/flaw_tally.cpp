#include "datasets/loader/flaw_tally.h"

#include <fmt/format.h>

#include "core/casts.h"
#include "core/text.h"

namespace cputrain::datasets {
namespace {

using Row = data::CheckReport::FlawRow;

constexpr std::size_t kExamples = 3, kNamedClasses = 5;
constexpr std::size_t kTold = 10;  ///< one image in so many of a class is worth a warning

/// "60 of 60 images of class 'a' and 3 of 20 of 'b'".
std::string classes_text(const std::vector<Row>& rows) {
  std::vector<std::string> classes;
  for (std::size_t i = 0; i < std::min(rows.size(), kNamedClasses); ++i) {
    classes.push_back(fmt::format("{} of {}{} '{}'", rows[i].images, rows[i].of,
                                  i == 0 ? " images of class" : " of", rows[i].label));
  }
  std::string text = join(classes, ", ");
  if (rows.size() > kNamedClasses) {
    text += fmt::format(" and such of {} more classes", rows.size() - kNamedClasses);
  }
  return text;
}

std::string warning_of(const std::vector<Row>& rows) {
  const data::Flaw flaw = rows.front().flaw;
  const bool turned = flaw == data::Flaw::unturned;
  return fmt::format("{} {} (first: {}{}); {}", classes_text(rows), data::flaw_text(flaw),
                     rows.front().examples.front(),
                     turned ? "" : "; a network finds nothing in them",
                     turned ? data::flaw_remedy(flaw)
                            : std::string("'cputrain data check' lists them with a remedy"));
}

}  // namespace

FlawTally::FlawTally(const data::Dataset& data) : data_(data), images_(data.classes().size()) {}

void FlawTally::add(std::uint32_t sample, data::Flaw flaw) {
  const int label = data_.label(sample);
  ++images_[to_size(label)];
  if (flaw == data::Flaw::none) return;
  Count& count = flawed_[{flaw, label}];
  ++count.images;
  if (count.examples.size() < kExamples) count.examples.push_back(sample);
}

std::vector<Row> FlawTally::rows() const {
  std::vector<Row> rows;
  for (const auto& [key, count] : flawed_) {
    const auto label = to_size(key.second);
    Row row{key.first, data_.classes()[label], count.images, images_[label], {}};
    for (const std::uint32_t sample : count.examples) row.examples.push_back(data_.name(sample));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> FlawTally::warnings() const {
  std::map<data::Flaw, std::vector<Row>> many;
  for (Row& row : rows()) {
    if (row.images * kTold >= row.of) many[row.flaw].push_back(std::move(row));
  }
  std::vector<std::string> sentences;
  for (const auto& [flaw, classes] : many) sentences.push_back(warning_of(classes));
  return sentences;
}

}  // namespace cputrain::datasets
