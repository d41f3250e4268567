#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What bazelw passes to Bazel.
set -euo pipefail

bazelw=$PWD/bazelw
mkdir "$TEST_TMPDIR/bin"
export PATH=$TEST_TMPDIR/bin:$PATH XDG_CACHE_HOME=$TEST_TMPDIR/cache
printf '#!/bin/sh\necho "$SOFTMOE_TOOLCHAIN $*"\n' >"$TEST_TMPDIR/bin/bazel-4"
printf '#!/bin/sh\necho another bazel\n' >"$TEST_TMPDIR/bin/bazel"
chmod +x "$TEST_TMPDIR"/bin/bazel{,-4}
# Starts nothing but what is looked at.
printf '#!/bin/sh\nsed "s/$/ installed/" "%s"\n' "$PWD/bazel/packages.txt" \
  >"$TEST_TMPDIR/bin/dpkg-query"
chmod +x "$TEST_TMPDIR/bin/dpkg-query"

# expect WORDS ARGUMENT... - bazelw calls bazel with WORDS, besides its flag,
# and always with a digest of the toolchain in the environment
expect() {
  local expected=$1 got
  shift
  got=$("$bazelw" "$@" | sed -E 's/^[0-9a-f]{32} //; s/ --disk_cache=[^ ]*//')
  [ "$got" = "$expected" ] || {
    echo "bazelw $*: expected '$expected', got '$got'" >&2
    exit 1
  }
}

expect help
expect "query //..." query //...
expect "test --config=full //..." test --config=full //...
expect "run //:verify -- run op=gemm" run //:verify -- run op=gemm
# Nothing of verify is built for its help.
expect "run //:mutate -- --help" run //:verify -- mutate --help
expect "run --config=x //:mutate -- --mutant a.b" \
  run --config=x //:verify -- mutate --mutant a.b
expect "run //:mutate --" run //:verify -- mutate

# A toolkit that is completed later is another one.
export CUDA_HOME=$TEST_TMPDIR/cuda
mkdir -p "$CUDA_HOME"/{bin,include}
touch "$CUDA_HOME/bin/nvcc"
printf '#!/bin/sh\necho "$SOFTMOE_CUDA"\n' >"$TEST_TMPDIR/bin/bazel-4"
[ -z "$("$bazelw" help)" ]
touch "$CUDA_HOME/include/nccl.h"
[ -n "$("$bazelw" help)" ]

# What the kernels cannot run on is said before anything is installed.
printf '#!/bin/sh\necho aarch64\n' >"$TEST_TMPDIR/bin/uname"
chmod +x "$TEST_TMPDIR/bin/uname"
status=0
text=$("$bazelw" help 2>&1) || status=$?
[[ $status = 5 && $text = *"x86-64 machine"* ]]
