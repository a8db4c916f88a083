#include "data/classes/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/classes/alike_names.h"

namespace cputrain::data {
namespace {

/// Behind a number's name as often as that is one of the names.
constexpr std::string_view kNoName = " (no name)";

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
  std::vector<std::uint8_t> file(std::size_t index) const override { return data_->file(index); }
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

std::string class_names_mistake(std::span<const std::string> names) {
  // A byte becomes at most seven as escapes inside of escapes; a weight file's head has 100 MB.
  constexpr std::size_t kMostBytes = 1000, kMostInAll = std::size_t{8} << 20;
  std::size_t all = 0;
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    const auto mistake = [&](const char* what) {
      return fmt::format("class name '{}' {}", printable(name), what);
    };
    all += name.size();
    if (name.empty()) return mistake("is empty");
    if (!is_utf8(name)) return mistake("is not UTF-8");
    if (name.find('\0') != std::string::npos) return mistake("holds a zero byte");
    if (name.size() > kMostBytes) return mistake("has more than 1000 bytes");
    if (!seen.insert(name).second) return mistake("stands for two classes");
  }
  return all > kMostInAll ? "the class names have more than 8 MiB together" : "";
}

void check_class_names(const std::string& data, std::span<const std::string> names) {
  const std::string mistake = class_names_mistake(names);
  if (mistake.empty()) return;
  fail(ExitCode::data,
       "--data '{}': {} (weights trained with it could not be kept with their classes); rename the "
       "class, or convert a list to UTF-8 (iconv does)",
       data, mistake);
}

std::string name_of_nameless(std::span<const std::string> names, std::size_t label) {
  std::string name = fmt::format("class {}", label);
  while (std::ranges::find(names, name) != names.end()) name += kNoName;
  return name;
}

bool is_name_of_nameless(std::string_view name, std::size_t label) {
  while (name.ends_with(kNoName)) name.remove_suffix(kNoName.size());
  return name == fmt::format("class {}", label);
}

bool are_names_of_nameless(std::span<const std::string> names) {
  for (std::size_t label = 0; label < names.size(); ++label) {
    if (!is_name_of_nameless(names[label], label)) return false;
  }
  return true;
}

std::string missing_classes(const DataSource& source, std::span<const std::uint32_t> samples) {
  const std::vector<std::string>& classes = source.dataset->classes();
  std::vector<bool> seen(classes.size());
  for (const std::uint32_t sample : samples) {
    seen[static_cast<std::size_t>(source.dataset->label(sample))] = true;
  }
  const std::set<std::string> empty(source.empty_classes.begin(), source.empty_classes.end());
  std::vector<std::string> missing;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    if (!seen[c] && !empty.contains(classes[c])) missing.push_back(printable(classes[c]));
  }
  if (missing.empty()) return {};
  const std::size_t all = classes.size() - empty.size();
  if (all == 1) return "class " + missing.front();
  return fmt::format("{} of {} classes ({})", missing.size(), all, first_few(missing));
}

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
    fail(ExitCode::data,
         "the data has the class{} {}, which the weights do not know (they know {}; a prediction "
         "for its images could not be right); use data whose class names are among these{}",
         unknown.size() == 1 ? "" : "es", first_few(unknown), first_few(classes),
         are_names_of_nameless(classes)
             ? ", or name the outputs of the weights: export --class-names"
             : "");
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
