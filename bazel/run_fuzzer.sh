#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run_fuzzer.sh - starts a fuzzer of //bazel:fuzz.bzl; Bazel calls it.
#
#   run_fuzzer.sh explore|replay PROGRAM NAME OPTIONS...
#
# `replay` is the test: seeds and some mutations, nothing kept. `explore` runs
# until it is stopped, or as its options say. It keeps inputs that reached new
# code, to start from them the next time, and inputs that fail, in
# $XDG_CACHE_HOME/softmoe/fuzz/NAME (or ~/.cache/softmoe/fuzz/NAME). Options are
# those of libFuzzer; a file among them is run alone, to see a failure again.
set -euo pipefail

mode=$1 program=$PWD/$2 name=$3
shift 3

scratch=$(mktemp -d "${TEST_TMPDIR:-${TMPDIR:-/tmp}}/fuzz.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/seeds"
# The program's own seeds (fuzz_support.h).
SOFTMOE_FUZZ_SEEDS=$scratch/seeds "$program"

# The user's own folder, which file names are relative to.
[ "$mode" = replay ] || cd "${BUILD_WORKING_DIRECTORY:-$PWD}"
files=() options=()
for argument in "$@"; do
  if [ -e "$argument" ]; then files+=("$argument"); else options+=("$argument"); fi
done

export UBSAN_OPTIONS=print_stacktrace=1
# Not the options that Bazel's tests inherit: here an allocation that fails must
# say so. The last two keep the process small, so that it forks faster.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:quarantine_size_mb=8:malloc_context_size=5
if [ "$mode" = replay ]; then
  "$program" "${options[@]}" -artifact_prefix="${TEST_UNDECLARED_OUTPUTS_DIR:-$scratch}/" \
    "$scratch/seeds"
elif [ ${#files[@]} -gt 0 ]; then
  "$program" "${options[@]}" "${files[@]}"
else
  kept=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/softmoe/fuzz/$name
  mkdir -p "$kept/corpus" "$kept/failures"
  echo "run_fuzzer: inputs and failures are kept in $kept" >&2
  "$program" "${options[@]}" -artifact_prefix="$kept/failures/" \
    "$kept/corpus" "$scratch/seeds"
fi
