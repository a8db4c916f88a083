#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/names.h"
#include "core/text.h"
#include "logging/reporters.h"
#include "training/request/flag_grammars.h"
#include "training/request/training_rows.h"

// Flags about how a training runs and what it leaves: machine, exchange, checkpoints, logs.
namespace cputrain::training {
namespace {

using Flags = TrainingFlags;

constexpr double kMostPatience = 1e7;  // seconds: four months

/// A positive number at the beginning of a text, and what follows it.
std::optional<std::pair<double, std::string_view>> split_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  return std::pair(number, std::string_view(end, text.data() + text.size()));
}

bool is_whole(double number) { return number == std::floor(number); }

/// Nothing where it is none of s, m and h.
std::optional<double> seconds_of_unit(std::string_view unit) {
  if (unit == "s") return 1;
  if (unit == "m") return 60;
  if (unit == "h") return 3600;
  return std::nullopt;
}

/// "10m,1e": at each of these marks; "0": never. Error(usage), as of all that read a flag here.
checkpoint::Marks parse_marks(const std::string& text) {
  checkpoint::Marks marks;
  if (text == "0") return marks;
  constexpr double kMostSteps = 1e12, kMostSeconds = 1e9, kMostEpochs = 1e6;
  const auto wrong = [&text] {
    fail(ExitCode::usage, "--checkpoint-every " + text +
                              ": must be 0 (never) or a list of N (steps), Ns (seconds), Nm "
                              "(minutes), Nh (hours) and Ne (epochs), each once: 10m,1e");
  };
  for (const std::string& part : split(text, ',')) {
    const auto read = split_number(part);
    if (!read) wrong();
    const auto& [number, unit] = *read;
    const bool whole = is_whole(number);
    const double seconds = seconds_of_unit(unit).value_or(0);
    if (unit.empty() && whole && number <= kMostSteps && !marks.steps) {
      marks.steps = static_cast<std::uint64_t>(number);
    } else if (unit == "e" && whole && number <= kMostEpochs && !marks.epochs) {
      marks.epochs = static_cast<int>(number);
    } else if (seconds > 0 && number * seconds <= kMostSeconds && !marks.seconds) {
      marks.seconds = number * seconds;
    } else {
      wrong();
    }
  }
  if (marks.none()) wrong();
  return marks;
}

/// "5" or "5:0.001".
EarlyStopping parse_early_stopping(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string delta = colon == std::string::npos ? "0" : text.substr(colon + 1);
  const auto plain = [](const std::string& number) {
    const auto read = split_number(number);
    return read && read->second.empty() ? std::optional(read->first) : std::nullopt;
  };
  const auto patience = plain(text.substr(0, colon));
  const auto least = delta == "0" ? std::optional(0.0) : plain(delta);
  if (!patience || !is_whole(*patience) || *patience > 1e6 || !least) {
    fail(ExitCode::usage,
         "--early-stopping " + text +
             ": must be PATIENCE[:MIN_DELTA], a whole number of epochs from 1 and by how much the "
             "loss of validation must fall (the accuracy rise) to count: 5 or 5:0.001");
  }
  return {static_cast<int>(*patience), *least};
}

/// "30s", "10m", "1h", "45" (seconds) or "0".
std::optional<double> seconds_in(const std::string& text) {
  if (text == "0") return 0;
  const auto read = split_number(text);
  if (!read) return std::nullopt;
  const auto& [number, unit] = *read;
  const auto seconds = unit.empty() ? std::optional(1.0) : seconds_of_unit(unit);
  if (!seconds || number * *seconds > kMostPatience) return std::nullopt;
  return number * *seconds;
}

/// "warn=30s,end=10m,start=5m", each once; what is left out stays as it is without the flag.
watch::Limits parse_stall(const std::string& text) {
  constexpr double kLeastWarning = 0.5;  // seconds
  watch::Limits limits;
  const std::pair<std::string_view, double*> places[] = {
      {"warn", &limits.warning}, {"end", &limits.timeout}, {"start", &limits.start}};
  std::set<double*> given;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto place =
        std::ranges::find(places, part.substr(0, equals), [](const auto& p) { return p.first; });
    const auto seconds = seconds_in(part.substr(std::min(equals + 1, part.size())));
    const bool known = place != std::end(places) && seconds && given.insert(place->second).second;
    if (!known || (place->second == &limits.warning && *seconds < kLeastWarning)) {
      fail(ExitCode::usage,
           "--stall " + text +
               ": must be warn=TIME, end=TIME and start=TIME, each at most once with commas "
               "between, TIME such as 30s, 10m or 1h; 0 is never for end and start: "
               "warn=30s,end=10m");
    }
    *place->second = *seconds;
  }
  return limits;
}

/// Whether a word behind a colon belongs to the name of a file: it leads into a folder, or has an
/// ending, which begins with a letter.
bool is_of_file_name(const std::string& word) {
  const std::size_t dot = word.rfind('.');
  const char next = dot == std::string::npos || dot + 1 == word.size() ? '0' : word[dot + 1];
  return word.find('/') != std::string::npos || std::isalpha(static_cast<unsigned char>(next)) != 0;
}

/// "trace.json", or "trace.json:20:25".
Timeline parse_timeline(const std::string& text) {
  std::vector<std::string> parts = split(text, ':');
  if (parts.size() == 1 || is_of_file_name(parts.back())) return {.file = text};
  std::vector<std::optional<std::uint64_t>> steps;
  for (; parts.size() > 1 && !is_of_file_name(parts.back()); parts.pop_back()) {
    steps.push_back(number_in<std::uint64_t>(parts.back()));
  }
  const std::string file = join(parts, ":");
  const bool whole = steps.size() == 2 && steps[1] && steps[0] && !file.empty();
  if (!whole || *steps[1] < 1 || *steps[0] < *steps[1]) {
    fail(ExitCode::usage,
         "--timeline " + text +
             ": must be FILE or FILE:FIRST:LAST, steps counted from 1, such as trace.json:20:25 "
             "(what stands behind a colon is a step)");
  }
  return {file, {*steps[1], *steps[0]}};
}

/// Words of logging/reporters.h.
std::vector<std::string> parse_log_formats(const std::string& text) {
  const std::vector<std::string> known = logging::log_format_words();
  std::vector<std::string> formats = parse_words("log-format", text);
  for (const std::string& format : formats) {
    if (std::ranges::count(known, format) > 0) continue;
    if (format != "dawnbench") refuse_word("log-format", format, known);
    refuse_word("log-format", format, known,
                "; dawnbench was removed; use metrics.jsonl, which each run has: seconds and "
                "val_accuracy by epoch");
  }
  return formats;
}

/// "mlperf (mlperf.log), ...": for help.
std::string log_format_texts() {
  std::vector<std::string> texts;
  for (const logging::LogFormat& format : logging::log_formats()) {
    texts.push_back(
        fmt::format("{} ({})", format.word, format.file ? format.file : "lines on the terminal"));
  }
  return join(texts, ", ");
}

void add_machine(FlagRows& r) {
  r.part("machine");
  r.text("backend", &Flags::backend, "NAME", "what computes; cuda is for GPUs").recorded();
  r.choice("precision", &Flags::precision,
           "number format of products. float: 32-bit floats, on GPUs TF32. exact: 32-bit floats on "
           "GPUs, too. bf16: 16-bit brain floats; on CPUs with AVX512-BF16 in convolutions where "
           "that is faster.")
      .recorded();
  r.whole("threads", &Flags::threads, 1, 4096,
          "threads of each rank [the cores that it was given]");
  r.yes("bind", &Flags::bind,
        "bind the threads of each rank to its cores [where several ranks fill a machine]");
  r.whole("io-threads", &Flags::io_threads, 1, 4096,
          "threads for images [as --threads to decode them, 1 in 8 of these to change them during "
          "steps]");
  r.part("decoding");
  r.choice("decode", &Flags::decode,
           "when images are decoded: meanwhile, beside the steps of the first epoch, or first, "
           "before the first step, which finds damaged ones by then [meanwhile]");
  r.choice("cache", &Flags::cache,
           "where decoded images lie: in memory, in a file on disk (of TMPDIR, /var/tmp, /tmp or "
           "here), or none: each is decoded whenever it is needed. auto: the first of these that "
           "has room [auto]");
  r.part("input");
  r.whole("prefetch", &Flags::prefetch, 0, 1,
          "micro-batches that are made ahead, by a thread beside the steps; 0: each is made when a "
          "step asks for it, which shows what its images cost [1]")
      .for_developers()
      .meta = "0|1";
  r.choice("data-on-device", &Flags::data_on_device,
           "keep all training images on each GPU: auto where they fit into half of what is free "
           "beside the program and --augment only moves pixels (flip, vflip, six, crop) [auto]")
      .for_developers();
}

void add_exchange(FlagRows& r) {
  r.part("exchange");
  r.parsed("allreduce", &Flags::allreduce, "NAME",
           "algorithm that sums gradients: auto, shm, " + join(comm::allreduce_algorithms(), ", ") +
               ", hierarchical[+NAME] or ps; by bytes: NAME:0-8192;NAME:8193-max; between GPUs: "
               "nccl, or staged by way of the host [auto]",
           comm::parse_allreduce, comm::to_text)
      .suggests(comm::allreduce_words());
  r.yes("reproducible", &Flags::reproducible,
        "compute the same bits at any number of ranks and threads on one kind of CPU. "
        "--micro-batch (8) is then the number of images whose gradient is formed at once");
  r.parsed("compress", &Flags::compress, "METHOD",
           "how gradients travel over a slow network: none, fp16, bf16, topk[:FRACTION] (0.01) or "
           "powersgd[:RANK] (4) [none]",
           exchange::parse_compression,
           [](const exchange::Compression& value) { return exchange::to_text(value); })
      .suggests(all_words<exchange::Compression::Method>())
      .identity();
  r.real("bucket-mb", &Flags::bucket_mb, 0, 1e6,
         "least size in MB of the pieces in which gradients travel during backward [25]");
  r.yes("shard-dense", &Flags::shard_dense,
        "let the ranks of a node compute large dense layers together, some inputs each [from three "
        "ranks on, where fewer bytes move]");
}

void add_safety(FlagRows& r) {
  const auto safety = [](auto member) {
    return [member](auto& flags) -> auto& { return flags.safety.*member; };
  };
  r.part("checkpoints");
  r.parsed("checkpoint-every", safety(&SafetyFlags::checkpoint_every), "LIST",
           "take a checkpoint every N steps, Ns seconds, Nm minutes, Nh hours or Ne epochs, "
           "whichever comes first; 0: never. Times and epochs wait where checkpoints cost more "
           "than 1 % of the time [10m,1e]",
           parse_marks);
  r.text("resume", safety(&SafetyFlags::resume), "WHAT",
         "go on from a checkpoint: auto, the newest whole one in --out, or DIR/ckpt-<step>; auto "
         "begins anew where there is none")
      .suggests({"auto"});
  r.whole("keep", safety(&SafetyFlags::keep), 1, 1'000'000,
          "checkpoints to keep; a finished run keeps one [2]");
  r.yes("save-best", safety(&SafetyFlags::save_best),
        "keep the weights of the epoch with the lowest loss of validation in best.safetensors "
        "(--monitor accuracy: the highest accuracy); those of the last step are in "
        "weights.safetensors all the same [where there are images of validation]");
  r.choice("on-checkpoint-failure", safety(&SafetyFlags::on_checkpoint_failure),
           "if a checkpoint cannot be written: warn and train on, or end with exit code 74 "
           "[continue]");
  r.choice("on-failure", safety(&SafetyFlags::on_failure),
           "if a rank dies: end as the launcher has it, or end all at once, so that "
           "scripts/supervise goes on with the others, its default [stop]");
  r.parsed("early-stopping", safety(&SafetyFlags::early_stopping), "PATIENCE[:MIN_DELTA]",
           "end when the loss of validation has not fallen by more than MIN_DELTA for PATIENCE "
           "epochs (--monitor accuracy: the accuracy not risen); weights.safetensors then has the "
           "best weights, else those of the last step",
           parse_early_stopping);
  r.choice("monitor", safety(&SafetyFlags::monitor),
           "what of validation --early-stopping, --save-best and --schedule plateau follow. "
           "loss is to fall, accuracy to rise; of equal accuracies the lower loss is the best "
           "[loss]");
  r.choice("on-nan", safety(&SafetyFlags::on_nan),
           "if gradients are NaN or infinite: end, skip the step, or go back to the last "
           "checkpoint and leave the step out [abort]");
  r.whole("check-replicas", safety(&SafetyFlags::check_replicas), 0, 1'000'000'000'000,
          "compare the ranks' weights every N steps; end with exit code 64 where they differ [0: "
          "at the end alone]");
}

void add_stalls(FlagRows& r) {
  r.part("stalls");
  r.parsed("stall", &Flags::stalls, "WHAT=TIME,...",
           "what happens to ranks that wait. warn: those that keep them waiting are named, and "
           "then each minute. end: the job ends with exit code 76, since none got further. start: "
           "the same where MPI has not started. end=0, start=0: never "
           "[warn=60s,end=600s,start=600s]",
           parse_stall);
}

void add_output(FlagRows& r) {
  r.part("output");
  r.text("out", &Flags::out, "DIR",
         "folder of this run [a new one, runs/<date>-<model>-np<ranks>-b<batch>]");
  r.yes("overwrite", &Flags::overwrite,
        "allow --out to hold an earlier run, whose weights stay until there are new ones");
  r.whole("verbose", &Flags::verbose, 0, 3,
          "0: warnings and errors alone; 1: a progress bar and few notices; 2: a line per epoch "
          "and all notices; 3: also where "
          "every rank runs [1 on a terminal, else 2]");
  r.whole("log-every", &Flags::log_every, 0, 1'000'000'000,
          "write every Nth step and the last of each epoch to metrics.jsonl; 0: none [10]");
  r.yes("profile", &Flags::profile,
        "measure every layer in each direction, show the times at the end and write them to "
        "profile.json; steps on a GPU then take longer");
  r.yes("measure-limits", &Flags::measure_limits,
        "measure FMA peak and memory bandwidth of all ranks together before the first step, and "
        "write them to limits.json");
  r.part("logs");
  r.parsed("timeline", &Flags::timeline, "FILE[:FIRST:LAST]",
           "write what every rank did and when in these steps, counted from 1, as a Chrome trace "
           "[steps 1:20]",
           parse_timeline);
  r.parsed("log-format", &Flags::log_formats, "NAME,...", "further logs: " + log_format_texts(),
           parse_log_formats)
      .suggests(logging::log_format_words());
}

}  // namespace

void add_running(FlagRows& r) {
  add_safety(r);
  add_stalls(r);
  add_machine(r);
  add_exchange(r);
  add_output(r);
}

}  // namespace cputrain::training
