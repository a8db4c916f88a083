#!/bin/sh
# small_shm.sh SIZE COMMAND...: runs the command where /dev/shm has only SIZE (in a mount namespace of its
# own); exits with 77 where that cannot be had.
size=$1
shift
new="--mount"
[ "$(id -u)" -eq 0 ] || new="--user --map-root-user --mount"
inside="mount -t tmpfs -o size=$size tmpfs /dev/shm"
# shellcheck disable=SC2086  # several words
unshare $new sh -c "$inside" || exit 77
# shellcheck disable=SC2086
exec unshare $new sh -c "$inside && exec \"\$@\"" sh "$@"
