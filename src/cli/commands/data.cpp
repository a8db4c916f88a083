#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/commands/commands.h"
#include "cli/commands/inputs.h"
#include "cli/flags/flag_groups.h"
#include "core/text.h"
#include "system/print.h"
#include "training/session/session.h"

namespace cputrain::commands {

namespace {

using Json = nlohmann::ordered_json;

class DataPackCommand final : public DataCommand {
 public:
  cli::CommandEntry help() const override {
    return {.name = "data",
            .topic = "pack",
            .summary = "one file that is read instead of decoded",
            .about =
                "Decodes and resizes all images once and writes them into one file, which "
                "training reads instead.",
            .words = "DATA FILE.ctpack",
            .examples = {{"cputrain data pack photos photos.ctpack --image-size 96",
                          "Packs a folder; train on it by --data photos.ctpack --image-size 96."}},
            .common = {"image-size", "resize", "fit", "validation-split", "limit-train",
                       "limit-val", "seed", "threads", "io-threads"},
            .others = "pack"};
  }
  bool results_are_files() const override { return true; }

 private:
  std::string needs() const override { return "a data set and a file"; }
  std::string example() const override { return "FOLDER FILE.ctpack"; }
  std::size_t most_words() const override { return 2; }
  bool resizes() const override { return true; }
  ExitCode work(const training::Session& session) override {
    constexpr int kSide = 256;
    const data::DataSource source = open(session);
    training::say_data(session, source);
    const int side = options_.image_size.value_or(kSide);
    const data::PackReport report = session.services.data.pack(
        source,
        {options_.files[1],
         {side, side, 3},
         {options_.resize.value_or(data::Resizing{}.way), options_.fit.value_or(data::Fit{})},
         options_.io_threads.value_or(session.threads),
         training::progress_line(session, "Packing")});
    for (const data::BadSample& bad : report.bad) {
      training::warn(session, fmt::format("left out {}: {} ({})", bad.name,
                                          word_of(bad.result.status), bad.result.detail));
    }
    if (!report.empty_classes.empty()) training::warn(session, report.empty_classes);
    for (const std::string& flaw : report.flaws) training::warn(session, flaw);
    if (options_.prints()) {
      system::print("{} of {}x{} packed into {} ({}); train with --data {} --image-size {}{}\n",
                    with_commas(report.images, "image"), side, side, options_.files[1],
                    bytes_text(static_cast<double>(report.bytes)), options_.files[1], side,
                    source.exif == data::Exif::ignore ? " --exif ignore" : "");
    }
    const Json result{{"file", options_.files[1]},
                      {"images", report.images},
                      {"left_out", report.bad.size()},
                      {"bytes", report.bytes}};
    training::write_json(session, options_.json, result);
    return ExitCode::ok;
  }
};

class DataSynthCommand final : public DataCommand {
 public:
  cli::CommandEntry help() const override {
    return {.name = "data",
            .topic = "synth",
            .summary = "made-up images to try things with",
            .about = "Writes a new folder of made-up images of two classes.",
            .words = "FOLDER",
            .examples = {{"cputrain data synth photos --images 40 --image-size 64",
                          "Makes 40 JPEG files, 20 of each class."}},
            .common = {"images", "image-size", "format", "seed"},
            .others = "synth,generate"};
  }
  void add_flags(cli::Flags& f, const cli::CommandLineChoices&) override {
    f.group("Data");
    f.whole("images", images_, 2, 1'000'000, "number of images, half of each class [200]");
    add_row(f, options_, "image-size", "width and height of the images [64]");
    f.choice("format", {"jpeg", "png", "bmp"}, "format of the files [jpeg]",
             [this](const std::string& name) { format_ = name; });
    add_row(f, options_, "seed", "number that decides the images [0]");
  }
  bool results_are_files() const override { return true; }

 private:
  std::string needs() const override { return "a new folder"; }
  ExitCode work(const training::Session& session) override {
    constexpr int kSide = 64;
    const int side = options_.image_size.value_or(kSide);
    const std::string& folder = options_.files.front();
    session.services.data.synth(
        {folder, images_, {side, side, 3}, format_, options_.seed.value_or(0)});
    system::print("{} made-up images of two classes in {}; train with --data {} --image-size {}\n",
                  with_commas(images_), folder, folder, side);
    return ExitCode::ok;
  }

  std::size_t images_ = 200;
  std::string format_ = "jpeg";
};

}  // namespace

std::unique_ptr<cli::Command> make_data() {
  return cli::make_group(
      {.name = "data",
       .summary = "check, describe, pack or make up a data set",
       .about = "Works on data sets: finds damaged images, counts, packs, and makes images up.",
       .examples = {{"cputrain data check photos", "Lists damaged and doubled images of a folder."},
                    {"cputrain data synth photos --images 40",
                     "Makes up a folder of images to try with."}},
       .others = "dataset,datasets"});
}
std::unique_ptr<cli::Command> make_data_pack() { return std::make_unique<DataPackCommand>(); }
std::unique_ptr<cli::Command> make_data_synth() { return std::make_unique<DataSynthCommand>(); }

}  // namespace cputrain::commands
