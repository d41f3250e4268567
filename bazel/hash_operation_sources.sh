#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# hash_operation_sources.sh TABLE FILE... - "OPERATION HASH" for each line of
# TABLE (kernels/cuda/operation_sources.txt): the SHA-256 of the names and the
# contents of its .cu files and of all that these include, directly or not, with
# #include "...", whatever #if says. Fails if a header is not among the FILEs,
# and if a .cu file of TABLE's folder is in no line.
set -euo pipefail
export LC_ALL=C
table=$1
shift
folder=$(dirname "$table")

declare -A known=() includes=() named=()
for file in "$@"; do known[$file]=1; done
while read -r file header; do
  includes[$file]+=" $header"
done < <(awk '/^#include "/ { split($0, part, "\""); print FILENAME, part[2] }' "$@")

while read -r operation sources; do
  [[ -n $operation && $operation != \#* ]] || continue
  declare -A closure=()
  waiting=()
  for source in $sources; do
    waiting+=("$folder/$source")
    named[$folder/$source]=1
  done
  while ((${#waiting[@]})); do
    file=${waiting[-1]}
    unset 'waiting[-1]'
    [[ -z ${closure[$file]:-} ]] || continue
    if [[ -z ${known[$file]:-} ]]; then
      echo "$operation: $file is not among the files of //bazel:operation_sources" >&2
      exit 1
    fi
    closure[$file]=1
    read -ra headers <<<"${includes[$file]:-}"
    waiting+=("${headers[@]}")
  done
  if [[ $operation != - ]]; then
    hash=$(printf '%s\n' "${!closure[@]}" | sort | xargs sha256sum | sha256sum)
    echo "$operation ${hash%% *}"
  fi
  unset closure
done <"$table"

for file in "$@"; do
  if [[ $file == "$folder"/*.cu && -z ${named[$file]:-} ]]; then
    echo "$file is in no line of $table: add it to the operations that it computes, or to '-'" >&2
    exit 1
  fi
done
