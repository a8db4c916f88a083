#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/flags/flag_groups.h"
#include "compute/selftest/selftest.h"
#include "core/text.h"
#include "core/version.h"
#include "system/files.h"
#include "system/output.h"
#include "system/print.h"
#include "training/session/session.h"

namespace cputrain::commands {
namespace {

using Json = nlohmann::ordered_json;

struct SelftestOptions : cli::Options {
  std::vector<Precision> precisions;  ///< those that were asked for, or all that the backend has
};

/// A file that cannot be written shows before the cases, not behind them.
void check_writable(const std::string& file) {
  if (file.empty() || file == "-") return;
  const auto replaced = system::replaceable_file(file);
  if (replaced) const system::AtomicFile tried(*replaced);
}

/// What computes: the GPU, or this machine's CPU.
std::string device_of(const training::Session& session) {
  const auto list =
      session.services.devices ? session.services.devices(session.backend->name()) : std::nullopt;
  if (!list) return session.machine.cpu_model;
  for (const compute::Device& device : list->devices) {
    if (device.index == session.device.device) return device.name;
  }
  return session.backend->facts().description;
}

/// Prints cases as they come, where they are read, and keeps them. The name is there before
/// the case begins, in a pipe and a file, too: one that never ends can be told.
class CasesReport {
 public:
  explicit CasesReport(bool prints) : prints_(prints) {}

  void begin(const std::string& name) {
    begun_ = true;
    if (!prints_) return;
    system::print("{} ... ", name);
    system::flush_output();
  }
  void add(const compute::SelftestCase& result) {
    begun_ = false;
    cases_.push_back(result);
    failed_ += result.passed() ? 0 : 1;
    if (!prints_) return;
    system::print("{} {:.1e} of {:.0e} {:016x}\n", result.passed() ? "ok" : "FAILED", result.error,
                  result.limit, result.hash);
    if (!result.passed()) system::print("       {}\n", result.wrong);
    system::flush_output();
  }
  void leave_out(const std::string& name, const std::string& why) {
    left_out_.push_back({{"name", name}, {"reason", why}});
    const bool has_name = std::exchange(begun_, false);
    if (!prints_) return;
    system::print("{}left out: {}\n", has_name ? "" : name + " ... ", why);
    system::flush_output();
  }

  std::size_t passed() const { return cases_.size() - failed_; }
  std::size_t failed() const { return failed_; }
  const Json& left_out() const { return left_out_; }

  Json cases_json() const {
    Json list = Json::array();
    for (const compute::SelftestCase& c : cases_) {
      Json& entry = list.emplace_back(Json{{"name", c.name},
                                           {"error", c.error},
                                           {"limit", c.limit},
                                           {"repeats", c.repeats},
                                           {"hash", fmt::format("{:016x}", c.hash)},
                                           {"passed", c.passed()}});
      if (!c.passed()) entry["wrong"] = c.wrong;
    }
    return list;
  }

 private:
  bool prints_;
  bool begun_ = false;  ///< a line has a name, and no end yet
  std::size_t failed_ = 0;
  std::vector<compute::SelftestCase> cases_;
  Json left_out_ = Json::array();
};

selftest::MakeBackend maker_of(const training::Session& session) {
  return [&session](Precision precision, const std::set<std::string>& options) {
    return session.services.make_backend({.name = session.backend->name(),
                                          .precision = precision,
                                          .threads = session.threads,
                                          .reproducible = true,
                                          .options = options,
                                          .device = session.device.device,
                                          .ranks_on_device = session.device.ranks});
  };
}

Json result_json(const training::Session& session, const std::string& device, std::uint64_t seed,
                 const CasesReport& report) {
  return {{"backend", session.backend->name()},
          {"device", device},
          {"emulated", session.device.emulated},
          {"kernels", session.backend->facts().description},
          {"cputrain", kVersion},
          {"build", session.services.program_build},
          {"seed", seed},
          {"threads", session.threads},
          {"passed", report.passed()},
          {"failed", report.failed()},
          {"cases", report.cases_json()},
          {"left_out", report.left_out()}};
}

void add_selftest_flags(cli::Flags& f, SelftestOptions& options,
                        const cli::CommandLineChoices& choices) {
  add_processor_flags(f, options, choices, "all that the backend has");
  add_row(f, options, "seed", "number that decides the sizes and numbers of all cases [0]");
  add_json_flag(f, options.json);
}

void check_selftest(SelftestOptions& c, const cli::CommandLineChoices& choices) {
  for (const training::BackendChoice& backend : choices.backends) {
    if (backend.name == c.backend) c.precisions = backend.precisions;
  }
  if (c.was_given("precision")) c.precisions = {c.precision};
  c.precision = c.precisions.front();
}

ExitCode run_selftest(const selftest::FindOwn& own_of, const SelftestOptions& options,
                      const training::Services& services) {
  const training::Session session = training::start_session(options, services);
  training::check_alone(session, "selftest tests",
                        "each would test the same); start it without mpirun");
  for (const std::string& warning : session.plan.warnings) training::warn(session, warning);
  check_writable(options.json);
  const std::string device = device_of(session);  // a device that broke may have no name
  const auto reference = services.make_backend({.name = "reference", .precision = Precision::f64});
  const auto rounding = services.make_backend({.name = "reference", .precision = Precision::bf16});
  const std::uint64_t seed = options.seed.value_or(0);
  CasesReport report(options.prints());
  if (options.prints()) {
    system::print(
        "{} on {}, seed {}; error: distance from plain loops in double, hash: of the "
        "outputs' bits\n",
        session.backend->name(), device, seed);
  }
  selftest::run({.precisions = options.precisions,
                 .all_must_be = options.was_given("precision"),
                 .seed = seed,
                 .make = maker_of(session),
                 .reference = reference.get(),
                 .rounding_reference = rounding.get(),
                 .own = own_of(session.backend->name()),
                 .device = session.device.device},
                {.done = [&](const compute::SelftestCase& result) { report.add(result); },
                 .left_out = [&](const std::string& name,
                                 const std::string& why) { report.leave_out(name, why); },
                 .begins = [&](const std::string& name) { report.begin(name); }});
  if (options.prints()) {
    system::print("{} passed, {} failed, {} left out\n", counted(report.passed(), "case"),
                  report.failed(), report.left_out().size());
  }
  training::write_json(session, options.json, result_json(session, device, seed, report));
  return report.failed() == 0 ? ExitCode::ok : ExitCode::failed;
}

}  // namespace

std::unique_ptr<cli::Command> make_selftest(selftest::FindOwn own_of) {
  return cli::make_command<SelftestOptions>(
      {.help = {.name = "selftest",
                .summary = "whether a backend computes what plain loops in double compute",
                .about =
                    "Runs every kind of layer and every call of a backend on random numbers in "
                    "odd sizes, each twice, and compares with plain loops in double. Ends with 1 "
                    "where a case fails.",
                .examples = {{"cputrain selftest", "Tests the kernels for this CPU."},
                             {"cputrain selftest --backend cuda --json selftest.json",
                              "Tests the kernels of a GPU and writes what was found as JSON."}},
                .common = {"backend", "precision", "seed", "threads", "json"}},
       .task = {.trains = false, .one_job = false},
       .add_flags = add_selftest_flags,
       .check = check_selftest,
       .run = std::bind_front(run_selftest, std::move(own_of))});
}

}  // namespace cputrain::commands
