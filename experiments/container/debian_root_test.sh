#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# debian_root_test.sh [COMMAND...] - builds the root of the container recipes
# with debootstrap instead of Docker, by the same install.sh and from the last
# commit, and runs COMMAND there, by default ./bazelw run //:grid -- run smoke.
#
#   ./bazelw test //experiments/container:debian_root_test \
#     --test_output=streamed
#
# Needs root, debootstrap, the network, 6 GB in TMPDIR and, cold, half an hour
# of two cores. What it mounts is in a mount namespace of its own, and its
# processes end with it; the root is deleted in the end, whatever happens.
set -euo pipefail
source=$(dirname "$(readlink -f "$0")")/../..
[ $# -gt 0 ] || set -- ./bazelw run //:grid -- run smoke

for program in debootstrap git unshare; do
  command -v "$program" >/dev/null || PATH=$PATH:/usr/sbin:/sbin
  command -v "$program" >/dev/null || { echo "$0: no $program here" >&2; exit 5; }
done
[ "$(id -u)" = 0 ] || { echo "$0: needs root, for chroot" >&2; exit 5; }

root=$(mktemp -d -t softmoe-root.XXXXXX)
trap 'rm -rf --one-file-system "$root"' EXIT
child=
trap '[ -z "$child" ] || kill -KILL "$child"; exit 75' INT TERM

echo "debootstrap in $root ..."
debootstrap --variant=minbase --include=ca-certificates bookworm "$root" \
  >"$root.log" 2>&1 || { tail -n 20 "$root.log" >&2; exit 5; }
rm -f "$root.log"
# Use this machine's mirrors and proxies if its packages are the same.
if grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then
  rm -f "$root/etc/apt/sources.list"
  for file in sources.list sources.list.d apt.conf.d; do
    [ ! -e "/etc/apt/$file" ] || cp -rL "/etc/apt/$file" "$root/etc/apt/"
  done
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
git clone -q "$source" "$root/softmoe"

ROOT=$root unshare --mount --propagation private --pid --fork --kill-child \
  bash -c '
    set -e
    mount -t proc proc "$ROOT/proc"
    mkdir -p "$ROOT/dev/shm"
    mount -t tmpfs tmpfs "$ROOT/dev/shm"
    exec env -i HOME=/root LANG=C.UTF-8 \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      chroot "$ROOT" /bin/bash -c "
        set -e
        cd /softmoe
        experiments/container/install.sh /softmoe
        exec \"\$@\"" bash "$@"' bash "$@" &
child=$!
wait "$child"
