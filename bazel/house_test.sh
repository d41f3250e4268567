#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# house_test.sh draw_house.awk EDGES house.svg - whether the picture in
# README.md is what draw_house.awk draws of the graph that was built.
set -euo pipefail
draw=$1 edges=$2 picture=$3
again="draw it again: ./bazelw run //bazel:draw_house"

awk -f "$draw" "$edges" | diff "$picture" - ||
  { echo "$picture is not what is built; $again" >&2; exit 1; }

# A picture of another graph is refused, and by name.
refuses() { # GRAPH-FILTER SENTENCE
  local said
  if said=$(eval "$1" <"$edges" | awk -f "$draw" 2>&1 >/dev/null); then
    echo "draws a graph changed by: $1" >&2
    exit 1
  fi
  grep -qF "$2" <<<"$said" || { echo "$1: says only: $said" >&2; exit 1; }
}
refuses "sed '\$a trainer/run reference/ product'" \
  "trainer uses reference, which is not drawn"
refuses "grep -v '^property_tests[^ ]* reference/'" \
  "property_tests does not use reference any more"
refuses "grep -v '^trainer/tokens trainer/corpora '" \
  "data flow from trainer/corpora to trainer/tokens"
refuses "grep -v '^kernels[^ ]* core/'" "kernels does not use core"
echo "$(wc -l <"$edges") dependencies between rooms, as drawn"
