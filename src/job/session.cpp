#include "job/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>

#include "comm/agreement.h"
#include "comm/contestants.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "data/pixel_sample.h"
#include "job/place_ranks.h"
#include "job/training_memory.h"
#include "system/clock.h"
#include "system/files.h"
#include "system/log_pace.h"
#include "system/process_limits.h"
#include "system/tell.h"
#include "train/weights.h"

namespace cputrain {

namespace {

/// Trains, or measures what training does: many that do it alone would be silently wrong.
/// Everything else may be asked wherever one is.
bool works_as_one_job(const TrainingFlags& flags) {
  if (flags.command == "bench") return flags.topic == "allreduce" || flags.topic == "step";
  return flags.command == "train" || flags.command == "eval";
}

void check_launcher(const Session& session, const TrainingFlags& flags, const Services& services) {
  if (!works_as_one_job(flags)) return;
  const int ranks = session.communicator->size();
  check_launch(services.launcher, ranks,
               services.mpi ? std::optional(services.mpi_version) : std::nullopt);
  const std::string warning = launch_warning(services.launcher, ranks);
  if (!warning.empty()) warn(session, warning);
}

}  // namespace

int threads_beside(const TrainingFlags& flags, const Session& session) {
  constexpr int kOthers = 2;  // communication, and one that makes batches
  return flags.io_threads.value_or(session.threads) + kOthers;
}

Session start_session(const TrainingFlags& flags, const Services& services) {
  Session session;
  session.quiet = flags.verbose == 0;
  session.communicator = services.make_communicator();
  check_launcher(session, flags, services);
  check_agreement(session, "their command", flags.command + " " + flags.topic);
  session.machine = services.machine();
  session.plan = place_ranks(*session.communicator, session.machine, flags, services);
  for (const RankPlan& plan : session.plan.ranks) {
    session.most_threads = std::max(session.most_threads, plan.threads);
  }
  session.threads = session.place().threads;
  require_threads(session.threads - 1 + threads_beside(flags, session));
  session.placement = session.plan.lines;
  for (const std::string& warning : session.plan.warnings) {
    session.placement.push_back("warning: " + warning);
  }
  session.backend = services.make_backend({flags.backend,
                                           flags.precision == "double" ? DType::f64 : DType::f32,
                                           session.threads,
                                           {.winograd = flags.winograd,
                                            .skip_zeros = flags.skip_zeros,
                                            .bf16 = flags.precision == "bf16",
                                            .measure = !flags.reproducible}});
  return session;
}

void say(const Session& session, const std::string& line) {
  if (session.leads() && !session.quiet) tell(line);
}

void warn(const Session& session, const std::string& what) {
  if (session.leads()) tell("warning: " + what);
}

std::string first_text(const Session& session, const std::string& mine) {
  for (const std::string& text : session.communicator->gather(mine)) {
    if (!text.empty()) return text;
  }
  return "";
}

void say_data(const Session& session, const DataSource& source) {
  say(session, source.description);
  say_warnings(session, source);
}

void say_warnings(const Session& session, const DataSource& source) {
  for (const std::string& warning : source.warnings) warn(session, warning);
}

Progress progress_line(const Session& session, const std::string& verb) {
  if (!session.leads() || session.quiet) return {};
  const bool terminal = isatty(STDERR_FILENO);
  return [verb, terminal, whole = Stopwatch(), pace = LogPace()](std::size_t done,
                                                                 std::size_t total) mutable {
    if (!terminal && !pace.due()) return;
    const double left =
        done ? whole.seconds() * static_cast<double>(total - done) / static_cast<double>(done) : 0;
    const std::string text =
        fmt::format("{}{} {}/{} - ETA: {}{}", terminal ? "\r" : "", verb, with_commas(done),
                    with_commas(total), eta_text(left), terminal && done < total ? "   " : "\n");
    std::fputs(text.c_str(), stderr);
  };
}

namespace {

void say_bad_samples(const Session& session, const DecodedData& data) {
  constexpr std::size_t kNamed = 20;
  std::map<ReadStatus, int> by_reason;
  for (const BadSample& bad : data.bad) ++by_reason[bad.result.status];
  for (std::size_t i = 0; i < std::min(kNamed, data.bad.size()); ++i) {
    const BadSample& bad = data.bad[i];
    warn(session, fmt::format("skipping {}: {} ({})", bad.name, status_name(bad.result.status),
                              bad.result.detail));
  }
  if (data.bad.empty()) return;
  std::vector<std::string> counts;
  for (const auto& [status, count] : by_reason) {
    counts.push_back(fmt::format("{} {}", count, status_name(status)));
  }
  warn(session, fmt::format("skipped {} damaged file{}: {}; `cputrain data check` lists them all",
                            data.bad.size(), data.bad.size() == 1 ? "" : "s", join(counts, ", ")));
}

/// A line for each host whose shared memory is too small for the decoded images.
void say_image_folders(const Session& session, const std::vector<std::string>& folders,
                       std::size_t bytes) {
  std::set<std::string> told;
  for (const RankPlan& plan : session.plan.ranks) {
    const std::string& folder = folders[static_cast<std::size_t>(plan.rank)];
    if (folder.empty() || !told.insert(plan.host).second) continue;
    say(session,
        fmt::format("Decoded images lie in a file in {} on host {}: /dev/shm has no room for {} "
                    "(containers: docker run --shm-size); they are read at the speed of memory as "
                    "long as the host has enough of it",
                    folder, plan.host, bytes_text(static_cast<double>(bytes))));
  }
}

}  // namespace

DecodedData decode_with_progress(const Session& session, const Services& services,
                                 const TrainingFlags& flags, const DataSource& source, Shape image,
                                 Resize resize) {
  check_agreement(session, "the data that they see",
                  fmt::format("{:016x}, {} + {} samples", source.dataset->fingerprint(),
                              source.train.size(), source.validation.size()));
  const DecodeRequest request{image, flags.io_threads.value_or(session.threads),
                              progress_line(session, "Decoding"), resize};
  const std::size_t bytes = services.data.cache_bytes(source, image, resize, std::nullopt);
  say_image_folders(session, image_folders(session, bytes), bytes);
  Communicator& communicator = *session.communicator;
  DecodedData data = services.data.decode(source, request, communicator.node_memory(),
                                          communicator.node_barrier());
  const std::size_t count = data.train.size() + data.validation.size();
  say(session, fmt::format("{} images at {}x{} ready in {:.1f} s ({} {}, once a node)",
                           with_commas(count), image.height, image.width, data.seconds,
                           bytes_text(static_cast<double>(data.bytes)),
                           data.mapped ? "mapped" : "in memory"));
  say_bad_samples(session, data);
  if (!data.empty_classes.empty()) warn(session, data.empty_classes);
  Fnv1a left_out;  // a file that one node alone cannot read would shift its order of samples
  for (const BadSample& bad : data.bad) left_out.add(bad.name);
  check_agreement(session, "the images that they can read",
                  fmt::format("{} damaged ({:016x})", data.bad.size(), left_out.value()));
  check_agreement(session, "the pixels of their images (other decoders?)",
                  pixel_sample(data, flags.seed.value_or(0)));
  return data;
}

Limits measure_together(const Session& session) {
  Communicator& communicator = *session.communicator;
  const Together together{
      .processes = communicator.node_memory().local_size(),
      .meet = [&] { communicator.barrier(); },
      .slowest = [&](double seconds) { return slowest_rank(communicator, seconds); }};
  const Limits limits = session.backend->measure_limits(together);
  std::array<double, 2> sums{limits.fma_gflops, limits.triad_gbs};
  communicator.sum(Array::of<double>(sums));
  return {sums[0], sums[1]};
}

int micro_batch_size(const TrainingFlags& flags, const Session& session) {
  // One thread gains nothing by more images. Several wait for each other once a layer, and each
  // keeps sums of gradients of its own, so they do better with more; kMost is for memory. Ranks
  // that share dense layers meet once a micro-batch, and should not too often.
  constexpr int kOfOneThread = 8, kOfEachThread = 14, kMost = 32, kOfOneOfSeveralRanks = 16;
  const int threads = session.most_threads;
  const int of_threads = threads == 1 ? kOfOneThread : std::min(kOfEachThread * threads, kMost);
  const int usual = session.communicator->size() == 1 ? of_threads : kOfOneOfSeveralRanks;
  // Many ranks for each hardware thread try a large job on a small machine: what is short is
  // memory.
  constexpr double kCrowd = 4;
  constexpr int kImagesInACrowd = 4;
  const int standard = session.plan.crowding > kCrowd ? kImagesInACrowd : usual;
  return flags.micro_batch.value_or(std::max(standard, 2 * threads));
}

Inference make_inference(const Session& session, const Graph& graph, std::vector<int> sizes) {
  Inference inference;
  const auto arenas = [&](const ParameterLayout& layout) {
    inference.memory = OwnedArray(session.backend->memory(), layout.arena_size, layout.dtype);
    return Arenas{inference.weights(), {}};
  };
  inference.program = session.backend->compile(graph, {Phase::evaluate, std::move(sizes)}, arenas);
  return inference;
}

void load_to_use(const std::string& file, const Inference& inference) {
  const Program& program = *inference.program;
  const LoadedWeights loaded = load_weights(safetensors::File(file), program, inference.weights());
  if (loaded.no_numbers.empty()) return;
  tell("warning: " + no_numbers_text(file, loaded.no_numbers, program.layout().parameters.size()));
}

void check_agreement(const Session& session, const std::string& what, const std::string& mine) {
  check_agreement(*session.communicator, what, mine);
}

void write_result(const Session& session, const std::string& file, const std::string& text) {
  if (!session.leads() || file.empty()) return;
  if (file != "-") return write_file(file, text);
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    fail(ExitCode::output, "cannot write to standard output (the result would be lost)");
  }
}

}  // namespace cputrain
