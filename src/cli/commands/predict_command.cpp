#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.h"
#include "cli/commands/prediction_table.h"
#include "compute/prediction.h"
#include "core/error.h"
#include "core/json_text.h"
#include "job/session/inference.h"
#include "system/print.h"
#include "system/tell.h"
#include "train/evaluation/answers.h"
#include "train/weights/weights.h"

namespace cputrain::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Files as they were named; a folder stands for the images below it.
std::vector<std::string> expand_folders(const std::vector<std::string>& words,
                                        const job::Services& services) {
  std::vector<std::string> files;
  for (const std::string& word : words) {
    std::error_code ignored;  // what cannot be looked at fails when it is read, and says why
    if (!std::filesystem::is_directory(word, ignored)) {
      files.push_back(word);
      continue;
    }
    const std::vector<std::string> found = services.data.list_images(word);
    if (found.empty()) {
      fail(ExitCode::data, fmt::format("folder {} holds no images (there is nothing to answer); "
                                       "name a folder of .jpg, .png or other image files",
                                       word));
    }
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

/// Images of one call of the program; those that cannot be read stay out.
struct Images {
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<Json> answers;  ///< one a file, in order; an "error" for unreadable ones
};

Images read_images(std::span<const std::string> files, const job::Services& services,
                   const train::ModelDescription& model, data::Exif exif) {
  const Shape image = model.graph.image();
  Images images;
  for (const std::string& file : files) {
    std::vector<std::uint8_t> pixels(image.size());
    const data::ReadResult read = services.data.read_image(file, image, model.resize, exif, pixels);
    Json answer{{"file", file}};
    if (read.status == data::ReadStatus::ok) {
      images.pixels.push_back(std::move(pixels));
    } else {
      answer["error"] = fmt::format("{} ({})", data::status_name(read.status), read.detail);
    }
    images.answers.push_back(std::move(answer));
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

void answer(Json& entry, std::span<const float> outputs, const std::vector<std::string>& classes) {
  const std::vector<float> probabilities = train::class_probabilities(outputs);
  const auto best = compute::predicted_class(outputs);
  if (!best) {
    entry["error"] = "the network's answer is NaN (its weights are damaged)";
    return;
  }
  entry["class"] = classes[*best];
  Json by_class = Json::object();
  for (std::size_t c = 0; c < classes.size(); ++c) by_class[classes[c]] = probabilities[c];
  entry["probabilities"] = std::move(by_class);
}

/// Runs the program, which was compiled for `at_once` images: missing ones are stood in for by the
/// first.
void run_images(Images& images, std::size_t at_once, compute::Program& program,
                const train::ModelDescription& model) {
  if (images.pixels.empty()) return;
  std::vector<const std::uint8_t*> pixels(at_once, images.pixels.front().data());
  for (std::size_t i = 0; i < images.pixels.size(); ++i) pixels[i] = images.pixels[i].data();
  const std::vector<std::int32_t> labels(at_once);  // not known: the loss is not looked at
  const std::vector<std::uint32_t> samples(at_once);
  program.forward({pixels, labels, samples}, {.probabilities = true});
  const auto outputs = program.probabilities();
  const auto width = static_cast<std::size_t>(model.graph.back().dst.channels);
  std::size_t row = 0;
  for (Json& entry : images.answers) {
    if (entry.contains("error")) continue;
    answer(entry, outputs.subspan(row++ * width, width), model.classes);
  }
}

/// "a.jpg: cat (93.1 %)", with --top 2 "a.jpg: cat (93.1 %), dog (6.9 %)".
void print_answer(const Json& entry, std::optional<int> top) {
  const std::string file = entry["file"];
  if (entry.contains("error")) {
    system::tell(fmt::format("cputrain: {}: {}", file, entry["error"].get<std::string>()));
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

/// As many of the best classes as there are, with a line where more were asked for.
std::optional<int> top_of(const Config& config, const job::Session& session,
                          const train::ModelDescription& model) {
  const int classes = static_cast<int>(model.classes.size());
  if (!config.top || *config.top <= classes) return config.top;
  job::warn(session, fmt::format("--top {}: the weights know {} classes, so answers name these",
                                 *config.top, classes));
  return classes;
}

/// Answers every file on rank 0; returns how many could not be answered.
std::size_t predict(const Config& config, const job::Services& services,
                    const job::Session& session, const train::ModelDescription& model) {
  const std::vector<std::string> names = expand_folders(config.files, services);
  const std::span<const std::string> files = names;
  const std::optional<int> top = top_of(config, session, model);
  const auto at_once =
      std::min(files.size(), static_cast<std::size_t>(job::micro_batch_size(config, session)));
  const job::Inference inference =
      job::make_inference(session, model.graph, {static_cast<int>(at_once)});
  job::load_to_use(config.weights, inference);

  // Where the answers themselves are on the terminal they show how far it is.
  const bool prints = config.json != "-" && config.csv != "-";
  const bool answers_seen = prints && isatty(STDOUT_FILENO);
  PredictionTable table(config.csv, model.classes);
  const data::Progress progress =
      answers_seen ? data::Progress{} : job::progress_line(session, "Predicting");
  Json predictions = Json::array();
  std::size_t errors = 0;
  for (std::size_t begin = 0; begin < files.size(); begin += at_once) {
    const auto some = files.subspan(begin, std::min(at_once, files.size() - begin));
    Images images = read_images(some, services, model, config.exif.value_or(model.exif));
    run_images(images, at_once, *inference.program, model);
    session.communicator->pulse().moved();
    for (Json& entry : images.answers) {
      if (prints || entry.contains("error")) print_answer(entry, top);
      errors += entry.contains("error");
      table.add(entry);
      if (!config.json.empty()) predictions.push_back(with_best(std::move(entry), top));
    }
    if (progress) progress(begin + some.size(), files.size());
  }
  table.finish();
  job::write_result(session, config.json, json_text(Json{{"predictions", predictions}}) + "\n");
  return errors;
}

}  // namespace

int run_predict(const Config& config, const job::Services& services) {
  const train::ModelDescription model = train::read_description(config.weights);
  const job::Session session = job::start_session(config, services);
  // Images are few: rank 0 does them all, and the others wait for it.
  session.communicator->pulse().at(comm::Phase::validate);
  const std::size_t errors = session.leads() ? predict(config, services, session, model) : 0;
  session.communicator->barrier();
  return static_cast<int>(errors ? ExitCode::data : ExitCode::ok);
}

}  // namespace cputrain::cli
