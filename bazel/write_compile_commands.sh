#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# write_compile_commands.sh - joins what tidy.bzl writes for each source into
# compile_commands.json at the root of the workspace, for editors and clangd.
set -euo pipefail
root=${BUILD_WORKSPACE_DIRECTORY:?start it with ./bazelw run //:compile_commands}
new=$(mktemp "$root/.compile_commands.XXXXXX")
trap 'rm -f "$new"' EXIT
find -L . -path '*.tidy/*.json' | sort | {
  separator='['
  while read -r part; do
    printf '%s\n' "$separator"
    sed "s|@WORKSPACE@|$root|" "$part"
    separator=,
  done
  printf ']\n'
} >"$new"
sync "$new"
mv "$new" "$root/compile_commands.json"
echo "$root/compile_commands.json: $(grep -c '"file"' "$root/compile_commands.json") sources"
