#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/flags/flag_groups.h"
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

/// What topics have in common: rank 0 works on a data set, and nothing is computed.
template <class Own = Options>
class DataCommand : public CommandWith<Own> {
 public:
  DataCommand() : CommandWith<Own>({.trains = false, .computes = false, .one_job = false}) {}

  void check(const CommandLineChoices&) override {
    Own& options = this->options_;
    const CommandEntry entry = this->help();
    const std::size_t most = entry.words.find(' ') == std::string::npos ? 1 : 2;
    if (options.files.size() > most) {
      fail(ExitCode::usage,
           fmt::format("{} is one word too many: {} takes {}", options.files[most],
                       options.task.name,
                       most == 2 ? "a data set and a file" : "one folder or data set"));
    }
    if (!options.files.empty()) options.data = options.files.front();
    if (options.files.size() < most && (most == 2 || options.data.empty())) {
      fail(ExitCode::usage, fmt::format("{0} needs {2}: {1} {0} {3}", options.task.name,
                                        options.program, needs(), example()));
    }
  }
  std::string why_idle(const std::string& flag) const override {
    const auto& backends = this->options_.options;
    const bool is_option = std::ranges::any_of(
        backends, [&](const auto& backend) { return backend.second.contains(flag); });
    return flag == "backend" || flag == "precision" || is_option
               ? "in this command, which computes nothing"
               : "";
  }

  ExitCode run(const Services& services) override {
    const job::Session session = job::start_session(this->options_, services);
    return session.leads() ? work(session) : ExitCode::ok;
  }

 protected:
  virtual ExitCode work(const job::Session&) = 0;
  virtual std::string needs() const { return "a data set"; }
  virtual std::string example() const { return "FOLDER"; }

  void add_flags_of_data(Flags& f, bool resizes) {
    add_data_flags(f, this->options_, resizes);
    f.reword("limit-val", "use at most N validation images");
    f.reword("seed", "number that decides which images are kept for validation [0]");
  }
  void add_flags_of_machine(Flags& f, const CommandLineChoices& choices) {
    cli::add_machine_flags(f, this->options_, choices);
    add_json_flag(f, this->options_.json);
  }
  data::DataSource open(const job::Session& session, bool to_check = false) const {
    data::DataRequest request = this->options_.data_request(this->options_.seed.value_or(0));
    request.to_check = request.list_unread = to_check;
    return session.services.data.open(request);
  }
};

class DataCheckCommand final : public DataCommand<> {
 public:
  CommandEntry help() const override {
    return {.name = "data",
            .topic = "check",
            .summary = "find damaged, doubled and wrongly named images",
            .about =
                "Reads every image and lists those that are damaged, doubled or left out, "
                "with the reason.",
            .words = "DATA",
            .examples = {{"cputrain data check photos", "Checks a folder of class folders."},
                         {"cputrain data check photos --json check.json",
                          "Also writes what it finds as JSON."}},
            .common = {"json", "allow-empty-classes", "validation-split", "threads", "io-threads"}};
  }
  void add_flags(Flags& f, const CommandLineChoices& choices) override {
    add_flags_of_data(f, false);
    add_flags_of_machine(f, choices);
  }

 private:
  ExitCode work(const job::Session& session) override {
    const Options& options = options_;
    const data::DataSource source = open(session, true);
    job::say_data(session, source);
    say_packed_exif(session, source);
    const data::CheckReport report =
        session.services.data.check(source, options.io_threads.value_or(session.threads),
                                    job::progress_line(session, "Checking"));
    if (options.prints()) print_report(report, source.exif);
    job::write_result(session, options.json, json_text(report_json(report)) + "\n");
    const bool good =
        report.bad.empty() && (report.empty_classes.empty() || options.allow_empty_classes);
    return good ? ExitCode::ok : ExitCode::data;
  }
};

class DataInfoCommand final : public DataCommand<> {
 public:
  CommandEntry help() const override {
    return {.name = "data",
            .topic = "info",
            .summary = "what a data set holds",
            .about = "Says how many images of which class a data set holds, and how it is divided.",
            .words = "DATA",
            .examples = {{"cputrain data info photos", "Describes a folder of class folders."}},
            .common = {"json", "validation-split", "limit-train", "limit-val", "seed"}};
  }
  void add_flags(Flags& f, const CommandLineChoices& choices) override {
    add_flags_of_data(f, false);
    add_flags_of_machine(f, choices);
  }

 private:
  ExitCode work(const job::Session& session) override {
    const Options& options = options_;
    const data::DataSource source = open(session);
    const std::vector<data::CheckReport::ClassCount> classes = data::count_classes(source);
    job::say_warnings(session, source);
    say_packed_exif(session, source);
    if (options.prints()) {
      system::print("{}\n", source.description);
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
                      {"names_alike", data::alike_names(names_of(classes))},
                      {"classes", classes_json(classes)}};
    job::write_result(session, options.json, json_text(result) + "\n");
    return ExitCode::ok;
  }
};

class DataPackCommand final : public DataCommand<> {
 public:
  CommandEntry help() const override {
    return {.name = "data",
            .topic = "pack",
            .summary = "one file that is read instead of decoded",
            .about =
                "Decodes and resizes all images once and writes them into one file, which "
                "training reads instead.",
            .words = "DATA FILE.ctpack",
            .examples = {{"cputrain data pack photos photos.ctpack --image-size 96",
                          "Packs a folder; train on it by --data photos.ctpack --image-size 96."}},
            .common = {"image-size", "resize", "validation-split", "limit-train", "limit-val",
                       "seed", "threads", "io-threads"}};
  }
  void add_flags(Flags& f, const CommandLineChoices& choices) override {
    add_flags_of_data(f, true);
    add_row(f, options_, "image-size", "width and height to which images are resized [256]");
    add_flags_of_machine(f, choices);
  }
  bool results_are_files() const override { return true; }

 private:
  std::string needs() const override { return "a data set and a file"; }
  std::string example() const override { return "FOLDER FILE.ctpack"; }
  ExitCode work(const job::Session& session) override {
    const Options& options = options_;
    constexpr int kSide = 256;
    const data::DataSource source = open(session);
    job::say_data(session, source);
    const int side = options.image_size.value_or(kSide);
    const data::PackReport report =
        session.services.data.pack(source, {options.files[1],
                                            {side, side, 3},
                                            options.resize.value_or(data::Resize::bilinear),
                                            options.io_threads.value_or(session.threads),
                                            job::progress_line(session, "Packing")});
    for (const data::BadSample& bad : report.bad) {
      job::warn(session, fmt::format("left out {}: {} ({})", bad.name,
                                     data::status_name(bad.result.status), bad.result.detail));
    }
    if (!report.empty_classes.empty()) job::warn(session, report.empty_classes);
    for (const std::string& flaw : report.flaws) job::warn(session, flaw);
    if (options.prints()) {
      system::print(
          "{} images of {}x{} packed into {} ({}); train with --data {} --image-size {}{}\n",
          with_commas(report.images), side, side, options.files[1],
          bytes_text(static_cast<double>(report.bytes)), options.files[1], side,
          source.exif == data::Exif::ignore ? " --exif ignore" : "");
    }
    const Json result{{"file", options.files[1]},
                      {"images", report.images},
                      {"left_out", report.bad.size()},
                      {"bytes", report.bytes}};
    job::write_result(session, options.json, json_text(result) + "\n");
    return ExitCode::ok;
  }
};

struct SynthOptions : Options {
  std::size_t images = 200;
  std::string format = "jpeg";
};

class DataSynthCommand final : public DataCommand<SynthOptions> {
 public:
  CommandEntry help() const override {
    return {.name = "data",
            .topic = "synth",
            .summary = "made-up images to try things with",
            .about = "Writes a new folder of made-up images of two classes.",
            .words = "FOLDER",
            .examples = {{"cputrain data synth photos --images 40 --image-size 64",
                          "Makes 40 JPEG files, 20 of each class."}},
            .common = {"images", "image-size", "format", "seed"}};
  }
  void add_flags(Flags& f, const CommandLineChoices&) override {
    SynthOptions& c = options_;
    f.group("Data");
    f.whole("images", c.images, 2, 1'000'000, "number of images, half of each class [200]");
    add_row(f, c, "image-size", "width and height of the images [64]");
    f.choice("format", {"jpeg", "png", "bmp"}, "format of the files [jpeg]",
             [&c](const std::string& name) { c.format = name; });
    add_row(f, c, "seed", "number that decides the images [0]");
  }
  bool results_are_files() const override { return true; }

 private:
  std::string needs() const override { return "a new folder"; }
  ExitCode work(const job::Session& session) override {
    const SynthOptions& options = options_;
    constexpr int kSide = 64;
    const int side = options.image_size.value_or(kSide);
    const std::string& folder = options.files.front();
    session.services.data.synth(
        {folder, options.images, {side, side, 3}, options.format, options.seed.value_or(0)});
    system::print("{} made-up images of two classes in {}; train with --data {} --image-size {}\n",
                  with_commas(options.images), folder, folder, side);
    return ExitCode::ok;
  }
};

}  // namespace

std::unique_ptr<Command> make_data() {
  return make_group(
      {.name = "data",
       .summary = "check, describe, pack or make up a data set",
       .about = "Works on data sets: finds damaged images, counts, packs, and makes images up.",
       .examples = {{"cputrain data check photos", "Lists damaged and doubled images of a folder."},
                    {"cputrain data synth photos --images 40",
                     "Makes up a folder of images to try with."}}});
}
std::unique_ptr<Command> make_data_check() { return std::make_unique<DataCheckCommand>(); }
std::unique_ptr<Command> make_data_info() { return std::make_unique<DataInfoCommand>(); }
std::unique_ptr<Command> make_data_pack() { return std::make_unique<DataPackCommand>(); }
std::unique_ptr<Command> make_data_synth() { return std::make_unique<DataSynthCommand>(); }

}  // namespace cputrain::cli
