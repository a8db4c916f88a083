#include "training/session/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/version.h"
#include "system/files.h"
#include "system/output.h"
#include "system/placement/launch_words.h"
#include "system/print.h"

namespace cputrain::training {
namespace {

constexpr int kMostThreads = 4096;  // as --threads

/// --threads, else OMP_NUM_THREADS ("4" or "4,2": the outer level counts).
std::optional<int> asked_threads(const TrainingFlags& flags) {
  if (flags.threads) return flags.threads;
  const char* text = std::getenv("OMP_NUM_THREADS");
  const int threads = text ? std::atoi(text) : 0;
  return threads >= 1 ? std::optional(std::min(threads, kMostThreads)) : std::nullopt;
}

/// The variables by which people place OpenMP's threads themselves.
bool user_binds() {
  constexpr std::array kVariables{"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY",
                                  "KMP_AFFINITY"};
  return std::ranges::any_of(kVariables, [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value;
  });
}

/// What rank 0 was asked counts for all: variables need not be set alike on every host.
placement::PlacementRequest request_of_all(comm::Communicator& communicator,
                                           const TrainingFlags& flags) {
  std::array<int, 3> asked{asked_threads(flags).value_or(0), flags.io_threads.value_or(0),
                           flags.bind ? static_cast<int>(*flags.bind) : -1};
  communicator.broadcast(std::as_writable_bytes(std::span(asked)), 0);
  const auto [threads, io_threads, binds] = asked;
  placement::PlacementRequest request;
  if (threads > 0) request.threads = threads;
  if (io_threads > 0) request.io_threads = io_threads;
  if (binds >= 0) request.bind = binds == 1;
  return request;
}

void check_launcher(const Session& session, const TrainingFlags& flags) {
  const Services& services = session.services;
  if (!flags.task.one_job) return;
  const int ranks = session.communicator->size();
  placement::check_launch(services.launcher, ranks,
                          services.mpi ? std::optional(services.mpi_version) : std::nullopt);
  const std::string warning = placement::launch_warning(services.launcher, ranks);
  if (!warning.empty()) warn(session, warning);
}

/// Another build may make other calls, and then all wait for ever: so this is asked first.
void check_program(const Session& session) {
  check_agreement(session, "their program",
                  fmt::format("cputrain {}, {}", kVersion, session.services.program_build));
}

/// Simulated ranks have no threads; others are watched before they bind themselves to cores, so
/// that what watches finds one.
void watch_ranks(Session& session, const watch::Limits& limits) {
  if (session.services.signals == nullptr) return;
  session.communicator = watch::watched(std::move(session.communicator));
  session.watch = watch::Watch(*session.communicator, session.nodes, limits);
}

/// What computes may differ between ranks no more than what is computed.
void check_backend(const Session& session, const std::string& backend, Precision precision) {
  check_agreement(session, "their backend or precision",
                  fmt::format("--backend {} --precision {}", backend, word_of(precision)));
}

/// An emulated device is for results; in a measurement its times would look like a GPU's.
void check_emulated(const Session& session, const TrainingFlags& flags) {
  if (!session.device.emulated) return;
  if (session.leads()) {
    system::tell(
        "This program computes --backend cuda on an EMULATED device, on the CPU: results "
        "are those of the kernels, times mean nothing");
  }
  if (!flags.task.measures) return;
  fail(ExitCode::usage,
       "{} measures times, and the device is emulated (they would mean nothing); use a program "
       "with a real one, or --backend cpu",
       flags.task.name);
}

/// All ranks' devices, and what the first of them that may begin slowly says of it.
void say_device(const Session& session) {
  say_detail(session, session.device.line);
  const std::string at_first = first_text(session, session.device.at_first);
  if (!at_first.empty()) say_detail(session, at_first);
}

/// What computes; for commands that compute nothing, where it has no device, what needs none.
std::string backend_for(const TrainingFlags& flags, const Services& services) {
  const std::string usual = services.backends.front();
  const std::string asked = flags.backend.empty() ? usual : flags.backend;
  if (flags.task.computes) return asked;
  const auto list = services.devices ? services.devices(asked) : std::nullopt;
  return list && list->devices.empty() ? usual : asked;
}

BackendRequest backend_request(const Session& session, const TrainingFlags& flags,
                               const std::string& backend) {
  return {.name = backend,
          .precision = flags.precision,
          .threads = session.threads,
          .reproducible = flags.reproducible,
          .brief = flags.steps && *flags.steps < 100,  // trials take some 18
          .options = flags.options_of(backend),
          .device = session.device.device,
          .ranks_on_device = session.device.ranks};
}

/// Plans the threads of the whole job and binds this rank's where the plan does, before it starts
/// any: threads inherit the mask of the one that starts them, and memory lies near the thread that
/// writes it first. The same plan on every rank; collective.
placement::Placement place_ranks(comm::Communicator& communicator, const comm::NodeMap& nodes,
                                 const placement::Machine& machine, const TrainingFlags& flags,
                                 const Services& services) {
  const int rank = communicator.rank();
  const auto binder = placement::read_binder(machine.openmp_binds, std::getenv);
  const auto places = communicator.gather(
      placement::to_text(placement::place_of(rank, machine, user_binds(), binder)));
  placement::Placement job =
      placement::plan_job(places, nodes.by_rank(), request_of_all(communicator, flags));
  const placement::RankPlan& mine = job.ranks[static_cast<std::size_t>(rank)];
  const bool refused = mine.bind && !services.bind_this_thread(mine.cpus);
  const auto answers = communicator.gather(refused ? "refused" : "");
  const auto count = std::ranges::count(answers, "refused");
  if (count > 0) {
    job.warnings.push_back(std::to_string(count) +
                           " ranks could not be bound to their cores (the system refuses, and "
                           "threads may move between cores); try --no-bind, or let mpirun bind");
  }
  return job;
}

}  // namespace

void reached(const Session& session, comm::Phase phase) {
  session.communicator->pulse().at(phase);
  const loop::FaultPoint& fault_point = session.services.fault_point;
  if (fault_point) fault_point({.phase = phase, .rank = session.communicator->rank()});
}

int threads_beside(const Session& session) {
  constexpr int kOthers =
      5;  // for communication, batches, checkpoints, logs and answers to signals
  return session.io_threads + kOthers;
}

std::function<void()> bind_to_communication(const Session& session) {
  return [cpu = session.place().communication_cpu, bind = session.services.bind_this_thread] {
    if (cpu) bind({*cpu});
  };
}

void require_threads(const Session& session, int count, const system::MemoryToCome& memory) {
  std::optional<system::TriedThreads> tried;
  if (!session.services.simulated) tried.emplace(count, memory);
  const std::string refusal = first_text(session, tried ? tried->refusal() : "");
  if (!refusal.empty()) fail(ExitCode::usage, refusal);
}

Session start_session(const TrainingFlags& flags, const Services& services) {
  Session session{.services = services,
                  .communicator = services.make_communicator(flags.stalls.start),
                  .quiet = flags.verbose == 0,
                  .brief = is_brief(flags)};
  check_launcher(session, flags);
  check_program(session);
  session.nodes = comm::read_node_map(*session.communicator);
  watch_ranks(session, flags.stalls);
  check_agreement(session, "their command", flags.task.name);
  const std::string backend = backend_for(flags, services);
  check_backend(session, backend, flags.precision);
  session.device = choose_device(*session.communicator, session.nodes, services, backend);
  check_emulated(session, flags);
  if (session.device.chosen()) say_device(session);
  session.machine = services.machine();
  session.plan =
      place_ranks(*session.communicator, session.nodes, session.machine, flags, services);
  for (const placement::RankPlan& plan : session.plan.ranks) {
    session.most_threads = std::max(session.most_threads, plan.threads);
  }
  session.threads = session.place().threads;
  session.io_threads = flags.io_threads.value_or(session.threads);
  for (const std::string& limit : session.plan.limits) warn(session, limit);
  require_threads(session, session.threads - 1 + threads_beside(session));
  session.placement = session.plan.lines;
  for (const std::string& warning : session.plan.warnings) {
    session.placement.push_back("warning: " + warning);
  }
  session.backend = services.make_backend(backend_request(session, flags, backend));
  return session;
}

bool is_brief(const TrainingFlags& flags) {
  return flags.verbose ? *flags.verbose == 1 : system::screen_columns(STDERR_FILENO).has_value();
}

void say(const Session& session, const std::string& line) {
  if (session.leads() && !session.quiet) system::tell(line);
}

void say_detail(const Session& session, const std::string& line) {
  if (!session.brief) say(session, line);
}

void warn(const Session& session, const std::string& what) {
  if (session.leads()) system::tell("warning: " + what);
}

void say_detail_once(const Session& session, const std::string& line) {
  if (!session.quiet && session.told.insert(line).second) say_detail(session, line);
}

void warn_once(const Session& session, const std::string& what) {
  if (session.told.insert("warning: " + what).second) warn(session, what);
}

std::string first_text(const Session& session, const std::string& mine) {
  for (const std::string& text : session.communicator->gather(mine)) {
    if (!text.empty()) return text;
  }
  return "";
}

void say_data(const Session& session, const data::DataSource& source) {
  say(session, source.description);
  say_warnings(session, source);
}

void say_warnings(const Session& session, const data::DataSource& source) {
  for (const std::string& warning : source.warnings) warn(session, warning);
}

data::OnProgress progress_line(const Session& session, const std::string& verb) {
  if (!session.leads() || session.quiet) return {};
  constexpr double kRedrawSeconds = 0.05;
  return [verb, whole = system::Stopwatch(), drawn = 0.0, pace = system::LogPace(),
          line = system::RedrawnLine(stderr)](std::size_t done, std::size_t total) mutable {
    const bool terminal = isatty(STDERR_FILENO), last = done >= total;
    const double now = whole.seconds();
    if (terminal ? !last && now - drawn < kRedrawSeconds : !pace.due()) return;
    drawn = now;
    const std::string text = progress_text(verb, done, total, now);
    if (!terminal) {
      system::tell(text);
    } else if (last) {
      line.finish(text);
    } else {
      line.draw(text);
    }
  };
}

std::vector<std::string> typed_command(const Session& session, const TrainingFlags& flags,
                                       const std::function<bool(const std::string& flag)>& wanted) {
  std::vector<std::string> words =
      placement::launch_words(session.communicator->size(), ::getpid());
  words.push_back(flags.program);
  words.insert(words.end(), flags.task.typed.begin(), flags.task.typed.end());
  for (const auto& [flag, value] : flags.given) {
    if (wanted && !wanted(flag)) continue;
    words.push_back("--" + flag);
    if (!flags.switches.contains(flag)) words.push_back(value);
  }
  return words;
}

compute::Limits measure_together(const Session& session) {
  comm::Communicator& communicator = *session.communicator;
  const compute::Together together{
      .processes = communicator.node_memory().local_size(),
      .meet = [&] { communicator.barrier(); },
      .slowest =
          [&](double seconds) { return comm::largest_of_ranks(communicator, seconds).value(); }};
  const compute::Limits limits = session.backend->measure_limits(together);
  std::array<double, 3> sums{limits.fma_gflops, limits.triad_gbs, limits.tiles_gflops};
  communicator.sum(Array::of<double>(sums));
  return {sums[0], sums[1], sums[2]};
}

nlohmann::ordered_json limits_json(const compute::Limits& limits) {
  nlohmann::ordered_json json{{"fma_gflops", limits.fma_gflops}, {"triad_gbs", limits.triad_gbs}};
  if (limits.tiles_gflops > 0) json["tiles_gflops"] = limits.tiles_gflops;
  return json;
}

void check_alone(const Session& session, const std::string& does, const std::string& why) {
  const int ranks = session.communicator->size();
  if (ranks == 1) return;
  fail(ExitCode::usage, "{} one process, not {} ({}", does, ranks, why);
}

void check_agreement(const Session& session, const std::string& what, const std::string& mine) {
  comm::check_agreement(*session.communicator, what, mine);
}

void write_result(const Session& session, const std::string& file, const std::string& text) {
  if (!session.leads() || file.empty()) return;
  if (file != "-") return system::write_given_file(file, text);
  if (!system::put(stdout, text, system::Worth::result) || !system::flush_output()) {
    fail(ExitCode::output, "cannot write to standard output (the result would be lost)");
  }
}

void write_json(const Session& session, const std::string& file,
                const nlohmann::ordered_json& json) {
  if (!file.empty()) write_result(session, file, json_text(json) + "\n");
}

}  // namespace cputrain::training
