# shellcheck shell=sh
# What the container image starts (scripts/package/Dockerfile): cputrain with the words given, unless the first of
# them is a launcher, a shell or cputrain itself.
case ${1-} in
  cputrain | mpirun | mpiexec | sh | bash | /*) exec "$@" ;;
  *) exec cputrain "$@" ;;
esac
