#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/print.h"
#include "cli/session.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/tell.h"
#include "train/weights.h"

namespace cputrain {
namespace {

using Json = nlohmann::ordered_json;

/// Pictures of one call of the program; those that cannot be read stay out.
struct Pictures {
  std::vector<std::vector<std::uint8_t>> pixels;
  std::vector<Json> answers;  ///< one a file, in order; an "error" for unreadable ones
};

Pictures read_pictures(std::span<const std::string> files, const Services& services, Shape image,
                       Resize resize) {
  Pictures pictures;
  for (const std::string& file : files) {
    std::vector<std::uint8_t> pixels(image.size());
    const ReadResult read = services.data.read_image(file, image, resize, pixels);
    Json answer{{"file", file}};
    if (read.status == ReadStatus::ok) {
      pictures.pixels.push_back(std::move(pixels));
    } else {
      answer["error"] = fmt::format("{} ({})", status_name(read.status), read.detail);
    }
    pictures.answers.push_back(std::move(answer));
  }
  return pictures;
}

/// One output is the probability of class 1.
std::vector<float> class_probabilities(std::span<const float> outputs) {
  if (outputs.size() == 1) return {1 - outputs[0], outputs[0]};
  return {outputs.begin(), outputs.end()};
}

void answer(Json& entry, std::span<const float> outputs, const std::vector<std::string>& classes) {
  const std::vector<float> probabilities = class_probabilities(outputs);
  const auto best = std::ranges::max_element(probabilities) - probabilities.begin();
  entry["class"] = classes[static_cast<std::size_t>(best)];
  Json by_class = Json::object();
  for (std::size_t k = 0; k < classes.size(); ++k) by_class[classes[k]] = probabilities[k];
  entry["probabilities"] = std::move(by_class);
}

/// Runs the program, which was compiled for `at_once` images: missing ones are stood in for by the
/// first.
void run_pictures(Pictures& pictures, std::size_t at_once, Program& program,
                  const ModelDescription& model) {
  if (pictures.pixels.empty()) return;
  std::vector<const std::uint8_t*> images(at_once, pictures.pixels.front().data());
  for (std::size_t i = 0; i < pictures.pixels.size(); ++i) images[i] = pictures.pixels[i].data();
  const std::vector<std::int32_t> labels(at_once);  // not known: the loss is not looked at
  const std::vector<std::uint32_t> samples(at_once);
  program.forward({images, labels, samples}, {});

  const auto outputs = program.probabilities();
  const auto width = static_cast<std::size_t>(model.graph.back().dst.channels);
  std::size_t row = 0;
  for (Json& entry : pictures.answers) {
    if (entry.contains("error")) continue;
    answer(entry, outputs.subspan(row++ * width, width), model.classes);
  }
}

void print_answer(const Json& entry) {
  const std::string file = entry["file"];
  if (entry.contains("error")) {
    tell(fmt::format("cputrain: {}: {}", file, entry["error"].get<std::string>()));
    return;
  }
  const std::string name = entry["class"];
  print("{}: {} ({:.1f} %)\n", file, name, 100 * entry["probabilities"][name].get<double>());
}

}  // namespace

int run_predict(const Config& config, const Services& services) {
  const ModelDescription model = read_description(config.weights);
  const Session session = start_session(config, services);
  if (!session.leads()) {  // pictures are few: rank 0 does them all
    session.communicator->barrier();
    return static_cast<int>(ExitCode::ok);
  }
  const std::span<const std::string> files = config.files;
  const auto at_once =
      std::min(files.size(), static_cast<std::size_t>(micro_batch_size(config, session)));
  const Inference inference = make_inference(session, model.graph, {static_cast<int>(at_once)});
  load_weights(config.weights, *inference.program, inference.weights);

  Json predictions = Json::array();
  std::size_t errors = 0;
  for (std::size_t begin = 0; begin < files.size(); begin += at_once) {
    const auto some = files.subspan(begin, std::min(at_once, files.size() - begin));
    Pictures pictures = read_pictures(some, services, model.graph.image(), model.resize);
    run_pictures(pictures, at_once, *inference.program, model);
    for (Json& entry : pictures.answers) {
      if (config.json != "-" || entry.contains("error")) print_answer(entry);
      errors += entry.contains("error");
      predictions.push_back(std::move(entry));
    }
  }
  write_result(session, config.json, json_text(Json{{"predictions", predictions}}) + "\n");
  session.communicator->barrier();
  return static_cast<int>(errors ? ExitCode::data : ExitCode::ok);
}

}  // namespace cputrain
