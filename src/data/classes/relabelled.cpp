#include "data/classes/relabelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/classes/alike_names.h"
#include "data/classes/class_names.h"

namespace cputrain::data {
namespace {

class Relabelled final : public Dataset {
 public:
  Relabelled(std::unique_ptr<Dataset> data, std::vector<std::string> classes,
             std::vector<int> labels)
      : data_(std::move(data)), classes_(std::move(classes)), labels_(std::move(labels)) {}

  std::size_t size() const override { return data_->size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int label(std::size_t index) const override {
    return labels_[static_cast<std::size_t>(data_->label(index))];
  }
  std::string name(std::size_t index) const override { return data_->name(index); }
  ReadResult read(std::size_t index, Shape image, const Resizing& resize,
                  std::span<std::uint8_t> dst) const override {
    return data_->read(index, image, resize, dst);
  }
  SampleFacts inspect(std::size_t index) const override { return data_->inspect(index); }
  std::optional<std::uint64_t> content(std::size_t index) const override {
    return data_->content(index);
  }
  std::uint64_t fingerprint() const override { return data_->fingerprint(); }
  std::uint64_t origin() const override { return data_->origin(); }
  View view(std::size_t index) const override { return data_->view(index); }
  std::optional<ReadyForm> ready_form() const override { return data_->ready_form(); }

 private:
  std::unique_ptr<Dataset> data_;
  std::vector<std::string> classes_;
  std::vector<int> labels_;  ///< by the data's own label
};

/// The data's classes are those of nameless ones, by order.
void take_by_order(DataSource& source, std::span<const std::string> classes) {
  source.warnings.push_back(fmt::format(
      "the weights have no names of classes ({}), so theirs are taken for those of the data in "
      "this order: {} (in another order no figure would be right); give names to them: export "
      "--class-names",
      first_few(classes), first_few(source.dataset->classes())));
}

}  // namespace

void give_classes(DataSource& source, std::vector<std::string> classes) {
  const Dataset& data = *source.dataset;
  const std::vector<std::string>& own = data.classes();
  if (own == classes) return;
  std::vector<bool> used(own.size());
  for (std::size_t i = 0; i < data.size(); ++i)
    used[static_cast<std::size_t>(data.label(i))] = true;
  const NameMatch match = match_names(own, classes);
  const bool none_known =
      std::ranges::none_of(match.place, [](auto place) { return place.has_value(); });
  if (none_known && own.size() == classes.size() && are_names_of_nameless(classes)) {
    take_by_order(source, classes);
    return;
  }
  std::vector<std::string> unknown;
  std::vector<int> labels(own.size(), 0);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (match.place[i]) {
      labels[i] = static_cast<int>(*match.place[i]);
    } else if (used[i]) {
      unknown.push_back(own[i]);
    }
  }
  if (!unknown.empty()) {
    fail(
        ExitCode::data,
        fmt::format("the data has the class{} {}, which the weights do not know (they know {}; a "
                    "prediction for its images could not be right); use data whose class names are "
                    "among these{}",
                    unknown.size() == 1 ? "" : "es", first_few(unknown), first_few(classes),
                    are_names_of_nameless(classes)
                        ? ", or name the outputs of the weights: export --class-names"
                        : ""));
  }
  if (!match.alike.empty()) {
    source.warnings.push_back(
        fmt::format("classes are known to the weights by names that look "
                    "alike: {}",
                    alike_text(match, own, classes)));
  }
  source.dataset = std::make_unique<Relabelled>(std::move(source.dataset), std::move(classes),
                                                std::move(labels));
}

}  // namespace cputrain::data
