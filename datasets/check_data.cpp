#include "datasets/check_data.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "datasets/published.h"
#include "datasets/views.h"
#include "datasets/work_arena.h"

namespace cputrain {
namespace {

std::vector<SampleFacts> inspect_all(const DataSource& source,
                                     const std::vector<std::uint32_t>& samples, int threads,
                                     const Progress& progress) {
  std::vector<SampleFacts> facts(samples.size());
  std::atomic<std::size_t> done{0};
  WorkArena(threads).for_each(
      samples.size(),
      [&](std::size_t i) {
        facts[i] = source.dataset->inspect(samples[i]);
        done.fetch_add(1, std::memory_order_acq_rel);
      },
      [&] {
        const std::size_t now = done.load(std::memory_order_acquire);
        if (progress) progress(now, samples.size());
      });
  return facts;
}

/// Damaged copies count as duplicates too, empty files do not: they have no content.
void find_duplicates(const DataSource& source, const std::vector<std::uint32_t>& samples,
                     const std::vector<SampleFacts>& facts, CheckReport& report) {
  const auto shown_in_train = pictures_of(*source.dataset, source.train);
  const auto shown_in_validation = pictures_of(*source.dataset, source.validation);
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_content;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (facts[i].content != 0) by_content[facts[i].content].push_back(samples[i]);
  }
  std::vector<std::vector<std::uint32_t>> groups;
  for (auto& [content, group] : by_content) groups.push_back(std::move(group));
  std::ranges::sort(groups);
  const auto in = [](const std::vector<std::uint32_t>& part, std::uint32_t sample) {
    return std::ranges::binary_search(part, sample);
  };
  for (const auto& group : groups) {
    std::vector<std::string> names;
    bool train = false, validation = false;
    for (const std::uint32_t sample : group) {
      names.push_back(source.dataset->name(sample));
      train |= in(shown_in_train, sample);
      validation |= in(shown_in_validation, sample);
    }
    if (group.size() > 1) report.duplicates.push_back(names);
    if (train && validation) report.leaks.push_back(std::move(names));
  }
}

void count_classes(const DataSource& source, CheckReport& report) {
  for (const std::string& name : source.dataset->classes()) report.classes.push_back({name, 0, 0});
  const auto class_of = [&](std::uint32_t sample) -> CheckReport::ClassCount& {
    return report.classes[static_cast<std::size_t>(source.dataset->label(sample))];
  };
  for (const std::uint32_t sample : source.train) ++class_of(sample).train;
  for (const std::uint32_t sample : source.validation) ++class_of(sample).validation;
}

}  // namespace

CheckReport check_data(const DataSource& source, int threads, const Progress& progress) {
  std::vector<std::uint32_t> samples = source.train;
  samples.insert(samples.end(), source.validation.begin(), source.validation.end());
  samples = pictures_of(*source.dataset, samples);
  const auto facts = inspect_all(source, samples, threads, progress);
  CheckReport report;
  report.samples = samples.size();
  report.ignored = source.ignored;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const ReadResult& result = facts[i].result;
    const std::string name = source.dataset->name(samples[i]);
    ++report.by_status[static_cast<std::size_t>(result.status)];
    if (result.status != ReadStatus::ok) {
      report.bad.push_back({name, result.status, result.detail});
    }
    if (facts[i].wrong_extension) report.wrong_extension.push_back(name);
    if (result.warned) report.warned.push_back(name);
  }
  find_duplicates(source, samples, facts, report);
  count_classes(source, report);
  for (const std::string& path : source.containers) {
    if (auto known = compare_with_published(path)) report.known.push_back(std::move(*known));
  }
  return report;
}

}  // namespace cputrain
