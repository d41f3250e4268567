#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What sweep_disk_cache.sh keeps and what it deletes.
set -euo pipefail

sweep=$PWD/bazel/sweep_disk_cache.sh
cd "$TEST_TMPDIR"
cache="$TEST_TMPDIR/a cache"

fail() {
  echo "$*" >&2
  exit 1
}

expect() { # what is there now
  local there
  there=$(cd "$cache" && find . -type f | sort | tr '\n' ' ')
  [ "$there" = "$1" ] || fail "expected: $1; there: $there"
}

"$sweep" "$cache" 1 || fail "no cache is no error"
for number in none 1O 20GB 1e3 -1 . ''; do
  ! "$sweep" "$cache" "$number" 2>refusal || fail "'$number' is a number"
  grep -q "no number of gigabytes: '$number'" refusal || fail "silent on '$number'"
done

mkdir -p "$cache"/{ac,cas}
touch a  # what the folder's name begins with
for day in 1 2 3 4; do
  head -c 1000 /dev/zero >"$cache/cas/read_on_day_$day"
  touch -a -d "2020-01-0$day" "$cache/cas/read_on_day_$day"
done
head -c 500 /dev/zero >"$cache/ac/read_on_day_5"
touch -a -d 2020-01-05 "$cache/ac/read_on_day_5"

# 4,500 bytes fit into 5,000; into 2,600 the latest three.
"$sweep" "$cache" 0.000005
expect "./ac/read_on_day_5 ./cas/read_on_day_1 ./cas/read_on_day_2 ./cas/read_on_day_3 ./cas/read_on_day_4 "
"$sweep" "$cache" 0.0000026
expect "./ac/read_on_day_5 ./cas/read_on_day_1 ./cas/read_on_day_2 ./cas/read_on_day_3 ./cas/read_on_day_4 "
touch -d '2 days ago' "$cache.swept" # it had looked today
"$sweep" "$cache" 0.0000026
expect "./ac/read_on_day_5 ./cas/read_on_day_3 ./cas/read_on_day_4 "
[ -e a ] || fail "a file beside the cache is gone"
