#include "datasets/check_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "core/casts.h"
#include "datasets/folders/empty_classes.h"
#include "datasets/folders/published.h"
#include "datasets/loader/flaw_tally.h"
#include "datasets/loader/views.h"
#include "datasets/loader/work_arena.h"

namespace cputrain::datasets {
namespace {

std::vector<data::SampleFacts> inspect_all(const data::DataSource& source,
                                           const std::vector<std::uint32_t>& samples, int threads,
                                           const data::OnProgress& progress) {
  std::vector<data::SampleFacts> facts(samples.size());
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

/// "a/1.jpg (cat)".
std::vector<std::string> with_classes(const data::Dataset& data,
                                      std::span<const std::uint32_t> group) {
  std::vector<std::string> names;
  for (const std::uint32_t sample : group) {
    const auto label = to_size(data.label(sample));
    names.push_back(fmt::format("{} ({})", data.name(sample), data.classes()[label]));
  }
  return names;
}

/// Damaged copies count as duplicates too, empty files do not: they have no content.
void find_duplicates(const data::DataSource& source, const std::vector<std::uint32_t>& samples,
                     const std::vector<data::SampleFacts>& facts, data::CheckReport& report) {
  const auto shown_in_train = images_of(*source.dataset, source.train);
  const auto shown_in_validation = images_of(*source.dataset, source.validation);
  const auto shown_in_test = images_of(*source.dataset, source.test);
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
    bool train = false, validation = false, test = false;
    std::set<int> labels;
    for (const std::uint32_t sample : group) {
      names.push_back(source.dataset->name(sample));
      train |= in(shown_in_train, sample);
      validation |= in(shown_in_validation, sample);
      test |= in(shown_in_test, sample);
      labels.insert(source.dataset->label(sample));
    }
    if (group.size() > 1) report.duplicates.push_back(names);
    if (train && validation) report.leaks.push_back(names);
    if (train && test) report.test_leaks.push_back(names);
    if (labels.size() > 1) report.conflicts.push_back(with_classes(*source.dataset, group));
  }
}

/// Classes that have training images, but none that can be read, whatever else shows them.
void find_empty_classes(const data::DataSource& source, const std::vector<std::uint32_t>& samples,
                        const std::vector<data::SampleFacts>& facts, data::CheckReport& report) {
  report.empty_classes = source.empty_classes;
  const auto shown_in_train = images_of(*source.dataset, source.train);
  std::set<int> left;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!std::ranges::binary_search(shown_in_train, samples[i])) continue;
    if (facts[i].result.status == data::ReadStatus::ok)
      left.insert(source.dataset->label(samples[i]));
  }
  for (const EmptyClass& lost : lost_classes(*source.dataset, source.train, left, {})) {
    report.empty_classes.push_back(lost.name);
  }
}

}  // namespace

data::CheckReport check_data(const data::DataSource& source, int threads,
                             const data::OnProgress& progress) {
  std::vector<std::uint32_t> samples = source.train;
  samples.insert(samples.end(), source.validation.begin(), source.validation.end());
  samples.insert(samples.end(), source.test.begin(), source.test.end());
  samples = images_of(*source.dataset, samples);
  const auto facts = inspect_all(source, samples, threads, progress);
  data::CheckReport report;
  report.samples = samples.size();
  report.ignored = source.ignored;
  report.unread = source.unread;
  FlawTally flaws(*source.dataset);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const data::ReadResult& result = facts[i].result;
    const std::string name = source.dataset->name(samples[i]);
    ++report.by_status[to_size(result.status)];
    if (result.status != data::ReadStatus::ok) {
      report.bad.push_back({name, result});
    } else {
      flaws.add(samples[i], facts[i].flaw);
    }
    if (facts[i].wrong_extension) report.wrong_extension.push_back(name);
    if (result.warned) report.warned.push_back(name);
    report.turned += result.turned ? 1 : 0;
  }
  report.flaws = flaws.rows();
  find_duplicates(source, samples, facts, report);
  find_empty_classes(source, samples, facts, report);
  report.classes = data::count_classes(source);
  for (const std::string& path : source.containers) {
    if (auto known = compare_with_published(path)) report.known.push_back(std::move(*known));
  }
  return report;
}

}  // namespace cputrain::datasets
