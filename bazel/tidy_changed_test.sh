#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What tidy_changed.sh says of a source, whatever Bazel says to it.
set -euo pipefail

mkdir -p "$TEST_TMPDIR"/{bin,repository/{bazel,room}}
cp bazel/tidy_changed.sh "$TEST_TMPDIR/repository/bazel"
cd "$TEST_TMPDIR/repository"
touch room/BUILD room/{a,b}.cc room/d.h  # nothing compiles b.cc, which is new
export PATH=$TEST_TMPDIR/bin:$PATH
printf '#!/bin/sh\ncase $1 in diff) printf "room/a.cc\\nroom/d.h\\n" ;; ls-files) echo room/b.cc ;; esac\n' \
  >"$TEST_TMPDIR/bin/git"
printf '#!/bin/sh\n' >"$TEST_TMPDIR/bin/clang-tidy-14"
chmod +x "$TEST_TMPDIR"/bin/*

seconds=600
# expect STATUS PATTERN QUERY [BUILD] - it ends so and prints this where these
# commands are Bazel's query and build; none of its $seconds are enough for `late`
expect() {
  local status=0 text
  {
    echo '#!/bin/sh'
    echo 'late() { trap "kill \$!; echo ERROR: build interrupted; exit 8" INT; sleep 60 & wait; }'
    echo 'case $* in *intersect*) echo //room:a.cc ;;'
    echo "query*) $3 ;; build*) ${4:-} ;; esac"
  } >bazelw
  chmod +x bazelw
  text=$(bazel/tidy_changed.sh HEAD "$seconds" 2>&1) || status=$?
  [[ $status = "$1" && $text = $2 ]] || {
    echo "expected $1 and '$2', got $status and '$text'" >&2
    exit 1
  }
}

room='echo //room:room'
expect 0 'tidy: not checked*: room/d.h*tidy: not checked*: room/b.cc*tidy: 1 of 2 sources *' \
  "$room" 'echo INFO: built >&2'
expect 1 '*room/a.cc:1:2: warning: w*tidy: 0 of 2 sources *' "$room" \
  'echo /x/execroot/softmoe/room/a.cc:1:2: warning: w; exit 1'
expect 1 '*ERROR: e*tidy: 0 of 2 sources *' "$room" 'echo ERROR: e >&2; exit 1'
expect 1 '*bazelw: b*tidy: 0 of 2 sources *' "$room" 'echo bazelw: b >&2; exit 5'
expect 0 '*not checked*: room/a.cc*not checked*: room/b.cc*tidy: 0 of 2 sources *' true
expect 1 '*ERROR: no such package' 'echo ERROR: no such package >&2; exit 7'
expect 1 '*bazelw: b' 'echo bazelw: b >&2; exit 5'

# All targets are checked, those tagged full, too; those that need a toolkit are
# none without one.
expect 0 '*tidy: 1 of 2 *' "$room" 'case $* in *--config=full*) ;; *) exit 1 ;; esac'
expect 0 '*tidy: 1 of 2 *' \
  'case $* in *except*attr\(target_compatible_with,*no_toolkit*) echo //room:room ;; *) exit 1 ;; esac'

# What is found by the time that it is interrupted counts.
seconds=4
expect 0 '*ERROR: build interrupted*tidy: 0 of 2 sources *' "$room" late
expect 1 '*room/a.cc:1:2: error: e*tidy: 0 of 2 sources *' "$room" \
  'echo /x/execroot/softmoe/room/a.cc:1:2: error: e; late'
