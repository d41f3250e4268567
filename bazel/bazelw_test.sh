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

# From a folder that is only linked into the workspace, Bazel starts within it,
# and programs get the folder's own name.
mkdir -p "$TEST_TMPDIR"/{workspace/bazel,elsewhere}
cp "$bazelw" "$TEST_TMPDIR/workspace"
cp bazel/{packages.txt,sweep_disk_cache.sh,toolchain_facts.sh} "$TEST_TMPDIR/workspace/bazel"
ln -s "$TEST_TMPDIR/elsewhere" "$TEST_TMPDIR/workspace/runs"
ln -s "$TEST_TMPDIR/workspace" "$TEST_TMPDIR/link"
printf '#!/bin/sh\necho "$(pwd -P) $*"\n' >"$TEST_TMPDIR/bin/bazel-4"
here=$(cd "$TEST_TMPDIR" && pwd -P)
for workspace in workspace link; do
  text=$(cd "$TEST_TMPDIR/$workspace/runs" && "$TEST_TMPDIR/$workspace/bazelw" run x)
  [[ $text = "$here/workspace run "*" BUILD_WORKING_DIRECTORY='$here/elsewhere' x" ]] || {
    echo "from $workspace/runs: '$text'" >&2
    exit 1
  }
done
text=$(cd "$TEST_TMPDIR/link/bazel" && ../bazelw help)
[ "$text" = "$here/workspace/bazel help" ] || { echo "from link: '$text'" >&2; exit 1; }

# A folder's name may hold what means something to the shell that Bazel calls.
mkdir "$TEST_TMPDIR/it's & more"
text=$(cd "$TEST_TMPDIR/it's & more" && "$TEST_TMPDIR/workspace/bazelw" run x)
words=${text#*--run_under=}
[ "$(sh -c "${words% x} sh -c 'echo \"\$BUILD_WORKING_DIRECTORY\"'")" = \
  "$here/it's & more" ] || { echo "a quote in a name: '$text'" >&2; exit 1; }

# The workspace is found by a link to the script, and whatever CDPATH is.
ln -s "$TEST_TMPDIR/workspace/bazelw" "$TEST_TMPDIR/bin/linked"
text=$(cd "$TEST_TMPDIR/elsewhere" && linked help)
[ "$text" = "$here/workspace help" ] || { echo "by a link: '$text'" >&2; exit 1; }
text=$(cd "$TEST_TMPDIR" && CDPATH=. bash workspace/bazelw help)
[ "$text" = "$here/workspace help" ] || { echo "CDPATH: '$text'" >&2; exit 1; }

# A relative folder for caches would be another one in each folder.
text=$(XDG_CACHE_HOME=relative HOME=$TEST_TMPDIR "$bazelw" build x)
[[ $text = *" --disk_cache=$TEST_TMPDIR/.cache/softmoe/bazel x" ]] || {
  echo "XDG_CACHE_HOME=relative: '$text'" >&2
  exit 1
}

# Of the cache nothing is deleted where nobody said how much.
status=0
text=$(SOFTMOE_DISK_CACHE_GB=none "$bazelw" build x 2>&1) || status=$?
[[ $status = 2 && $text = *"SOFTMOE_DISK_CACHE_GB"*"'none'"* ]] || {
  echo "SOFTMOE_DISK_CACHE_GB=none: status $status, '$text'" >&2
  exit 1
}
SOFTMOE_DISK_CACHE_GB=.5 "$bazelw" build x >/dev/null

# A compiler that is upgraded is another one, and so is a library, even one that
# packages.txt names only through a package that depends on it.
for compiler in gcc g++ clang++; do
  printf '#!/bin/sh\n[ "$UPGRADED" = %s ] && echo 2 || echo 1\n' "$compiler" \
    >"$TEST_TMPDIR/bin/$compiler"
done
echo 'case "$UPGRADED $*" in dpkg-query*" lib*-dev "*) echo libx-dev 2 ;; esac' \
  >>"$TEST_TMPDIR/bin/dpkg-query"
printf '#!/bin/sh\necho "$SOFTMOE_TOOLCHAIN"\n' >"$TEST_TMPDIR/bin/bazel-4"
chmod +x "$TEST_TMPDIR"/bin/*
digest=$("$bazelw" help)
for program in gcc g++ clang++ dpkg-query nothing; do
  later=$(UPGRADED=$program "$bazelw" help)
  [ "$program $later" = "nothing $digest" ] || [ "$later" != "$digest" ] || {
    echo "an upgrade is not noticed: $program" >&2
    exit 1
  }
done

# A toolkit that is completed later is another one.
export CUDA_HOME=$TEST_TMPDIR/cuda
mkdir -p "$CUDA_HOME"/{bin,include}
touch "$CUDA_HOME/bin/nvcc"
printf '#!/bin/sh\necho "$SOFTMOE_CUDA"\n' >"$TEST_TMPDIR/bin/bazel-4"
[ -z "$("$bazelw" help)" ]
touch "$CUDA_HOME/include/nccl.h"
with_nccl=$("$bazelw" help)
[ -n "$with_nccl" ]
touch "$CUDA_HOME/include/cublasLt.h"
[ "$("$bazelw" help)" != "$with_nccl" ]

# What the kernels cannot run on is said before anything is installed.
printf '#!/bin/sh\necho aarch64\n' >"$TEST_TMPDIR/bin/uname"
chmod +x "$TEST_TMPDIR/bin/uname"
status=0
text=$("$bazelw" help 2>&1) || status=$?
[[ $status = 5 && $text = *"x86-64 machine"* ]]
