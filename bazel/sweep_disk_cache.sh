#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# sweep_disk_cache.sh CACHE GIGABYTES - deletes from Bazel's disk cache what was
# read longest ago, until it takes no more than so many gigabytes (10^9 bytes).
#
# Bazel 4 never does this, and a single build of everything under a sanitizer
# writes gigabytes. It may run beside a build: an entry that is gone is built
# again. It looks once a day (the time of CACHE.swept says when it last did).
set -euo pipefail

cache=$1
limit=$2
stamp=$cache.swept

# What is no number would be 0 to awk, and the whole cache too much.
if ! [[ $limit =~ ^[0-9]*\.?[0-9]+$ ]]; then
  echo "sweep_disk_cache.sh: no number of gigabytes: '$limit'" >&2
  exit 2
fi
[ -d "$cache" ] || exit 0
[ -z "$(find "$stamp" -mtime -1 2>/dev/null)" ] || exit 0
touch "$stamp"

# Latest first: time of the last access, bytes, name (digests: no white space).
cd "$cache"
find . -type f -printf '%A@ %s %p\n' 2>/dev/null | sort -rn |
  awk -v limit="$limit" '{ sum += $2 } sum > limit * 1e9 { print $3 }' |
  xargs -r rm -f --
