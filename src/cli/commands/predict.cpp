#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/inputs.h"
#include "cli/commands/predictions_text.h"
#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "compute/tally.h"
#include "core/error.h"
#include "core/text.h"
#include "loop/evaluate.h"
#include "system/print.h"
#include "training/plan/training_plan.h"
#include "training/session/inference.h"
#include "training/weights/past_data.h"
#include "weights/description.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;

struct PredictOptions : cli::Options {
  std::string csv;
  std::optional<int> top;
  bool flips = false;  ///< --tta

  bool names_result() const { return !csv.empty() || !json.empty(); }
  /// Results are files, and standard output has room for lines that tell of them.
  bool tells_of_files() const {
    const auto is_output = [](const std::string& f) { return f == "-" || f == "/dev/stdout"; };
    return names_result() && !is_output(csv) && !is_output(json);
  }
};

/// "folder scan: 3 files are passed over (SVG 2, broken link 1)"; empty for none.
std::string passed_over_text(const std::string& folder,
                             const std::vector<data::UnreadFile>& unread) {
  if (unread.empty()) return "";
  return fmt::format("folder {}: {} file{} passed over ({})", folder, unread.size(),
                     unread.size() == 1 ? " is" : "s are", data::unread_by_kind(unread));
}

/// Files as they were named; a folder stands for the images below it, with the other files there
/// that are not hidden. Those to predict have no reason to be unread.
std::vector<data::UnreadFile> expand_folders(const std::vector<std::string>& words,
                                             const training::Services& services) {
  std::vector<data::UnreadFile> files;
  for (const std::string& word : words) {
    // What cannot be looked at fails when it is read, and says why.
    if (!system::is_folder(word)) {
      files.push_back({word, nullptr});
      continue;
    }
    auto [found, unread] = services.data.list_images(word);
    std::erase_if(unread,
                  [](const data::UnreadFile& file) { return file.reason->one == "hidden"; });
    const std::string other = passed_over_text(word, unread);
    if (!other.empty()) system::tell(other);
    if (found.empty()) {
      fail(ExitCode::data,
           "folder {} holds no images (there is nothing to predict); name a folder of .jpg, .png "
           "or other image files",
           word);
    }
    const auto begin = static_cast<std::ptrdiff_t>(files.size());
    for (std::string& path : found) files.push_back({std::move(path), nullptr});
    std::ranges::move(unread, std::back_inserter(files));
    std::ranges::sort(files.begin() + begin, files.end(), {}, &data::UnreadFile::path);
  }
  return files;
}

/// Images of one call of the program; those that cannot be read stay out.
struct Images {
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<Json> predictions;  ///< one a file, in order; an "error" for those without one
};

Images read_images(std::span<const data::UnreadFile> files, const training::Services& services,
                   const weights::ModelDescription& model, data::Exif exif) {
  const Shape image = model.graph.image();
  Images images;
  for (const auto& [path, passed_over] : files) {
    Json& prediction = images.predictions.emplace_back(Json{{"file", path}});
    if (passed_over) {
      prediction["error"] = fmt::format("passed over ({})", passed_over->one);
      continue;
    }
    std::vector<std::uint8_t> pixels(image.size());
    const data::ReadResult read = services.data.read_image(path, image, model.resize, exif, pixels);
    if (read.status == data::ReadStatus::ok) {
      images.pixels.push_back(std::move(pixels));
    } else {
      prediction["error"] = fmt::format("{} ({})", word_of(read.status), read.detail);
    }
  }
  return images;
}

/// The `top` most probable classes, the most probable first.
std::vector<std::pair<std::string, float>> ranking(const Json& entry, int top) {
  std::vector<std::pair<std::string, float>> order;
  for (const auto& [name, probability] : entry["probabilities"].items()) {
    order.emplace_back(name, probability.get<float>());
  }
  std::ranges::stable_sort(order, std::ranges::greater{}, &std::pair<std::string, float>::second);
  order.resize(std::min(order.size(), static_cast<std::size_t>(top)));
  return order;
}

/// As JSON has it where --top leaves out the others.
Json with_best(Json entry, std::optional<int> top) {
  if (!top || entry.contains("error")) return entry;
  Json best = Json::object();
  for (const auto& [name, probability] : ranking(entry, *top)) best[name] = probability;
  entry["probabilities"] = std::move(best);
  return entry;
}

void add_prediction(Json& entry, std::span<const float> outputs,
                    const std::vector<std::string>& classes) {
  const std::vector<float> probabilities = loop::class_probabilities(outputs);
  const auto best = compute::predicted_class(outputs);
  if (!best) {
    entry["error"] = "the network's prediction is NaN (its weights are damaged)";
    return;
  }
  entry["class"] = classes[*best];
  Json by_class = Json::object();
  for (std::size_t c = 0; c < classes.size(); ++c) by_class[classes[c]] = probabilities[c];
  entry["probabilities"] = std::move(by_class);
}

/// Runs the program, which was compiled for `at_once` images: missing ones are stood in for by the
/// first. The outputs, a row for each.
std::vector<float> outputs_of(const std::vector<std::vector<std::uint8_t>>& images,
                              std::size_t at_once, compute::Program& program) {
  std::vector<const std::uint8_t*> pixels(at_once, images.front().data());
  for (std::size_t i = 0; i < images.size(); ++i) pixels[i] = images[i].data();
  const std::vector<std::int32_t> labels(at_once);  // not known: the loss is not looked at
  const std::vector<std::uint32_t> samples(at_once);
  program.forward({pixels, labels, samples}, {.probabilities = true});
  const auto outputs = program.probabilities();
  return {outputs.begin(), outputs.end()};
}

void run_images(Images& images, std::size_t at_once, bool flips, compute::Program& program,
                const weights::ModelDescription& model, const data::DataPipeline& pipeline) {
  if (images.pixels.empty()) return;
  std::vector<float> outputs = outputs_of(images.pixels, at_once, program);
  if (flips) {
    std::vector<std::uint8_t> mirrored(model.graph.image().size());
    for (auto& pixels : images.pixels) {
      pipeline.mirror_image(pixels, model.graph.image(), mirrored);
      pixels = mirrored;
    }
    loop::average_outputs(outputs, outputs_of(images.pixels, at_once, program));
  }
  const auto width = static_cast<std::size_t>(model.graph.back().dst.channels);
  std::size_t row = 0;
  for (Json& entry : images.predictions) {
    if (entry.contains("error")) continue;
    add_prediction(entry, std::span(outputs).subspan(row++ * width, width), model.classes);
  }
}

/// "a.jpg: cat (93.1 %)", with --top 2 "a.jpg: cat (93.1 %), dog (6.9 %)".
void print_prediction(const Json& entry, std::optional<int> top) {
  const std::string file = entry["file"];
  if (entry.contains("error")) {
    system::tell("cputrain: {}: {}", file, entry["error"].get<std::string>());
    return;
  }
  const auto text = [](const std::string& name, double probability) {
    return fmt::format("{} ({:.1f} %)", name, 100 * probability);
  };
  const std::string name = entry["class"];
  std::string line;
  if (top) {
    for (const auto& [other, probability] : ranking(entry, *top)) {
      line += (line.empty() ? "" : ", ") + text(other, probability);
    }
  } else {
    line = text(name, entry["probabilities"][name]);
  }
  system::print("{}: {}\n", file, line);
}

void count(const Json& entry, const std::vector<std::string>& classes,
           std::vector<std::size_t>& by_class) {
  if (entry.contains("error")) return;
  const std::string name = entry["class"];
  ++by_class[static_cast<std::size_t>(std::ranges::find(classes, name) - classes.begin())];
}

/// As many of the best classes as there are, with a line where more were asked for.
std::optional<int> top_of(const PredictOptions& options, const training::Session& session,
                          const weights::ModelDescription& model) {
  const int classes = static_cast<int>(model.classes.size());
  if (!options.top || *options.top <= classes) return options.top;
  training::warn(session, "--top {}: the weights know {} classes, so predictions name these",
                 *options.top, classes);
  return classes;
}

/// How many images have no prediction, how many files were passed over, and how many images have
/// which class: a line a class, of many classes the most frequent ones. `by_class`: by label.
std::string predicted_text(const std::vector<std::size_t>& by_class, std::size_t without,
                           std::size_t passed_over, const std::vector<std::string>& classes) {
  const std::size_t with = std::accumulate(by_class.begin(), by_class.end(), std::size_t{0});
  const std::size_t all = with + without;
  std::string text = with_commas(all, "image");
  if (without > 0) {
    text +=
        fmt::format(", {} without a prediction (named on standard error)", with_commas(without));
  }
  if (passed_over > 0) text += ", " + with_commas(passed_over, "file") + " passed over";
  std::vector<std::size_t> shown(by_class.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (shown.size() > kMostInTable) {
    std::ranges::stable_sort(shown, std::ranges::greater{}, [&](auto c) { return by_class[c]; });
    shown.resize(kMostInTable);
    std::erase_if(shown, [&](std::size_t c) { return by_class[c] == 0; });
  }
  std::size_t width = 0, rest = with;
  for (const std::size_t c : shown) {
    width = std::clamp(columns_of(escaped(classes[c])), width, kWidestName);
  }
  text += with > 0 ? ":\n" : "\n";
  for (std::size_t i = 0; with > 0 && i < shown.size(); ++i) {
    const std::size_t c = shown[i];
    text += fmt::format("  {}{:>10}\n", in_columns(escaped(classes[c]), width),
                        with_commas(by_class[c]));
    rest -= by_class[c];
  }
  if (rest > 0) text += fmt::format("and {} of other classes\n", with_commas(rest));
  return text;
}

/// Predicts every file on rank 0; returns how many could not be predicted. What folders hold beside
/// images is told with them, and has its rows.
std::size_t predict(const PredictOptions& options, const training::Services& services,
                    const training::Session& session, const weights::ModelDescription& model) {
  const std::vector<data::UnreadFile> names = expand_folders(options.files, services);
  const std::span<const data::UnreadFile> files = names;
  const std::optional<int> top = top_of(options, session, model);
  const auto at_once = std::min(
      files.size(), static_cast<std::size_t>(training::micro_batch_size(options, session)));
  const training::Inference inference =
      training::make_inference(session, model.graph, {static_cast<int>(at_once)});
  training::load_to_use(options.weights, inference);

  // Where the predictions themselves are on the terminal they show how far it is.
  const bool prints = !options.names_result();
  const bool predictions_seen = prints && isatty(STDOUT_FILENO);
  PredictionTable table(options.csv, model.classes);
  const data::OnProgress progress =
      predictions_seen ? data::OnProgress{} : training::progress_line(session, "Predicting");
  Json predictions = Json::array();
  std::size_t errors = 0, passed_over = 0;
  std::vector<std::size_t> by_class(model.classes.size());
  for (std::size_t begin = 0; begin < files.size(); begin += at_once) {
    const auto some = files.subspan(begin, std::min(at_once, files.size() - begin));
    Images images = read_images(some, services, model, options.exif.value_or(model.exif));
    run_images(images, at_once, options.flips, *inference.program, model, services.data);
    session.communicator->pulse().moved();
    for (std::size_t i = 0; i < some.size(); ++i) {
      Json& entry = images.predictions[i];
      const bool failed = entry.contains("error") && !some[i].reason;
      if (failed || (prints && !some[i].reason)) print_prediction(entry, top);
      errors += failed;
      passed_over += some[i].reason != nullptr;
      count(entry, model.classes, by_class);
      table.add(entry);
      if (!options.json.empty()) predictions.push_back(with_best(std::move(entry), top));
    }
    if (progress) progress(begin + some.size(), files.size());
  }
  table.finish();
  training::write_json(session, options.json, Json{{"predictions", predictions}});
  if (options.tells_of_files()) {
    system::print_lines(predicted_text(by_class, errors, passed_over, model.classes));
    for (const std::string& file : {options.csv, options.json}) {
      if (!file.empty()) system::print("Wrote {}\n", file);
    }
  }
  return errors;
}

void add_predict_flags(cli::Flags& f, PredictOptions& c, const cli::CommandLineChoices& choices) {
  add_weights_flag(f, c);
  f.group("Data");
  add_row(f, c, "exif");
  f.default_is("exif", "as training did");
  add_stall_flags(f, c);
  add_inference_flags(f, c, choices);
  add_json_flag(f, c.json);
  f.text("csv", c.csv, "FILE",
         "write a row per file as CSV: its name, its class, and the probability of each class "
         "(-: to standard output, and nothing else there)");
  add_test_time_flag(f, c.flips);
  f.whole("top", c.top, 1, 65536, "show the N most probable classes [1; JSON has all]");
}

void check_predict(const PredictOptions& options, const cli::CommandLineChoices&) {
  check_weights_named(options);
  if (!options.files.empty()) return;
  fail(ExitCode::usage, "predict needs image files or folders: {} predict --weights FILE IMAGE...",
       options.program);
}

ExitCode run_predict(const PredictOptions& options, const training::Services& services) {
  const weights::ModelDescription model = weights::read_description(options.weights);
  const training::Session session = training::start_session(options, services);
  const weights::Preprocessing then = weights::preprocessing_of(model);
  weights::Preprocessing here = then;
  here.exif = options.exif.value_or(model.exif);
  for (const std::string& line : training::preprocessing_differences(options.weights, then, here)) {
    training::warn(session, line);
  }
  // Images are few: rank 0 does them all, and the others wait for it.
  session.communicator->pulse().at(comm::Phase::validate);
  const std::size_t errors = session.leads() ? predict(options, services, session, model) : 0;
  session.communicator->barrier();
  return errors ? ExitCode::data : ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_predict() {
  return cli::make_command<PredictOptions>(
      {.help = {.name = "predict",
                .summary = "classes of image files and of folders of them",
                .about =
                    "Prints the class of each image. Folders stand for all images below them. With "
                    "--csv or --json the classes are in that file, and how many images have which "
                    "is printed.",
                .words = "IMAGE...",
                .examples = {{"cputrain predict --weights runs/first new.jpg",
                              "Prints the most probable class."},
                             {"cputrain predict --weights runs/first --csv predictions.csv photos",
                              "Writes the probabilities of all images of a folder as CSV."}},
                .common = {"weights", "top", "tta", "csv", "json", "backend", "threads",
                           "micro-batch"},
                .others = "infer,inference,detect,prediction,predictions"},
       .task = {.trains = false, .one_job = false},
       .add_flags = add_predict_flags,
       .check = check_predict,
       .why_idle = [](const PredictOptions& options, const std::string& flag) -> std::string {
         if (flag == "top" && !options.csv.empty() && options.json.empty())
           return "in --csv, which has all classes";
         return why_idle_option(options, flag, {options.backend});
       },
       .run = run_predict,
       .results_are_files = [](const PredictOptions& options) { return options.tells_of_files(); },
       .results =
           [](const PredictOptions& options) {
             return std::vector{std::pair("--csv", options.csv), std::pair("--json", options.json)};
           },
       .needs_weights = true});
}

}  // namespace cputrain::commands
