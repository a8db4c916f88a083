#include "datasets/folders/empty_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/casts.h"
#include "core/error.h"
#include "core/text.h"

namespace cputrain::datasets {

std::string describe_empty_classes(const std::vector<EmptyClass>& classes) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kShown, classes.size()); ++i) {
    parts.push_back(fmt::format("'{}' ({})", classes[i].name, classes[i].why));
  }
  if (classes.size() > kShown) parts.push_back(fmt::format("{} more", classes.size() - kShown));
  return fmt::format("no image can be read of class{} {}", classes.size() == 1 ? "" : "es",
                     join(parts, ", "));
}

std::string check_empty_classes(const std::vector<EmptyClass>& classes, bool allowed) {
  if (classes.empty()) return {};
  const std::string what = describe_empty_classes(classes);
  if (allowed) return what + "; the network keeps an output for it, which learns nothing";
  fail(ExitCode::data,
       what +
           "; a class without images cannot be learnt, and without it the network would have "
           "other outputs: add images or remove the folder, or keep the class with "
           "--allow-empty-classes ('cputrain data check' lists what is not read)");
}

std::vector<EmptyClass> lost_classes(const data::Dataset& data,
                                     std::span<const std::uint32_t> listed,
                                     const std::set<int>& left,
                                     const std::vector<data::BadSample>& bad) {
  std::map<int, std::vector<std::uint32_t>> lost;
  for (const std::uint32_t sample : listed) {
    const int label = data.label(sample);
    if (!left.contains(label)) lost[label].push_back(sample);
  }
  std::vector<EmptyClass> classes;
  for (const auto& [label, samples] : lost) {
    const std::string name = data.name(data.view(samples.front()).image);
    const auto first = std::ranges::find(bad, name, &data::BadSample::name);
    const std::string why = first == bad.end()
                                ? ""
                                : fmt::format("; first '{}': {}, {}", name,
                                              word_of(first->result.status), first->result.detail);
    classes.push_back({data.classes()[to_size(label)],
                       fmt::format("none of its {} training images{}", samples.size(), why)});
  }
  return classes;
}

}  // namespace cputrain::datasets
