#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "data/check_report.h"
#include "job/session/session.h"
#include "system/print.h"

namespace cputrain {
namespace {

using Json = nlohmann::ordered_json;

Json classes_json(const std::vector<CheckReport::ClassCount>& classes) {
  Json list = Json::array();
  for (const auto& c : classes) {
    list.push_back(
        {{"name", c.name}, {"train", c.train}, {"validation", c.validation}, {"test", c.test}});
  }
  return list;
}

Json unread_json(const std::vector<UnreadFile>& files) {
  Json list = Json::array();
  for (const UnreadFile& file : files) {
    list.push_back({{"path", file.path}, {"reason", file.reason}});
  }
  return list;
}

Json report_json(const CheckReport& report) {
  Json counts = Json::object(), bad = Json::array(), known = Json::array();
  for (const auto& file : report.known) {
    known.push_back(
        {{"path", file.path}, {"as_published", file.as_published}, {"verdict", file.verdict}});
  }
  for (int status = 0; status < kReadStatuses; ++status) {
    counts[std::string(status_name(static_cast<ReadStatus>(status)))] =
        report.by_status[static_cast<std::size_t>(status)];
  }
  for (const auto& file : report.bad) {
    bad.push_back(
        {{"path", file.path}, {"reason", status_name(file.reason)}, {"detail", file.detail}});
  }
  return {{"samples", report.samples},
          {"counts", std::move(counts)},
          {"ignored", report.ignored},
          {"not_read", unread_json(report.unread)},
          {"bad", std::move(bad)},
          {"wrong_extension", report.wrong_extension},
          {"warned", report.warned},
          {"duplicates", report.duplicates},
          {"in_training_and_validation", report.leaks},
          {"in_training_and_test", report.test_leaks},
          {"under_several_labels", report.conflicts},
          {"empty_classes", report.empty_classes},
          {"classes", classes_json(report.classes)},
          {"known_files", std::move(known)}};
}

/// The first few of a list, and how many more there are.
void print_some(const std::string& title, const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 10;
  if (items.empty()) return;
  print("{}: {}\n", title, with_commas(items.size()));
  for (std::size_t i = 0; i < std::min(kShown, items.size()); ++i) print("  {}\n", items[i]);
  if (items.size() > kShown) print("  ... and {} more (--json lists all)\n", items.size() - kShown);
}

std::vector<std::string> joined(const std::vector<std::vector<std::string>>& groups) {
  std::vector<std::string> lines;
  for (const auto& group : groups) lines.push_back(join(group, " = "));
  return lines;
}

void print_unread(const std::vector<UnreadFile>& files) {
  std::map<std::string_view, std::vector<std::string>> by_reason;
  for (const UnreadFile& file : files) by_reason[file.reason].push_back(file.path);
  for (const auto& [reason, paths] : by_reason) {
    print_some(fmt::format("Not read, {}", reason), paths);
  }
}

void print_classes(const std::vector<CheckReport::ClassCount>& classes) {
  for (const auto& c : classes) {
    print("Class {}: {} for training, {} for validation{}\n", c.name, with_commas(c.train),
          with_commas(c.validation),
          c.test > 0 ? fmt::format(", {} for test", with_commas(c.test)) : "");
  }
}

void print_report(const CheckReport& report) {
  print("{} images listed, {} can be used, {} other files ignored\n", with_commas(report.samples),
        with_commas(report.by_status[0]), with_commas(report.ignored));
  for (const auto& file : report.bad) {  // every one: this is what the command is for
    print("  {}: {} ({})\n", file.path, status_name(file.reason), file.detail);
  }
  print_some("Named as another format (used all the same)", report.wrong_extension);
  print_some("Decoded with complaints (used all the same)", report.warned);
  print_some("The same content more than once", joined(report.duplicates));
  print_some("In training and in validation, so accuracy will look too good", joined(report.leaks));
  print_some("In training and in test, so accuracy will look too good", joined(report.test_leaks));
  print_some("Under several labels", joined(report.conflicts));
  print_unread(report.unread);
  print_some("Classes without an image that can be read", report.empty_classes);
  for (const auto& file : report.known) print("{}: {}\n", file.path, file.verdict);
  print_classes(report.classes);
}

}  // namespace

int run_data_check(const Config& config, const Services& services) {
  const Session session = start_session(config, services);
  if (!session.leads()) return static_cast<int>(ExitCode::ok);
  DataRequest request = config.data_request(config.seed.value_or(0));
  request.allow_empty_classes = true;  // they are found here, beside what else is wrong
  request.list_unread = true;
  const DataSource source = services.data.open(request);
  say_data(session, source);
  const CheckReport report = services.data.check(
      source, config.io_threads.value_or(session.threads), progress_line(session, "Checking"));
  if (config.json != "-") print_report(report);
  write_result(session, config.json, json_text(report_json(report)) + "\n");
  const bool good =
      report.bad.empty() && (report.empty_classes.empty() || config.allow_empty_classes);
  return static_cast<int>(good ? ExitCode::ok : ExitCode::data);
}

int run_data_info(const Config& config, const Services& services) {
  const Session session = start_session(config, services);
  if (!session.leads()) return static_cast<int>(ExitCode::ok);
  const DataSource source = services.data.open(config.data_request(config.seed.value_or(0)));
  const std::vector<CheckReport::ClassCount> classes = count_classes(source);
  say_warnings(session, source);
  if (config.json != "-") {
    print("{}\n", source.description);
    print_classes(classes);
    print("Fingerprint {:016x}\n", source.dataset->fingerprint());
  }
  const Json result{{"data", config.data},
                    {"samples", source.dataset->size()},
                    {"train", source.train.size()},
                    {"validation", source.validation.size()},
                    {"test", source.test.size()},
                    {"ignored", source.ignored},
                    {"fingerprint", fmt::format("{:016x}", source.dataset->fingerprint())},
                    {"classes", classes_json(classes)}};
  write_result(session, config.json, json_text(result) + "\n");
  return static_cast<int>(ExitCode::ok);
}

int run_data_pack(const Config& config, const Services& services) {
  constexpr int kSide = 256;
  const Session session = start_session(config, services);
  if (!session.leads()) return static_cast<int>(ExitCode::ok);
  const DataSource source = services.data.open(config.data_request(config.seed.value_or(0)));
  say_data(session, source);
  const int side = config.image_size.value_or(kSide);
  const PackReport report = services.data.pack(source, {config.files[1],
                                                        {side, side, 3},
                                                        config.resize.value_or(Resize::bilinear),
                                                        config.io_threads.value_or(session.threads),
                                                        progress_line(session, "Packing")});
  for (const BadSample& bad : report.bad) {
    warn(session, fmt::format("left out {}: {} ({})", bad.name, status_name(bad.result.status),
                              bad.result.detail));
  }
  if (!report.empty_classes.empty()) warn(session, report.empty_classes);
  if (config.json != "-") {
    print("{} pictures of {}x{} packed into {} ({}); train with --data {} --image-size {}\n",
          with_commas(report.pictures), side, side, config.files[1],
          bytes_text(static_cast<double>(report.bytes)), config.files[1], side);
  }
  const Json result{{"file", config.files[1]},
                    {"pictures", report.pictures},
                    {"left_out", report.bad.size()},
                    {"bytes", report.bytes}};
  write_result(session, config.json, json_text(result) + "\n");
  return static_cast<int>(ExitCode::ok);
}

int run_data_synth(const Config& config, const Services& services) {
  constexpr int kSide = 64;
  const Session session = start_session(config, services);
  if (!session.leads()) return static_cast<int>(ExitCode::ok);
  const int side = config.image_size.value_or(kSide);
  const std::string& folder = config.files.front();
  services.data.synth(
      {folder, config.images, {side, side, 3}, config.format, config.seed.value_or(0)});
  print("{} made-up pictures of two classes in {}; train with --data {} --image-size {}\n",
        with_commas(config.images), folder, folder, side);
  return static_cast<int>(ExitCode::ok);
}

}  // namespace cputrain
