#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "comm/node.h"
#include "comm/watch/watch.h"
#include "system/clock.h"
#include "system/limits/process_limits.h"
#include "training/request/training_flags.h"
#include "training/session/services.h"

namespace cputrain::training {

/// Where a rank computes.
struct DeviceChoice {
  int device = 0;          ///< compute::Device::index
  int ranks = 1;           ///< on this rank's node that compute on it
  bool emulated = false;   ///< no time of this job means anything
  std::string line{};      ///< all ranks' devices, for the log; empty where they are CPUs
  int all = 0;             ///< devices of all ranks together
  std::string name{};      ///< all devices'; with " and " between where there are several kinds
  std::string at_first{};  ///< compute::Device::at_first of this rank's

  bool chosen() const { return !line.empty(); }
};

/// What every command that computes works with: ranks, their threads and a backend.
struct Session {
  const Services& services;  ///< borrowed
  watch::Watch watch{};      ///< until all ranks have ended
  std::unique_ptr<comm::Communicator> communicator;
  comm::NodeMap nodes{};  ///< which ranks share which node
  placement::Machine machine{};
  int threads = 1;                       ///< this rank's
  int most_threads = 1;                  ///< the most of any rank: for choices that all make alike
  int io_threads = 1;                    ///< this rank's, where it decodes and nothing else
  placement::Placement plan{};           ///< all ranks'
  std::vector<std::string> placement{};  ///< the plan, a line a kind of host; warnings after it
  DeviceChoice device{};                 ///< this rank's
  std::unique_ptr<compute::Backend> backend{};
  system::Stopwatch since_start{};
  bool quiet = false;                    ///< --verbose 0: warnings and errors alone
  bool brief = false;                    ///< is_brief()
  mutable std::set<std::string> told{};  ///< by say_detail_once() and warn_once()

  bool leads() const { return communicator->rank() == 0; }
  bool is_alone() const { return communicator->size() == 1; }
  const placement::RankPlan& place() const {
    return plan.ranks[static_cast<std::size_t>(communicator->rank())];
  }
};

/// Starts communication, places the ranks and makes the backend. `services` must outlive the
/// session. Error(usage) where this process cannot have the threads or the device that it needs,
/// and for measurements on an emulated device. Collective.
Session start_session(const TrainingFlags&, const Services&);

/// The ranks of a node take its devices in turn; where each is shown one of its own, that one.
/// Nothing to choose, and no message, for a backend that computes on the CPUs. Error(usage) with
/// the reason on all ranks alike where one of them has no device. Collective.
DeviceChoice choose_device(comm::Communicator&, const comm::NodeMap&, const Services&,
                           const std::string& backend);

/// This rank has come so far in its work: for the watch, and for tests that break it there.
void reached(const Session&, comm::Phase);

/// Threads of this process beside those that compute.
int threads_beside(const Session&);

/// What a thread beside those that compute does first. It has the core of communication where there
/// is one, which waits most of the time; else any of this rank's.
std::function<void()> bind_to_communication(const Session&);

/// Error(usage) on all ranks where one cannot have so many more threads beside so much memory.
/// Ranks may have one limit together (of a user, of a container), so all of them try at once.
/// Collective.
void require_threads(const Session&, int count, const system::MemoryToCome& memory = {});

/// Whether details are left out: with --verbose 1, which is usual on a terminal.
bool is_brief(const TrainingFlags&);

/// A line on standard error from rank 0, unless it is quiet: standard output is for results. It is
/// for everybody, so a training has six of them at most before its first epoch.
void say(const Session&, const std::string& line);

/// The same for who looks closer, or reads a log.
void say_detail(const Session&, const std::string& line);

/// "warning: ..." on standard error from rank 0, quiet or not.
void warn(const Session&, const std::string& what);

// The same, unless these very words were told: commands that measure start several trainings.

void say_detail_once(const Session&, const std::string& line);
void warn_once(const Session&, const std::string& what);

// The same with words that are put together, as fmt::format does it.

template <class... Parts>
void say(const Session& session, fmt::format_string<const Parts&...> line, const Parts&... parts) {
  say(session, fmt::format(line, parts...));
}
template <class... Parts>
void say_detail(const Session& session, fmt::format_string<const Parts&...> line,
                const Parts&... parts) {
  say_detail(session, fmt::format(line, parts...));
}
template <class... Parts>
void warn(const Session& session, fmt::format_string<const Parts&...> line, const Parts&... parts) {
  warn(session, fmt::format(line, parts...));
}
template <class... Parts>
void say_detail_once(const Session& session, fmt::format_string<const Parts&...> line,
                     const Parts&... parts) {
  say_detail_once(session, fmt::format(line, parts...));
}
template <class... Parts>
void warn_once(const Session& session, fmt::format_string<const Parts&...> line,
               const Parts&... parts) {
  warn_once(session, fmt::format(line, parts...));
}

/// The first of the ranks' texts that is not empty: what one of them has met, all know. Collective.
std::string first_text(const Session&, const std::string& mine);

/// What was found as data, and what is odd about it.
void say_data(const Session&, const data::DataSource&);
/// The latter alone.
void say_warnings(const Session&, const data::DataSource&);

/// A line on standard error such as "Decoding 12,000/22,500 - ETA: 0:21", redrawn on a terminal,
/// else every 30 s; without ETA until a hundredth is done. Silent on ranks other than 0 and where
/// the session is quiet.
data::OnProgress progress_line(const Session&, const std::string& verb);

/// While what it returns lives, this process ends with ExitCode::unanswered where a rank of its
/// machine has died or the first of them has: launchers may leave the others to wait for it. One
/// that ends them is quicker, and has the code of the rank that died. Collective. Of machines where
/// processes do not see each other nothing is known.
[[nodiscard]] std::shared_ptr<void> end_with_lost_ranks(const Session&);

/// The words that were typed to start this job: launcher, program, command, and of the flags those
/// that are `wanted`.
std::vector<std::string> typed_command(
    const Session&, const TrainingFlags&,
    const std::function<bool(const std::string& flag)>& wanted = {});

/// The machine's limits for all ranks together, measured while all of them work. Collective.
compute::Limits measure_together(const Session&);
/// As files have them; what the machine lacks is left out.
nlohmann::ordered_json limits_json(const compute::Limits&);

/// Error(usage) for what one process `does`, where several were started: "bench input measures".
/// `why` closes a bracket and names the remedy.
void check_alone(const Session&, const std::string& does, const std::string& why);

/// Throws Error(disagree) where the ranks' texts differ; rank 0 prints before it which rank has
/// which.
void check_agreement(const Session&, const std::string& what, const std::string& mine);

/// Writes text to FILE, or to standard output for "-". Rank 0 only.
void write_result(const Session&, const std::string& file, const std::string& text);
/// The same, of a line of JSON. Nothing where there is no file.
void write_json(const Session&, const std::string& file, const nlohmann::ordered_json&);

}  // namespace cputrain::training
