#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What the text _COMPILE of compilation.bzl says of the inputs that a compiler
# read, and that it fails whenever that may be wrong.
set -euo pipefail

# As Starlark reads it.
compile=$(sed -n '/^_COMPILE = """$/,/"""$/p' bazel/compilation.bzl | sed '1d; s/"""$//; s/\\\\/\\/g')
cd "$TEST_TMPDIR"
mkdir bin temporary
export PATH=$PWD/bin:$PATH TMPDIR=$PWD/temporary

# A compiler that reads two of three inputs, says two things, and ends with $STATUS.
cat >compiler <<'END'
#!/bin/sh
[ "$1 $2 $3" = "-c -MD -MF" ] || exit 9
printf 'a.o: room/a.cc \\\n  ./room/b.h /usr/include/c.h\n' >"$4"
echo 'ptxas info    : Used 8 registers' >&2
echo 'a.cc:1:1: warning: w' >&2
exit "${STATUS:-0}"
END
chmod +x compiler
printf '%s\n' room/d.h room/b.h room/a.cc >inputs

run() { # REPORT - status and messages of a compilation
  rm -f unused
  status=0
  messages=$(bash -c "$compile" compile inputs unused "$1" ./compiler -c 2>&1) || status=$?
}

fail() {
  echo "$*; status $status, messages '$messages'" >&2
  exit 1
}

run ""
[[ $status = 0 && $messages = 'a.cc:1:1: warning: w' ]] || fail "a compilation"
[ "$(cat unused)" = room/d.h ] || fail "unused: $(cat unused)"
[ -z "$(ls temporary)" ] || fail "left in TMPDIR: $(ls temporary)"

run report
grep -q '^ptxas info' report || fail "no report"

STATUS=3 run ""
[[ $status = 3 && $messages = *warning* ]] || fail "a compiler that failed"

# Whichever program writes to a full disk, what was not read is not known.
for program in tr sed sort comm; do
  printf '#!/bin/sh\n/usr/bin/%s "$@" | head -n 1\nexit 2\n' "$program" >"bin/$program"
  chmod +x "bin/$program"
  run ""
  [ "$status" != 0 ] || fail "$program failed, but unused is believed: $(cat unused)"
  rm "bin/$program"
done
