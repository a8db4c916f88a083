#include "cli/commands/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "cli/flags/flag_groups.h"
#include "cli/idle_flags.h"
#include "core/error.h"
#include "core/text.h"
#include "data/classes/class_names.h"
#include "data/dataset.h"
#include "system/bounded_file.h"
#include "training/weights/named_weights.h"

namespace cputrain::commands {
namespace {

/// Images of a run may have moved since.
void check_data_of_run(const std::string& spec, const std::filesystem::path& run) {
  const data::DataSpec data = data::parse_data_spec(spec);
  if (data.word == "synthetic") return;
  for (const std::string& path : data.parts) {
    std::error_code error;  // one shows when it is read
    if (std::filesystem::exists(path, error) || error) continue;
    fail(ExitCode::data,
         "the data of the run {}, {}, is not there (without --data its images are evaluated); say "
         "where they are now: --data DATA",
         run.string(), path);
  }
}

struct Ending {
  std::string_view ending, of, hint = {};
};

constexpr std::string_view kKerasHint =
    "; to take the weights into Keras, write safetensors and see src/zoo/README.md, \"Back into "
    "Keras\"";
constexpr std::string_view kTorchHint =
    "; to take the weights into PyTorch, write safetensors with --export-layout torch and see "
    "src/zoo/README.md";

constexpr Ending kEndings[] = {{".safetensors", "safetensors"},
                               {".onnx", "ONNX"},
                               {".json", "a model file"},
                               {".keras", "Keras", kKerasHint},
                               {".h5", "Keras' HDF5", kKerasHint},
                               {".hdf5", "Keras' HDF5", kKerasHint},
                               {".pth", "PyTorch's pickles", kTorchHint},
                               {".pt", "PyTorch's pickles", kTorchHint},
                               {".bin", "PyTorch's pickles", kTorchHint},
                               {".ckpt", "checkpoints of other programs"},
                               {".pb", "TensorFlow's graphs"},
                               {".tflite", "TensorFlow Lite"},
                               {".npz", "NumPy"},
                               {".npy", "NumPy"},
                               {".msgpack", "Flax"}};

/// A name a line; an empty one behind the last does not count.
std::vector<std::string> names_in_file(const std::string& path) {
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{16} << 20;
  if (!system::is_present(path)) {
    fail(ExitCode::usage,
         "--class-names {}: there is no such file, and one name is too few (a network has two "
         "classes or more); write NAME,NAME,... or name a file with a name a line",
         printable(path));
  }
  try {
    std::vector<std::string> names = split(system::read_bounded(path, kMostBytes), '\n');
    for (std::string& name : names) {
      if (name.ends_with('\r')) name.pop_back();
    }
    while (!names.empty() && names.back().empty()) names.pop_back();
    return names;
  } catch (const std::runtime_error& error) {
    fail(ExitCode::data, "--class-names {} {} (its names cannot be read); check the path",
         printable(path), error.what());
  }
}

/// A clause such as "class name 'cat' stands for two classes"; empty where nothing is wrong.
std::string mistake_of(const std::vector<std::string>& names) {
  if (names.empty()) return "the file has no name";
  const std::string mistake = data::class_names_mistake(names);
  if (!mistake.empty()) return mistake;
  const auto strange =
      std::ranges::find_if(names, [](const std::string& name) { return escaped(name) != name; });
  if (strange == names.end()) return "";
  return fmt::format("class name '{}' has characters that cannot be printed", printable(*strange));
}

}  // namespace

cli::CommandParts<> command_of_rank_0(cli::CommandEntry help, Work work) {
  return {.help = std::move(help),
          .task = {.trains = false, .computes = false, .one_job = false},
          .run = [work = std::move(work)](const cli::Options& options,
                                          const training::Services& services) {
            const training::Session session = training::start_session(options, services);
            return session.leads() ? work(options, session) : ExitCode::ok;
          }};
}

cli::CommandParts<> command_on_data(cli::CommandEntry help, Work work, const char* needs,
                                    bool packs) {
  cli::CommandParts<> parts = command_of_rank_0(std::move(help), std::move(work));
  parts.add_flags = [packs](cli::Flags& f, cli::Options& options,
                            const cli::CommandLineChoices& choices) {
    add_data_flags(f, options, packs);
    f.reword("limit-val", "use at most N validation images");
    f.reword("seed", "number that decides which images are kept for validation [0]");
    if (packs)
      add_row(f, options, "image-size", "width and height to which images are resized [256]");
    add_machine_flags(f, options, choices);
    add_json_flag(f, options.json);
  };
  parts.check = [needs, packs](cli::Options& options, const cli::CommandLineChoices&) {
    const std::size_t most = packs ? 2 : 1;
    if (options.files.size() > most) {
      fail(ExitCode::usage, "{} is one word too many: {} takes {}", options.files[most],
           options.task.name, packs ? needs : "one folder or data set");
    }
    if (!options.files.empty()) options.data = options.files.front();
    if (options.files.size() < most && (packs || options.data.empty())) {
      fail(ExitCode::usage, "{0} needs {2}: {1} {0} {3}", options.task.name, options.program, needs,
           packs ? "FOLDER FILE.ctpack" : "FOLDER");
    }
  };
  parts.why_idle = [](const cli::Options& options, const std::string& flag) -> std::string {
    const bool computes =
        flag == "backend" || flag == "precision" || !why_idle_option(options, flag, {}).empty();
    return computes ? "in this command, which computes nothing" : "";
  };
  return parts;
}

data::DataSource open_data(const cli::Options& options, const training::Session& session,
                           bool to_check) {
  data::DataRequest request = options.data_request(options.seed.value_or(0));
  request.to_check = request.list_unread = to_check;
  return session.services.data.open(request);
}

void add_test_time_flag(cli::Flags& f, bool& flips) {
  f.choice("tta", {"none", kFlip},
           "flip: predict by the mean of the probabilities of each image and of its mirror image "
           "[none]",
           [&flips](const std::string& word) { flips = word == kFlip; });
}

void check_weights_named(const cli::Options& options) {
  if (!options.weights.empty()) return;
  fail(ExitCode::usage, options.task.name +
                            " needs --weights, the folder of a run or a weights.safetensors that "
                            "training wrote");
}

void ask_for_data(const training::Session& session, const training::TrainingFlags& flags) {
  if (!flags.data.empty()) return;
  training::say(session,
                "No --data: {} synthetic images in the paper's shape. Was that meant? --data "
                "FOLDER takes yours, a folder of images per class; --data synthetic says yes",
                flags.task.evaluates ? "evaluating on" : "training on");
}

bool take_data_of_run(cli::Options& options, const std::filesystem::path& run) {
  const auto data = training::data_of_run(run);
  if (!data) return false;
  check_data_of_run(data->spec, run);
  options.data = data->spec;
  options.balanced = options.balanced || data->balanced;
  options.allow_empty_classes = options.allow_empty_classes || data->allow_empty_classes;
  if (!options.limit_val) options.limit_val = data->limit_validation;
  return true;
}

void check_ending(const std::string& flag, const std::string& file, const std::string& ending) {
  const std::string name = small_letters(file);
  const auto other =
      std::ranges::find_if(kEndings, [&](const Ending& one) { return name.ends_with(one.ending); });
  if (other == std::end(kEndings) || other->ending == ending) return;
  fail(ExitCode::usage,
       "--{} {}: {} is the ending of {} (the flag writes another format, and programs go by the "
       "name); name a file that ends with {}{}",
       flag, printable(file), other->ending, other->of, ending,
       flag == "safetensors" ? other->hint : "");
}

std::vector<std::string> parse_names_of_classes(const std::string& text) {
  const bool is_list = text.find(',') != std::string::npos;
  std::vector<std::string> names = is_list ? split(text, ',') : names_in_file(text);
  const std::string mistake = mistake_of(names);
  if (mistake.empty()) return names;
  fail(
      ExitCode::usage,
      "--class-names: {} (a class is known by its name); write one name for each class, as cat,dog",
      mistake);
}

}  // namespace cputrain::commands
