#include "backends/mpi/launcher_session.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <string_view>

#include "backends/mpi/own_folder.h"

namespace cputrain::mpi {
namespace {

namespace fs = std::filesystem;

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// The numbers that a process has in its namespaces, the first being ours: proc(5) has the lines.
bool has_number(const fs::path& process, pid_t number) {
  std::ifstream status(process / "status");
  std::string word;
  while (status >> word && word != "NSpid:") continue;
  for (pid_t one = 0; status >> one;) {
    if (one == number) return true;
  }
  return false;
}

/// Looks at all processes that are seen here. Those of containers are, with other numbers there.
bool no_process_has(pid_t number, const fs::path& proc) {
  if (::kill(number, 0) == 0 || errno != ESRCH) return false;
  std::error_code error;
  for (fs::directory_iterator entry(proc, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_number(entry->path().filename())) continue;
    if (has_number(entry->path(), number)) return false;
  }
  return !error;
}

/// From within a container one does not see processes of other containers and of the machine.
/// Folders on its own root are its own, too.
bool may_be_of_unseen(const fs::path& folder, const fs::path& proc) {
  constexpr ino_t kWholeMachine = 0xEFFFFFFC;  // the kernel's PROC_PID_INIT_INO
  struct stat space {
  }, own{}, root{};
  if (::stat((proc / "self/ns/pid").c_str(), &space) == 0 && space.st_ino == kWholeMachine) {
    return false;
  }
  return ::stat(folder.c_str(), &own) != 0 || ::stat("/", &root) != 0 || own.st_dev != root.st_dev;
}

/// This machine's name, with its domain and without, which is the same where it has none.
std::vector<std::string> host_names() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  const std::string host = name.data();
  return {host, host.substr(0, host.find('.'))};
}

std::string user() { return std::to_string(::geteuid()); }

/// PROGRAM.HOST.N.USER: what is left of such a name of this user's behind its program.
std::optional<std::string_view> host_and_number(std::string_view name) {
  const std::string end = "." + user();
  if (!name.ends_with(end)) return std::nullopt;
  name.remove_suffix(end.size());
  for (const std::string_view program : {"prterun.", "prted.", "prte."}) {
    if (name.starts_with(program)) return name.substr(program.size());
  }
  return std::nullopt;
}

/// The number in the name of a session that is one folder.
std::optional<pid_t> process_of_single(const fs::path& session) {
  const std::string name = session.filename();
  const auto rest = host_and_number(name);
  if (!rest || rest->rfind('.') == rest->npos) return std::nullopt;
  return number_after(".", rest->substr(rest->rfind('.')));
}

bool is_of_this_host(std::string_view name) {
  const auto rest = host_and_number(name);
  if (!rest) return false;
  return std::ranges::any_of(host_names(), [&](const std::string& host) {
    return number_after(host + ".", *rest).has_value();
  });
}

/// The number in the name of a session below a folder of sessions, where it is a process's.
std::optional<pid_t> process_of_nested(const fs::path& session) {
  const std::string name = session.filename();
  const auto number = number_after("pid.", name);
  return number ? number : number_after("dvm.", name);
}

bool is_named_after_job(const fs::path& session) {
  return number_after("jf.", session.filename().string()).has_value();
}

bool is_nested(const fs::path& session) {
  const std::string top = session.parent_path().filename();
  return (top.starts_with("ompi.") || top.starts_with("prte.")) &&
         (process_of_nested(session) || is_named_after_job(session));
}

bool is_gone(const fs::path& session, const std::optional<placement::ProcessIdentity>& launcher,
             const fs::path& proc) {
  if (!session.is_absolute() || session != session.lexically_normal()) return false;
  const bool nested = is_nested(session);
  const auto process = nested ? process_of_nested(session) : process_of_single(session);
  if (!process && !nested) return false;
  if (!is_own_folder(session) || (nested && !is_own_folder(session.parent_path()))) return false;
  if (launcher && !placement::is_gone(*launcher)) return false;
  if (!process) return launcher.has_value();
  return (launcher && launcher->id == *process) || no_process_has(*process, proc);
}

/// Names of this user's folders of sessions on this machine.
std::vector<std::string> top_names() {
  std::vector<std::string> names;
  for (const std::string& host : host_names()) {
    for (const char* kind : {"ompi.", "prte."}) {
      names.push_back(std::string(kind).append(host).append(".").append(user()));
    }
  }
  return names;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    paths.push_back(entry->path());
  }
  return paths;
}

/// An empty one may be any job's. If it is an hour old, it is not that of a job that just begins.
void remove_empty(const fs::path& session) {
  std::error_code error;
  const auto written = fs::last_write_time(session, error);
  if (error || fs::file_time_type::clock::now() - written < std::chrono::hours(1)) return;
  if (is_own_folder(session)) ::rmdir(session.c_str());
}

}  // namespace

void remove_session(const fs::path& session,
                    const std::optional<placement::ProcessIdentity>& launcher,
                    const fs::path& proc) {
  if (!is_gone(session, launcher, proc)) return;
  std::error_code ignored;
  fs::remove_all(session, ignored);
  // As the launcher does; it stays where other jobs have folders in it.
  if (is_nested(session)) ::rmdir(session.parent_path().c_str());
}

void remove_dead_sessions(const fs::path& base, const fs::path& proc) {
  if (may_be_of_unseen(base, proc)) return;
  for (const std::string& name : top_names()) {
    const fs::path top = base / name;
    if (!is_own_folder(top)) continue;
    for (const fs::path& session : entries_of(top)) {
      if (is_named_after_job(session)) remove_empty(session);
      remove_session(session, std::nullopt, proc);
    }
  }
  for (const fs::path& session : entries_of(base)) {
    if (is_of_this_host(session.filename().string())) remove_session(session, std::nullopt, proc);
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
  if (const char* session = variable("PMIX_SERVER_TMPDIR")) {
    const fs::path parent = fs::path(session).parent_path();
    add(process_of_single(session) ? parent : parent.parent_path());
  }
  return bases;
}

}  // namespace cputrain::mpi
