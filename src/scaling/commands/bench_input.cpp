#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/commands/commands.h"
#include "system/print.h"
#include "training/session/session.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;

/// A stage with what limits it.
struct Line {
  std::string name, limit;
  Spread images_per_second;
  double megapixels_per_second;  ///< pixels of images as they are stored; 0 where none is decoded
  Spread limit_images_per_second;
  Spread fraction;  ///< part of the limit, round by round
};

Spread ratios(const std::vector<double>& limit, const std::vector<double>& seconds) {
  std::vector<double> values;
  for (std::size_t i = 0; i < seconds.size(); ++i) values.push_back(limit[i] / seconds[i]);
  return spread_of(std::move(values));
}

Line line_of(const data::InputBench& bench, const data::InputStage& stage, const std::string& limit,
             const std::vector<double>& limit_seconds, double megapixels) {
  const auto images = static_cast<double>(bench.images);
  return {stage.name,
          limit,
          spread_of_rates(images, stage.seconds),
          spread_of_rates(megapixels, stage.seconds).median,
          spread_of_rates(images, limit_seconds),
          ratios(limit_seconds, stage.seconds)};
}

/// Seconds that memory needs to copy every image once: each byte is read and written.
std::vector<double> copying(const data::InputBench& bench, Shape image, double triad_gbs) {
  const double bytes = 2.0 * static_cast<double>(bench.images) * static_cast<double>(image.size());
  return std::vector<double>(bench.codec.seconds.size(), bytes / (1e9 * triad_gbs));
}

std::vector<Line> lines_of(const data::InputBench& bench, Shape image, double triad_gbs) {
  std::vector<Line> lines;
  for (const data::InputStage& stage : bench.decoding) {
    lines.push_back(line_of(bench, stage, bench.codec.name, bench.codec.seconds, bench.megapixels));
  }
  for (const data::InputStage& stage : bench.batches) {
    lines.push_back(line_of(bench, stage, "a copy of the images in memory",
                            copying(bench, image, triad_gbs), 0));
  }
  return lines;
}

void print_table(const data::InputBenchRequest& request, const data::InputBench& bench,
                 double triad_gbs, const std::vector<Line>& lines) {
  const auto images = static_cast<double>(bench.images);
  system::print(
      "{} JPEG files of {} in memory ({:.2f} megapixels and {} each; {} left out), to {}x{}, "
      "--augment {}\n{}; medians of {} rounds; triad {:.1f} GB/s measured in this run\n\n",
      with_commas(bench.images), request.data, bench.megapixels / images,
      bytes_text(static_cast<double>(bench.bytes) / images), bench.left_out, request.image.height,
      request.image.width, data::to_text(request.augment), counted(request.threads, "thread"),
      request.repeat, triad_gbs);
  system::print("{:<26}{:>12}{:>12}{:>12}{:>12}{:>12}{:>16}\n", "", "images/s,", "lowest",
                "highest", "images/s", "Mpixel/s", "of its limit,");
  system::print("{:<26}{:>12}{:>12}{:>12}{:>12}{:>12}{:>16}\n", "", "median", "", "", "a thread",
                "a thread", "round by round");
  for (const Line& line : lines) {
    const Spread& rate = line.images_per_second;
    const double megapixels = line.megapixels_per_second / request.threads;
    system::print(
        "{:<26}{:>12.0f}{:>12.0f}{:>12.0f}{:>12.0f}{:>12}{:>8.2f}  {} ({:.0f} images/s)\n",
        line.name, rate.median, rate.min, rate.max, rate.median / request.threads,
        megapixels > 0 ? fmt::format("{:.0f}", megapixels) : "", line.fraction.median, line.limit,
        line.limit_images_per_second.median);
  }
  system::print(
      "\nBatches from the cache point to images and copy none; augmentation copies those that "
      "change.\n");
}

Json stage_json(const Line& line, int threads) {
  Json stage{{"name", line.name},
             {"images_per_second", json_of(line.images_per_second)},
             {"images_per_second_per_thread", line.images_per_second.median / threads}};
  if (line.megapixels_per_second > 0) {
    stage["megapixels_per_second_per_thread"] = line.megapixels_per_second / threads;
  }
  stage["limit"] = {{"name", line.limit},
                    {"images_per_second", json_of(line.limit_images_per_second)}};
  stage["fraction_of_limit"] = json_of(line.fraction);
  return stage;
}

Json result_json(const training::Session& session, const data::InputBenchRequest& request,
                 const data::InputBench& bench, double triad_gbs, const std::vector<Line>& lines) {
  Json stages = Json::array();
  for (const Line& line : lines) stages.push_back(stage_json(line, request.threads));
  return {{"bench", "input"},
          {"data", request.data},
          {"images", bench.images},
          {"left_out", bench.left_out},
          {"megapixels", bench.megapixels},
          {"jpeg_bytes", bench.bytes},
          {"image_size", request.image.height},
          {"resize", word_of(request.resize.way)},
          {"fit", to_text(request.resize.fit)},
          {"exif", word_of(request.exif)},
          {"augment", data::to_text(request.augment)},
          {"micro_batch", request.micro_batch},
          {"threads", request.threads},
          {"repeats", request.repeat},
          {"cpu", session.machine.cpu_model},
          {"cpu_id", to_json(session.machine.cpu_id)},
          {"limit", {{"triad_gbs", triad_gbs}}},
          {"stages", std::move(stages)}};
}

data::InputBenchRequest request_of(const BenchOptions& options, const training::Session& session) {
  constexpr int kSide = 256, kMicroBatch = 32;
  const int side = options.image_size.value_or(kSide);
  return {
      .data = options.data,
      .image = {side, side, 3},
      .resize = {options.resize.value_or(data::Resizing{}.way), options.fit.value_or(data::Fit{})},
      .exif = options.exif_choice(),
      .augment = options.augment.value_or(data::Augment{.flip = true}),
      .seed = options.seed.value_or(0),
      .micro_batch = options.micro_batch.value_or(kMicroBatch),
      .threads = options.io_threads.value_or(session.threads),
      .repeat = options.repeats()};
}

void add_input_flags(cli::Flags& f, BenchOptions& c, const cli::CommandLineChoices& choices) {
  f.group("Data");
  add_row(f, c, "data", "a folder of class folders or of cat.N.jpg files, or a list file");
  add_row(f, c, "validation-split", "part left out where the data has no validation part [0.1]");
  add_row(f, c, "limit-train", "take N training images [256]");
  add_row(f, c, "allow-empty-classes", "go on where no image of a class can be read [an error]");
  add_row(f, c, "image-size", "width and height to which images are resized [256]");
  add_row(f, c, "resize");
  f.default_is("resize", "bilinear");
  add_row(f, c, "fit");
  f.default_is("fit", "stretch");
  add_row(f, c, "exif");
  add_row(f, c, "augment");
  f.default_is("augment", "flip");
  add_row(f, c, "micro-batch", "images of each batch that is made from the cache [32]");
  add_row(f, c, "seed", "number that decides choice of images, order and augmentation [0]");
  f.group("Measurement");
  f.whole("repeat", c.repeat, 1, 1000, "measured rounds [5]");
  add_processor_flags(f, c, choices);
  add_row(f, c, "io-threads", "threads that decode and change images [as --threads]");
  add_json_flag(f, c.json);
}

void check_input(const BenchOptions& options, const cli::CommandLineChoices&) {
  if (options.data.empty())
    fail(ExitCode::usage, "bench input needs --data DIR, a folder of JPEG photographs");
}

ExitCode run_input(const BenchOptions& options, const training::Services& services) {
  constexpr std::size_t kImages = 256;
  const training::Session session = training::start_session(options, services);
  training::check_alone(
      session, "bench input measures",
      "ranks would disturb each other); start it without mpirun, with --threads or --io-threads");
  const data::DataSource source = open_images(options, services, kImages, options.seed.value_or(0));
  const data::InputBenchRequest request = request_of(options, session);
  const compute::Limits before = training::measure_together(session);
  const data::InputBench bench = services.data.bench(source, request);
  const double triad = compute::better(before, training::measure_together(session)).triad_gbs;
  const std::vector<Line> lines = lines_of(bench, request.image, triad);
  if (options.prints()) print_table(request, bench, triad, lines);
  training::write_json(session, options.json, result_json(session, request, bench, triad, lines));
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_bench_input() {
  return cli::make_command<BenchOptions>(
      {.help = {.name = "bench",
                .topic = "input",
                .summary = "decoding, augmentation and batches",
                .about = "Measures how fast images are decoded, changed and made into batches.",
                .examples = {{"cputrain bench input --data photos",
                              "Measures with 256 images of a folder."}},
                .common = {"data", "limit-train", "image-size", "augment", "micro-batch", "repeat",
                           "threads", "io-threads", "json"}},
       .task = {.trains = false, .measures = true, .one_job = false},
       .add_flags = add_input_flags,
       .check = check_input,
       .why_idle =
           [](const BenchOptions& options, const std::string& flag) {
             return why_idle_in_training(options, flag, {options.backend});
           },
       .run = run_input});
}

}  // namespace cputrain::commands
