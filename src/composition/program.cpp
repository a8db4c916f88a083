#include "composition/program.h"

#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "backends/cpu/short_waits.h"
#include "cli/command_line.h"
#include "cli/idle_flags.h"
#include "composition/services.h"
#include "core/version.h"
#include "system/clock.h"
#include "system/limits/process_limits.h"
#include "system/output.h"
#include "system/pages.h"
#include "system/placement/launcher.h"
#include "system/print.h"
#include "system/signals.h"

extern "C" {
extern char** environ;  // NOLINT: the name is the system's
}

namespace cputrain::composition {
namespace {

/// Whether the process that started this program ignored SIGHUP, as nohup does. Noted before any
/// library begins: UCX, which Debian 13's Open MPI is linked with, sets a handler for it then.
bool hangup_is_ignored = false;
void note_hangup(int, char**, char**) { hangup_is_ignored = system::is_ignored(SIGHUP); }
[[gnu::section(".preinit_array"), gnu::used]] void (*const note_first)(int, char**,
                                                                       char**) = note_hangup;

/// How wide help may be: COLUMNS of the environment, else the width of the terminal that standard
/// output is, else 80; from 60 to 120.
std::size_t help_columns() {
  constexpr std::size_t kUsual = 80, kLeast = 60, kMost = 120;
  auto columns = system::columns_of_environment();
  if (!columns) columns = system::screen_columns(STDOUT_FILENO);
  return std::clamp(columns.value_or(kUsual), kLeast, kMost);
}

cli::CommandLineChoices choices_of(std::string_view called) {
  cli::CommandLineChoices choices = command_line_choices();
  choices.build = build_of_program();
  choices.columns = help_columns();
  if (called == "./cputrain") choices.program = called;
  return choices;
}

/// Most mistakes meet all ranks alike: rank 0 says them once. The others wait, and the launcher
/// ends them once rank 0 is gone (seconds later on a busy machine); a rank that fails alone gets
/// its word after that.
void say_failure(const placement::Launcher& launcher, const std::string& message) {
  if (launcher.rank == 0) {
    system::tell("cputrain: {}", message);
  } else {
    std::this_thread::sleep_for(std::chrono::seconds(5));
    system::tell("cputrain: rank {}: {}", launcher.rank, message);
  }
  system::flush_output();
}

/// Exceptions of libraries. What the system refuses is no mistake of the program.
std::string failure_text(const std::exception& error) {
  const std::string limits = system::limits_text();
  const std::string why = limits.empty() ? "" : ": " + limits;
  if (dynamic_cast<const std::bad_alloc*>(&error)) {
    return fmt::format(
        "out of memory (the system gives this process no more{}); use fewer ranks, "
        "--threads or images at once (--micro-batch), smaller images, or raise the "
        "limit",
        why);
  }
  const auto* refused = dynamic_cast<const std::system_error*>(&error);
  if (refused && refused->code() == std::errc::resource_unavailable_try_again) {
    return fmt::format(
        "no further thread can be started (the system refuses it{}); use fewer "
        "ranks or --threads, or raise the limit",
        why);
  }
  return fmt::format(
      "internal error: {} (this should not happen{}); please report it with the "
      "command line",
      error.what(), why);
}

/// Where an exception cannot be caught, such as a lack of memory in a thread of OpenMP.
[[noreturn]] void end_uncaught() {
  std::string text =
      "internal error: the program ended itself (this should not happen); please "
      "report it with the command line";
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
  } catch (const std::exception& error) {
    text = failure_text(error);
  } catch (...) {
    text += " (an unknown exception)";
  }
  system::tell("cputrain: {}", text);
  system::end_at_once(static_cast<int>(ExitCode::internal));
}

/// Where malloc is glibc's. It else learns to keep pieces of up to 32 MiB and twice that free
/// behind them: an array that is read or written once would stay for ever. Before there are
/// threads.
void return_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(system::kKeptFree));
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(system::kKeptFree));
}

/// A file opened later must not get the number of a closed standard stream and its output.
void open_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
}

/// Whether the reader of standard output has gone: `head`, or a terminal.
bool reader_has_gone() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

/// The exit code, unless `results` on standard output were lost on the way (a full disk).
int with_output_checked(ExitCode code, bool results = true) {
  const bool lost = !system::flush_output();
  if (lost && code == ExitCode::ok && (results || !reader_has_gone())) {
    system::tell("cputrain: standard output cannot be written (the results are not whole)");
    system::flush_output();
    code = ExitCode::output;
  }
  return static_cast<int>(code);
}

int run_command(cli::Command& command, const placement::Launcher& launcher,
                system::SignalWatch& signals, const system::Stopwatch& since_start,
                const loop::FaultPoint& fault_point) {
  const bool leads = launcher.rank == 0;
  training::Services services = make_services(launcher, signals);
  command.choose_files(leads, services);
  const auto why_idle = [&](const std::string& flag) { return command.why_idle(flag); };
  for (const std::string& line : cli::idle_flags(command.options(), why_idle)) {
    if (leads) system::tell("warning: " + line);
  }
  services.program_build = build_of_program();
  services.since_start = since_start;
  services.fault_point = fault_point;
  const ExitCode code = command.run(services);
  return with_output_checked(code, !command.options().prints() || !command.results_are_files());
}

}  // namespace

int run_program(int argc, char** argv, const loop::FaultPoint& fault_point) {
  const system::Stopwatch since_start;
  if (hangup_is_ignored) std::signal(SIGHUP, SIG_IGN);
  system::block_signals();
  // May start the program again, which then finds signals that came meanwhile.
  cpu::wait_shortly(argv);
  return_freed_memory();
  open_standard_streams();
  system::begin_output();
  std::set_terminate(end_uncaught);
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads what passes exceptions on while there is memory for it
  const placement::Launcher launcher = placement::launcher_environment();
  std::optional<system::SignalWatch> signals;
  try {
    signals.emplace();
    if (launcher.kind != placement::Launcher::Kind::none)
      signals->end_when(placement::launcher_gone(), ExitCode::unanswered);
    auto parsed = cli::parse_command_line({argv + 1, argv + argc}, cli::program_variables(environ),
                                          choices_of(argc > 0 ? argv[0] : ""));
    if (const auto* help = std::get_if<std::string>(&parsed)) {
      if (launcher.rank == 0) system::put(stdout, *help, system::Worth::result);
      return with_output_checked(ExitCode::ok);
    }
    return run_command(*std::get<std::unique_ptr<cli::Command>>(parsed), launcher, *signals,
                       since_start, fault_point);
  } catch (const Error& error) {
    say_failure(launcher, error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    say_failure(launcher, failure_text(error));
    return static_cast<int>(ExitCode::internal);
  }
}

}  // namespace cputrain::composition
