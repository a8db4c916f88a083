#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "data/alike_names.h"
#include "data/check_report.h"
#include "job/session/session.h"
#include "system/print.h"

namespace cputrain::cli {
namespace {

using Json = nlohmann::ordered_json;

Json classes_json(const std::vector<data::CheckReport::ClassCount>& classes) {
  Json list = Json::array();
  for (const auto& c : classes) {
    list.push_back(
        {{"name", c.name}, {"train", c.train}, {"validation", c.validation}, {"test", c.test}});
  }
  return list;
}

Json flaws_json(const std::vector<data::CheckReport::FlawRow>& rows) {
  Json list = Json::array();
  for (const auto& row : rows) {
    list.push_back({{"flaw", data::flaw_name(row.flaw)},
                    {"class", row.label},
                    {"images", row.images},
                    {"of", row.of},
                    {"examples", row.examples},
                    {"remedy", data::flaw_remedy(row.flaw)}});
  }
  return list;
}

std::vector<std::string> names_of(const std::vector<data::CheckReport::ClassCount>& classes) {
  std::vector<std::string> names;
  for (const auto& c : classes) names.push_back(c.name);
  return names;
}

Json unread_json(const std::vector<data::UnreadFile>& files) {
  Json list = Json::array();
  for (const data::UnreadFile& file : files) {
    list.push_back({{"path", file.path}, {"reason", file.reason}});
  }
  return list;
}

Json report_json(const data::CheckReport& report) {
  Json counts = Json::object(), bad = Json::array(), known = Json::array();
  for (const auto& file : report.known) {
    known.push_back(
        {{"path", file.path}, {"as_published", file.as_published}, {"verdict", file.verdict}});
  }
  for (int status = 0; status < data::kReadStatuses; ++status) {
    counts[std::string(data::status_name(static_cast<data::ReadStatus>(status)))] =
        report.by_status[static_cast<std::size_t>(status)];
  }
  for (const auto& file : report.bad) {
    bad.push_back(
        {{"path", file.path}, {"reason", data::status_name(file.reason)}, {"detail", file.detail}});
  }
  return {{"samples", report.samples},
          {"counts", std::move(counts)},
          {"ignored", report.ignored},
          {"not_read", unread_json(report.unread)},
          {"bad", std::move(bad)},
          {"wrong_extension", report.wrong_extension},
          {"warned", report.warned},
          {"flaws", flaws_json(report.flaws)},
          {"turned_by_exif", report.turned},
          {"duplicates", report.duplicates},
          {"in_training_and_validation", report.leaks},
          {"in_training_and_test", report.test_leaks},
          {"under_several_labels", report.conflicts},
          {"empty_classes", report.empty_classes},
          {"names_alike", data::alike_names(names_of(report.classes))},
          {"classes", classes_json(report.classes)},
          {"known_files", std::move(known)}};
}

/// The first few of a list, and how many more there are.
void print_some(const std::string& title, const std::vector<std::string>& items) {
  constexpr std::size_t kShown = 10;
  if (items.empty()) return;
  system::print("{}: {}\n", title, with_commas(items.size()));
  for (std::size_t i = 0; i < std::min(kShown, items.size()); ++i)
    system::print("  {}\n", items[i]);
  if (items.size() > kShown)
    system::print("  ... and {} more (--json lists all)\n", items.size() - kShown);
}

std::vector<std::string> joined(const std::vector<std::vector<std::string>>& groups) {
  std::vector<std::string> lines;
  for (const auto& group : groups) lines.push_back(join(group, " = "));
  return lines;
}

void print_unread(const std::vector<data::UnreadFile>& files) {
  std::map<std::string_view, std::vector<std::string>> by_reason;
  for (const data::UnreadFile& file : files) by_reason[file.reason].push_back(file.path);
  for (const auto& [reason, paths] : by_reason) {
    print_some(fmt::format("Not read, {}", reason), paths);
  }
}

/// By flaw, which is said once with its remedy; a line for each class.
void print_flaws(const data::CheckReport& report) {
  std::map<data::Flaw, std::vector<std::string>> by_flaw;
  for (const auto& row : report.flaws) {
    by_flaw[row.flaw].push_back(
        fmt::format("{}: {} of {} ({}{})", row.label, with_commas(row.images), with_commas(row.of),
                    join(row.examples, ", "), row.images > row.examples.size() ? ", ..." : ""));
  }
  for (const auto& [flaw, lines] : by_flaw) {
    print_some(fmt::format("Classes with images that {}; {}", data::flaw_text(flaw),
                           data::flaw_remedy(flaw)),
               lines);
  }
}

void print_classes(const std::vector<data::CheckReport::ClassCount>& classes) {
  for (const auto& c : classes) {
    system::print("Class {}: {} for training, {} for validation{}\n", c.name, with_commas(c.train),
                  with_commas(c.validation),
                  c.test > 0 ? fmt::format(", {} for test", with_commas(c.test)) : "");
  }
}

void print_report(const data::CheckReport& report, data::Exif exif) {
  system::print("{} images listed, {} can be used, {} other files ignored\n",
                with_commas(report.samples), with_commas(report.by_status[0]),
                with_commas(report.ignored));
  for (const auto& file : report.bad) {  // every one: this is what the command is for
    system::print("  {}: {} ({})\n", file.path, data::status_name(file.reason), file.detail);
  }
  print_some("Named as another format (used all the same)", report.wrong_extension);
  print_some("Decoded with complaints (used all the same)", report.warned);
  print_flaws(report);
  if (report.turned > 0) {
    system::print(
        "Photographs that their EXIF orientation turns{}: {}\n",
        exif == data::Exif::apply ? "" : ", which --exif ignore leaves as they are stored",
        with_commas(report.turned));
  }
  print_some("The same content more than once", joined(report.duplicates));
  print_some("In training and in validation, so accuracy will look too good", joined(report.leaks));
  print_some("In training and in test, so accuracy will look too good", joined(report.test_leaks));
  print_some("Under several labels", joined(report.conflicts));
  print_unread(report.unread);
  print_some("Classes without an image that can be read", report.empty_classes);
  for (const auto& file : report.known) system::print("{}: {}\n", file.path, file.verdict);
  print_classes(report.classes);
}

/// A packed file that is asked for in the other way can no more be turned.
void say_packed_exif(const job::Session& session, const data::DataSource& source) {
  const auto form = source.dataset->ready_form();
  if (!form || form->exif.value_or(source.exif) == source.exif) return;
  job::warn(session, fmt::format("the file was packed with --exif {0}, and --exif {1} changes "
                                 "nothing in it; train on it with --exif {0}, or pack again",
                                 word_of(*form->exif), word_of(source.exif)));
}

}  // namespace

int run_data_check(const Config& config, const job::Services& services) {
  const job::Session session = job::start_session(config, services);
  if (!session.leads()) return static_cast<int>(ExitCode::ok);
  data::DataRequest request = config.data_request(config.seed.value_or(0));
  request.to_check = request.list_unread = true;
  const data::DataSource source = services.data.open(request);
  job::say_data(session, source);
  say_packed_exif(session, source);
  const data::CheckReport report = services.data.check(
      source, config.io_threads.value_or(session.threads), job::progress_line(session, "Checking"));
  if (config.json != "-") print_report(report, source.exif);
  job::write_result(session, config.json, json_text(report_json(report)) + "\n");
  const bool good =
      report.bad.empty() && (report.empty_classes.empty() || config.allow_empty_classes);
  return static_cast<int>(good ? ExitCode::ok : ExitCode::data);
}

int run_data_info(const Config& config, const job::Services& services) {
  const job::Session session = job::start_session(config, services);
  if (!session.leads()) return static_cast<int>(ExitCode::ok);
  const data::DataSource source = services.data.open(config.data_request(config.seed.value_or(0)));
  const std::vector<data::CheckReport::ClassCount> classes = data::count_classes(source);
  job::say_warnings(session, source);
  say_packed_exif(session, source);
  if (config.json != "-") {
    system::print("{}\n", source.description);
    print_classes(classes);
    system::print("Fingerprint {:016x}\n", source.dataset->fingerprint());
  }
  const Json result{{"data", config.data},
                    {"samples", source.dataset->size()},
                    {"train", source.train.size()},
                    {"validation", source.validation.size()},
                    {"test", source.test.size()},
                    {"ignored", source.ignored},
                    {"fingerprint", fmt::format("{:016x}", source.dataset->fingerprint())},
                    {"names_alike", data::alike_names(names_of(classes))},
                    {"classes", classes_json(classes)}};
  job::write_result(session, config.json, json_text(result) + "\n");
  return static_cast<int>(ExitCode::ok);
}

int run_data_pack(const Config& config, const job::Services& services) {
  constexpr int kSide = 256;
  const job::Session session = job::start_session(config, services);
  if (!session.leads()) return static_cast<int>(ExitCode::ok);
  const data::DataSource source = services.data.open(config.data_request(config.seed.value_or(0)));
  job::say_data(session, source);
  const int side = config.image_size.value_or(kSide);
  const data::PackReport report =
      services.data.pack(source, {config.files[1],
                                  {side, side, 3},
                                  config.resize.value_or(data::Resize::bilinear),
                                  config.io_threads.value_or(session.threads),
                                  job::progress_line(session, "Packing")});
  for (const data::BadSample& bad : report.bad) {
    job::warn(session, fmt::format("left out {}: {} ({})", bad.name,
                                   data::status_name(bad.result.status), bad.result.detail));
  }
  if (!report.empty_classes.empty()) job::warn(session, report.empty_classes);
  for (const std::string& flaw : report.flaws) job::warn(session, flaw);
  if (config.json != "-") {
    system::print(
        "{} images of {}x{} packed into {} ({}); train with --data {} --image-size {}{}\n",
        with_commas(report.images), side, side, config.files[1],
        bytes_text(static_cast<double>(report.bytes)), config.files[1], side,
        source.exif == data::Exif::ignore ? " --exif ignore" : "");
  }
  const Json result{{"file", config.files[1]},
                    {"images", report.images},
                    {"left_out", report.bad.size()},
                    {"bytes", report.bytes}};
  job::write_result(session, config.json, json_text(result) + "\n");
  return static_cast<int>(ExitCode::ok);
}

int run_data_synth(const Config& config, const job::Services& services) {
  constexpr int kSide = 64;
  const job::Session session = job::start_session(config, services);
  if (!session.leads()) return static_cast<int>(ExitCode::ok);
  const int side = config.image_size.value_or(kSide);
  const std::string& folder = config.files.front();
  services.data.synth(
      {folder, config.images, {side, side, 3}, config.format, config.seed.value_or(0)});
  system::print("{} made-up images of two classes in {}; train with --data {} --image-size {}\n",
                with_commas(config.images), folder, folder, side);
  return static_cast<int>(ExitCode::ok);
}

}  // namespace cputrain::cli
