// What `data check` and `data info` find, for people and for programs.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/inputs.h"
#include "core/text.h"
#include "data/check_report.h"
#include "data/classes/alike_names.h"
#include "system/print.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;
using ClassCount = data::CheckReport::ClassCount;

Json classes_json(const std::vector<ClassCount>& classes) {
  Json list = Json::array();
  for (const auto& c : classes) {
    list.push_back(
        {{"name", c.name}, {"train", c.train}, {"validation", c.validation}, {"test", c.test}});
  }
  return list;
}

std::vector<std::vector<std::string>> names_alike(const std::vector<ClassCount>& classes) {
  std::vector<std::string> names;
  for (const auto& c : classes) names.push_back(c.name);
  return data::alike_names(names);
}

void print_classes(const std::vector<ClassCount>& classes) {
  for (const auto& c : classes) {
    system::print("Class {}: {} for training, {} for validation{}\n", c.name, with_commas(c.train),
                  with_commas(c.validation),
                  c.test > 0 ? fmt::format(", {} for test", with_commas(c.test)) : "");
  }
}

Json flaws_json(const std::vector<data::CheckReport::FlawRow>& rows) {
  Json list = Json::array();
  for (const auto& row : rows) {
    list.push_back({{"flaw", word_of(row.flaw)},
                    {"class", row.label},
                    {"images", row.images},
                    {"of", row.of},
                    {"examples", row.examples},
                    {"remedy", data::flaw_remedy(row.flaw)}});
  }
  return list;
}

Json unread_json(const std::vector<data::UnreadFile>& files) {
  Json list = Json::array();
  for (const data::UnreadFile& file : files) {
    list.push_back({{"path", file.path}, {"reason", file.reason->one}});
  }
  return list;
}

/// Paths by what such files are called where they are counted.
std::map<std::string_view, std::vector<std::string>> paths_by_kind(
    const std::vector<data::UnreadFile>& files) {
  std::map<std::string_view, std::vector<std::string>> paths;
  for (const data::UnreadFile& file : files) paths[file.reason->several].push_back(file.path);
  return paths;
}

Json kinds_json(const std::vector<data::UnreadFile>& files) {
  Json list = Json::array();
  for (const auto& [kind, paths] : paths_by_kind(files)) {
    list.push_back({{"kind", kind}, {"files", paths.size()}, {"example", paths.front()}});
  }
  return list;
}

/// A sentence where more than a tenth of the files are not read that may be images of the data;
/// else empty.
std::string too_much_missed(const data::CheckReport& report) {
  std::vector<data::UnreadFile> missed = report.unread;
  std::erase_if(missed, [](const data::UnreadFile& file) { return !file.reason->missed; });
  const std::size_t all = report.samples + missed.size();
  if (missed.size() * 10 <= all) return "";
  return fmt::format(
      "{} of {} files, more than a tenth, may be images of the data and are not read: {}; convert "
      "them to JPEG, or move them away",
      with_commas(missed.size()), with_commas(all), data::unread_by_kind(missed));
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
  for (const auto& [kind, paths] : paths_by_kind(files)) {
    print_some(fmt::format("Not read, {}", kind), paths);
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

/// What was looked for, and how often it is there.
std::vector<std::pair<std::string, std::size_t>> looked_for(const data::CheckReport& report) {
  std::size_t flawed = 0;
  for (const auto& row : report.flaws) flawed += row.images;
  std::vector<std::pair<std::string, std::size_t>> list{
      {"damaged or empty images", report.bad.size()},
      {"images named as another format", report.wrong_extension.size()},
      {"images that decode with complaints", report.warned.size()},
      {"images of one colour, nearly black or lying on their side", flawed},
      {"doubled images", report.duplicates.size()},
      {"images in training and in validation or test",
       report.leaks.size() + report.test_leaks.size()},
      {"images under several labels", report.conflicts.size()},
      {"classes without images", report.empty_classes.size()},
      {"class names that look alike", names_alike(report.classes).size()},
      {"files that are not read", report.unread.size()}};
  if (!report.known.empty()) {
    const auto changed =
        std::ranges::count(report.known, false, &data::CheckReport::KnownFile::as_published);
    list.emplace_back("files unlike the published ones", static_cast<std::size_t>(changed));
  }
  return list;
}

void print_verdict(const data::CheckReport& report) {
  std::vector<std::string> found, none;
  for (const auto& [what, times] : looked_for(report)) {
    times > 0 ? found.push_back(fmt::format("{} ({})", what, with_commas(times)))
              : none.push_back(what);
  }
  system::print("{}\n", found.empty() ? "Nothing is wrong" : "Found: " + join(found, ", "));
  if (!none.empty()) system::print("Looked for and not found: {}\n", join(none, ", "));
}

Json check_json(const data::CheckReport& report) {
  Json counts = Json::object(), bad = Json::array(), known = Json::array();
  for (const auto& file : report.known) {
    known.push_back(
        {{"path", file.path}, {"as_published", file.as_published}, {"verdict", file.verdict}});
  }
  for (const auto& [status, word] : names(data::ReadStatus::ok)) {
    counts[std::string(word)] = report.by_status[static_cast<std::size_t>(status)];
  }
  for (const auto& file : report.bad) {
    bad.push_back({{"path", file.name},
                   {"reason", word_of(file.result.status)},
                   {"detail", file.result.detail}});
  }
  return {{"samples", report.samples},
          {"counts", std::move(counts)},
          {"ignored", report.ignored},
          {"not_read", unread_json(report.unread)},
          {"not_read_by_kind", kinds_json(report.unread)},
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
          {"names_alike", names_alike(report.classes)},
          {"classes", classes_json(report.classes)},
          {"known_files", std::move(known)}};
}

void print_check(const data::CheckReport& report, data::Exif exif) {
  const std::string kinds = data::unread_by_kind(report.unread);
  system::print("{} listed, {} can be used, {} not read{}\n", with_commas(report.samples, "image"),
                with_commas(report.by_status[0]), with_commas(report.ignored, "other file"),
                kinds.empty() ? "" : ": " + kinds);
  for (const auto& file : report.bad) {  // every one: this is what the command is for
    system::print("  {}: {} ({})\n", file.name, word_of(file.result.status), file.result.detail);
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
  print_verdict(report);
}

/// A packed file that is asked for in the other way can no more be turned.
void say_packed_exif(const training::Session& session, const data::DataSource& source) {
  const auto form = source.dataset->ready_form();
  if (!form || form->exif.value_or(source.exif) == source.exif) return;
  training::warn(session,
                 "the file was packed with --exif {0}, and --exif {1} changes nothing in it; train "
                 "on it with --exif {0}, or pack again",
                 word_of(*form->exif), word_of(source.exif));
}

ExitCode check_data(const cli::Options& options, const training::Session& session) {
  const data::DataSource source = open_data(options, session, true);
  training::say_data(session, source);
  say_packed_exif(session, source);
  const data::CheckReport report =
      session.services.data.check(source, options.io_threads.value_or(session.threads),
                                  training::progress_line(session, "Checking"));
  if (options.prints()) print_check(report, source.exif);
  training::write_json(session, options.json, check_json(report));
  const std::string missed = too_much_missed(report);
  if (!missed.empty()) training::warn(session, missed);
  const bool good =
      report.bad.empty() && (report.empty_classes.empty() || options.allow_empty_classes);
  if (!good) return ExitCode::data;
  return missed.empty() ? ExitCode::ok : ExitCode::failed;
}

ExitCode describe_data(const cli::Options& options, const training::Session& session) {
  const data::DataSource source = open_data(options, session);
  const std::vector<data::CheckReport::ClassCount> classes = data::count_classes(source);
  training::say_warnings(session, source);
  say_packed_exif(session, source);
  if (options.prints()) {
    system::print("{}\n", source.description);
    system::print("Classes, in the order of a network's outputs:\n");
    print_classes(classes);
    system::print("Fingerprint {:016x}\n", source.dataset->fingerprint());
  }
  const Json result{{"data", options.data},
                    {"samples", source.dataset->size()},
                    {"train", source.train.size()},
                    {"validation", source.validation.size()},
                    {"test", source.test.size()},
                    {"ignored", source.ignored},
                    {"fingerprint", fmt::format("{:016x}", source.dataset->fingerprint())},
                    {"names_alike", names_alike(classes)},
                    {"classes", classes_json(classes)}};
  training::write_json(session, options.json, result);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_data_check() {
  return cli::make_command(command_on_data(
      {.name = "data",
       .topic = "check",
       .summary = "find damaged, doubled and wrongly named images",
       .about =
           "Reads every image and lists those that are damaged, doubled or left out, with the "
           "reason. Ends with 65 where there are damaged ones, and with 1 where more than a tenth "
           "of the files are no images that are read.",
       .words = "DATA",
       .examples = {{"cputrain data check photos", "Checks a folder of class folders."},
                    {"cputrain data check photos --json check.json",
                     "Also writes what it finds as JSON."}},
       .common = {"json", "allow-empty-classes", "validation-split", "threads", "io-threads"},
       .others = "check"},
      check_data));
}

std::unique_ptr<cli::Command> make_data_info() {
  return cli::make_command(command_on_data(
      {.name = "data",
       .topic = "info",
       .summary = "what a data set holds",
       .about = "Says how many images of which class a data set holds, and how it is divided.",
       .words = "DATA",
       .examples = {{"cputrain data info photos", "Describes a folder of class folders."}},
       .common = {"json", "validation-split", "limit-train", "limit-val", "seed"}},
      describe_data));
}

}  // namespace cputrain::commands
