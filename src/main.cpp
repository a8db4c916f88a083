// The program: reads the command line, runs one command, and alone ends the process.

#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "backends/cpu/short_waits.h"
#include "backends/sim/simulator.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "composition/backend_list.h"
#include "composition/services.h"
#include "core/error.h"
#include "core/version.h"
#include "system/file_lock.h"
#include "system/process_limits.h"
#include "system/tell.h"

extern "C" {
extern char** environ;  // NOLINT: the name is the system's
}

namespace cputrain {
namespace {

CommandLineChoices command_line_choices() {
  CommandLineChoices choices;
  for (const ListedBackend& backend : backend_list()) choices.backends.push_back(backend.choice);
  choices.build = build_of_program();
  return choices;
}

int run_command(const Config& config, const Services& services) {
  if (config.command == "train") return run_train(config, services);
  if (config.command == "eval") return run_eval(config, services);
  if (config.command == "predict") return run_predict(config, services);
  if (config.command == "export") return run_export(config, services);
  if (config.command == "sweep") return run_sweep(config, services);
  if (config.command == "report") return run_report(config, services);
  if (config.command == "info") return run_info(config, services);
  if (config.command == "simulate") return run_simulate(config, services, find_simulator());
  if (config.topic == "allreduce") return run_bench_allreduce(config, services);
  if (config.topic == "input") return run_bench_input(config, services);
  if (config.topic == "kernels") return run_bench_kernels(config, services);
  if (config.command == "bench") return run_bench_step(config, services);
  if (config.topic == "check") return run_data_check(config, services);
  if (config.topic == "pack") return run_data_pack(config, services);
  if (config.topic == "synth") return run_data_synth(config, services);
  return run_data_info(config, services);
}

/// No rank outlives the sweep that it measures for: mpirun leaves ranks behind where it is killed.
void end_with(SignalWatch& signals, const std::string& file) {
  signals.end_when([probe = std::make_shared<LockProbe>(file)] { return !probe->held(); });
}

/// Most mistakes meet all ranks alike: rank 0 says them once. The others wait, and the launcher
/// ends them once rank 0 is gone (seconds later on a busy machine); a rank that fails alone gets
/// its word after that.
void say_failure(const Launcher& launcher, const std::string& message) {
  if (launcher.rank == 0) {
    tell(fmt::format("cputrain: {}", message));
    return;
  }
  std::this_thread::sleep_for(std::chrono::seconds(5));
  tell(fmt::format("cputrain: rank {}: {}", launcher.rank, message));
}

/// Exceptions of libraries. What the system refuses is no mistake of the program.
std::string failure_text(const std::exception& error) {
  const std::string limits = limits_text();
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
  tell(fmt::format("cputrain: {}", text));
  std::_Exit(static_cast<int>(ExitCode::internal));
}

/// A file opened later must not get the number of a closed standard stream and its output.
void open_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
}

/// The exit code, unless results on standard output were lost on the way (a full disk).
int with_output_checked(int code) {
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout);
  if (!lost || code != static_cast<int>(ExitCode::ok)) return code;
  tell("cputrain: standard output cannot be written (the results are not whole)");
  return static_cast<int>(ExitCode::output);
}

int run(int argc, char** argv) {
  block_signals();
  wait_shortly(argv);  // may start the program again, which then finds signals that came meanwhile
  open_standard_streams();
  std::set_terminate(end_uncaught);
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // loads what passes exceptions on while there is memory for it
  const Launcher launcher = launcher_environment();
  std::optional<SignalWatch> signals;
  try {
    signals.emplace();
    const auto parsed = parse_command_line({argv + 1, argv + argc}, program_variables(environ),
                                           command_line_choices());
    if (const auto* help = std::get_if<HelpText>(&parsed)) {
      if (launcher.rank == 0) std::fputs(help->text.c_str(), stdout);
      return with_output_checked(static_cast<int>(ExitCode::ok));
    }
    const Config& config = std::get<Config>(parsed);
    if (!config.end_with.empty()) end_with(*signals, config.end_with);
    return with_output_checked(run_command(config, make_services(launcher, *signals)));
  } catch (const Error& error) {
    say_failure(launcher, error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    say_failure(launcher, failure_text(error));
    return static_cast<int>(ExitCode::internal);
  }
}

}  // namespace
}  // namespace cputrain

int main(int argc, char** argv) { return cputrain::run(argc, argv); }
