#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_cuda_resources.sh - reads what `ptxas -v` said of each kernel; fails if
# one spills registers or has a stack frame, or if an architecture has no kernel.
#
#   check_cuda_resources.sh none|violation 'sm_80 sm_90a ...' FILE...
#
# "violation" inverts the result: for the test of this test.
expected=$1
architectures=$2
shift 2
awk -v expected="$expected" -v architectures="$architectures" '
  /Compiling entry function/ {
    kernel = architecture = $0
    sub(/.*Compiling entry function ./, "", kernel)
    sub(/. for .*/, "", kernel)
    sub(/.*. for ./, "", architecture)
    sub(/.$/, "", architecture)
    ++kernels[architecture]
  }
  / bytes stack frame, / {
    if ($1 + $5 + $9 != 0) {
      print "VIOLATION " architecture " " kernel ": " $0
      ++violations
    }
    ++described
  }
  / Used [0-9]+ registers/ {
    line = $0
    sub(/.*Used /, "", line)
    printf "%-8s %s\n         %s\n", architecture, kernel, line
  }
  END {
    n = split(architectures, names, " ")
    for (i = 1; i <= n; ++i) {
      total += kernels[names[i]]
      if (kernels[names[i]] == 0) {
        print "no kernel was compiled for " names[i]
        broken = 1
      }
    }
    if (n == 0 || described != total) {
      print "ptxas described " described + 0 " of " total + 0 " kernels"
      broken = 1
    }
    print total + 0 " kernels, " violations + 0 " violations"
    if (broken) exit 1
    exit (violations > 0) != (expected == "violation")
  }' "$@"
