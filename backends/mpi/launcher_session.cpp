#include "backends/mpi/launcher_session.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>

#include "backends/mpi/own_folder.h"

namespace cputrain::mpi {
namespace {

namespace fs = std::filesystem;

bool no_process_has(pid_t number) { return ::kill(number, 0) != 0 && errno == ESRCH; }

/// The number in the name of a session's folder, where it is a process's.
std::optional<pid_t> process_of(const fs::path& session) {
  const std::string name = session.filename();
  const auto number = number_after("pid.", name);
  return number ? number : number_after("dvm.", name);
}

bool is_named_after_job(const fs::path& session) {
  return number_after("jf.", session.filename().string()).has_value();
}

bool has_launchers_name(std::string_view top) {
  return top.starts_with("ompi.") || top.starts_with("prte.");
}

bool is_gone(const fs::path& session, const std::optional<placement::ProcessIdentity>& launcher) {
  const fs::path top = session.parent_path();
  if (!session.is_absolute() || session != session.lexically_normal()) return false;
  if (!has_launchers_name(top.filename().string())) return false;
  const auto process = process_of(session);
  if (!process && !is_named_after_job(session)) return false;
  if (!is_own_folder(session) || !is_own_folder(top)) return false;
  if (launcher && !placement::is_gone(*launcher)) return false;
  if (!process) return launcher.has_value();
  return (launcher && launcher->id == *process) || no_process_has(*process);
}

/// Names of this user's folder of sessions on this machine: with or without the host's domain.
std::vector<std::string> top_names() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  const std::string host = name.data(), user = std::to_string(::geteuid());
  std::vector<std::string> names;
  for (const std::string& known : {host, host.substr(0, host.find('.'))}) {
    for (const char* kind : {"ompi.", "prte."}) {
      names.push_back(std::string(kind).append(known).append(".").append(user));
    }
  }
  return names;
}

/// An empty one does not say whose it was. One that is an hour old is no job's that begins just
/// now.
void remove_empty(const fs::path& session) {
  std::error_code error;
  const auto written = fs::last_write_time(session, error);
  if (error || fs::file_time_type::clock::now() - written < std::chrono::hours(1)) return;
  if (is_own_folder(session)) ::rmdir(session.c_str());
}

}  // namespace

void remove_session(const fs::path& session,
                    const std::optional<placement::ProcessIdentity>& launcher) {
  if (!is_gone(session, launcher)) return;
  std::error_code ignored;
  fs::remove_all(session, ignored);
  // As the launcher does; it stays where other jobs have folders in it.
  ::rmdir(session.parent_path().c_str());
}

void remove_dead_sessions(const fs::path& base) {
  for (const std::string& name : top_names()) {
    const fs::path top = base / name;
    if (!is_own_folder(top)) continue;
    std::vector<fs::path> sessions;
    std::error_code error;
    for (fs::directory_iterator entry(top, error), end; !error && entry != end;
         entry.increment(error))
      sessions.push_back(entry->path());
    for (const fs::path& session : sessions) {
      if (is_named_after_job(session)) remove_empty(session);
      remove_session(session, std::nullopt);
    }
  }
}

std::vector<fs::path> session_bases(const std::function<const char*(const char*)>& variable) {
  std::vector<fs::path> bases{"/tmp"};
  const auto add = [&](const fs::path& path) {
    const fs::path base = path.lexically_normal();
    if (base.is_absolute() && std::ranges::find(bases, base) == bases.end()) bases.push_back(base);
  };
  for (const char* name :
       {"OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base", "TMPDIR", "TEMP", "TMP"}) {
    if (const char* value = variable(name)) add(value);
  }
  if (const char* session = variable("PMIX_SERVER_TMPDIR"))
    add(fs::path(session).parent_path().parent_path());
  return bases;
}

}  // namespace cputrain::mpi
