# shellcheck shell=bash
# shellcheck disable=SC2154  # job, grace: of scripts/supervise, which sources this
# What hangs on when a training has ended: a launcher waits for ever for a daemon of its own that is out of reach, and so
# does the daemon.

is_mpirun() { [[ ${1##*/} =~ ^(mpirun|mpiexec|orterun|prterun) ]]; }

# end_lingering  a launcher whose processes on this machine, its ranks, have been gone for the seconds of --grace.
hung_on=false ranks_seen=''
end_lingering() {
  local name file children
  { IFS= read -r name <"/proc/$job/comm"; } 2>/dev/null && is_mpirun "$name" || return 0
  for file in "/proc/$job/task/"*/children; do
    { read -r children <"$file"; } 2>/dev/null || true
    [[ -z ${children-} ]] || ranks_seen=$SECONDS
  done
  [[ -n $ranks_seen && $((SECONDS - ranks_seen)) -ge $grace ]] || return 0
  say "the ranks on this machine have ended, and their launcher, process $job, has not: it is killed"
  hung_on=true
  kill -KILL "$job" 2>/dev/null || true
}

# removal_of FOLDER  words for a host's shell, which end daemons of launchers that had FOLDER (it is a word of their
# command, and of grep's) and remove their files.
removal_of() {
  local session
  session=$(quoted "$1/session")
  echo "for p in \$(grep -lszxF $session /proc/[0-9]*/cmdline); do p=\${p#/proc/};" \
    "kill -KILL \${p%/cmdline} 2>/dev/null; done; rm -rf $session; rmdir $(quoted "$1") 2>/dev/null || true"
}
