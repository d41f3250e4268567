#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# false_alarms - the randomised suites again and again, each time with a fresh
# seed: on unmutated code none may fail.
#
#   ./bazelw run //:false_alarms -- --rounds 50 [--seed N]
#
# Prints what failed with the command that repeats it, then how many cases of
# how many suites ran; after Ctrl-C too, ending with 75. Ends with 1 if one
# failed. Seed N gives round r the seed N + r; without it, seeds are from the
# machine. They are built once it is run.
set -euo pipefail

suites=(
  property_tests/test
  property_tests/verify/test
  property_tests/verify/kernels_property_test
  property_tests/verify/engine/test
  property_tests/verify/gradients/test
)
rounds=50 seed=""
while [ $# -gt 0 ]; do
  case $1 in
    --rounds | --seed)
      # Refuses 08, which bash would read as octal, and values that overflow.
      if ! [[ ${2:-} =~ ^(0|[1-9][0-9]{0,17})$ ]]; then
        echo "false_alarms: $1 needs a whole number of at most 18 digits" >&2
        exit 2
      fi
      [ "$1" = --rounds ] && rounds=$2 || seed=$2
      shift 2
      ;;
    --help)
      sed -n '4,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    *)
      echo "false_alarms: unknown option $1; there are --rounds and --seed" >&2
      exit 2
      ;;
  esac
done
if [ "$rounds" -eq 0 ] || [ -z "${BUILD_WORKSPACE_DIRECTORY:-}" ]; then
  echo "false_alarms: nothing to run; use ./bazelw run //:false_alarms" >&2
  exit 2
fi
cd "$BUILD_WORKSPACE_DIRECTORY"
targets=()
for suite in "${suites[@]}"; do targets+=("//${suite%/*}:${suite##*/}"); done
./bazelw build "${targets[@]}"

if ! log=$(mktemp); then
  echo "false_alarms: set TMPDIR to a folder that can be written" >&2
  exit 5
fi
trap 'rm -f "$log"' EXIT
runs=0 cases=0 properties=0 failures=0 round=0
summary() {
  echo "$round rounds of ${#suites[@]} suites with fresh seeds: $cases cases" \
    "of $properties property runs, $failures of $runs suite runs failed"
}
trap 'echo; summary; exit 75' INT TERM
for ((; round < rounds; ++round)); do
  for suite in "${suites[@]}"; do
    if [ -n "$seed" ]; then
      now=$((seed + round))
    else
      now=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
    fi
    status=0
    (cd "bazel-bin/$suite.runfiles/softmoe" &&
      RC_PARAMS="seed=$now verbose_progress=1" "$suite") >"$log" 2>&1 || status=$?
    runs=$((runs + 1))
    # RapidCheck prints a line of one dot for each case of a property.
    read -r lines dots < <(grep -E '^\.+$' "$log" |
      awk '{ dots += length($0) } END { print NR, dots + 0 }')
    properties=$((properties + lines))
    cases=$((cases + dots))
    if [ $status -ne 0 ]; then
      failures=$((failures + 1))
      grep -vE '^\[ +(OK|RUN) +\]|^\.+$' "$log" | tail -n 40 || true
      echo "FAILED with $status: ./bazelw test" \
        "//${suite%/*}:${suite##*/} --test_env=RC_PARAMS=seed=$now"
    fi
  done
  [ ! -t 2 ] || printf '\r%d of %d rounds' "$((round + 1))" "$rounds" >&2
done
[ ! -t 2 ] || echo >&2
summary
[ "$failures" -eq 0 ]
