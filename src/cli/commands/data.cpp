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

ExitCode pack(const cli::Options& options, const training::Session& session) {
  constexpr int kSide = 256;
  const data::DataSource source = open_data(options, session);
  training::say_data(session, source);
  const int side = options.image_size.value_or(kSide);
  const data::PackReport report =
      session.services.data.pack(source, options.files[1],
                                 {.image = {side, side, 3},
                                  .threads = options.io_threads.value_or(session.threads),
                                  .progress = training::progress_line(session, "Packing"),
                                  .resize = {options.resize.value_or(data::Resizing{}.way),
                                             options.fit.value_or(data::Fit{})}});
  for (const data::BadSample& bad : report.bad) {
    training::warn(session, "left out {}: {} ({})", bad.name, word_of(bad.result.status),
                   bad.result.detail);
  }
  if (!report.empty_classes.empty()) training::warn(session, report.empty_classes);
  for (const std::string& flaw : report.flaws) training::warn(session, flaw);
  if (options.prints()) {
    system::print("{} of {}x{} packed into {} ({}); train with --data {} --image-size {}{}\n",
                  with_commas(report.images, "image"), side, side, options.files[1],
                  bytes_text(report.bytes), options.files[1], side,
                  source.exif == data::Exif::ignore ? " --exif ignore" : "");
  }
  const Json result{{"file", options.files[1]},
                    {"images", report.images},
                    {"left_out", report.bad.size()},
                    {"bytes", report.bytes}};
  training::write_json(session, options.json, result);
  return ExitCode::ok;
}

/// `made`: how many images, in which format.
ExitCode make_up(data::SynthRequest made, const cli::Options& options,
                 const training::Session& session) {
  constexpr int kSide = 64;
  const int side = options.image_size.value_or(kSide);
  made.folder = options.files.front();
  made.image = {side, side, 3};
  made.seed = options.seed.value_or(0);
  session.services.data.synth(made);
  system::print("{} made-up images of two classes in {}; train with --data {} --image-size {}\n",
                with_commas(made.images), made.folder, made.folder, side);
  return ExitCode::ok;
}

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

std::unique_ptr<cli::Command> make_data_pack() {
  cli::CommandParts<> parts = command_on_data(
      {.name = "data",
       .topic = "pack",
       .summary = "one file that is read instead of decoded",
       .about = "Decodes and resizes all images once and writes them into one file, which training "
                "reads instead.",
       .words = "DATA FILE.ctpack",
       .examples = {{"cputrain data pack photos photos.ctpack --image-size 96",
                     "Packs a folder; train on it by --data photos.ctpack --image-size 96."}},
       .common = {"image-size", "resize", "fit", "validation-split", "limit-train", "limit-val",
                  "seed", "threads", "io-threads"},
       .others = "pack"},
      pack, "a data set and a file", true);
  parts.results_are_files = [](auto&&...) { return true; };
  return cli::make_command(std::move(parts));
}

std::unique_ptr<cli::Command> make_data_synth() {
  const auto made = std::make_shared<data::SynthRequest>();
  cli::CommandParts<> parts = command_on_data(
      {.name = "data",
       .topic = "synth",
       .summary = "made-up images to try things with",
       .about = "Writes a new folder of made-up images of two classes.",
       .words = "FOLDER",
       .examples = {{"cputrain data synth photos --images 40 --image-size 64",
                     "Makes 40 JPEG files, 20 of each class."}},
       .common = {"images", "image-size", "format", "seed"},
       .others = "synth,generate"},
      [made](const cli::Options& options, const training::Session& session) {
        return make_up(*made, options, session);
      },
      "a new folder");
  parts.add_flags = [made](cli::Flags& f, cli::Options& options, const cli::CommandLineChoices&) {
    f.group("Data");
    f.whole("images", made->images, 2, 1'000'000, "number of images, half of each class [200]");
    add_row(f, options, "image-size", "width and height of the images [64]");
    f.choice("format", {"jpeg", "png", "bmp"}, "format of the files [jpeg]",
             [made](const std::string& name) { made->format = name; });
    add_row(f, options, "seed", "number that decides the images [0]");
  };
  parts.results_are_files = [](auto&&...) { return true; };
  return cli::make_command(std::move(parts));
}

}  // namespace cputrain::commands
