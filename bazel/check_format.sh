#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_format.sh STYLE FOLDER - whether clang-format 14 would change a source
# under FOLDER. The version is pinned, for each has its own idea of the style.
set -euo pipefail
style=file:$1
folder=$2

formatted() { clang-format-14 --style="$style" --dry-run --Werror "$@"; }

# A check that finds nothing has to be able to.
spoilt=$(mktemp --suffix=.cc)
trap 'rm -f "$spoilt"' EXIT
echo 'int  x ;' >"$spoilt"
if formatted "$spoilt" 2>/dev/null; then
  echo "check_format.sh: clang-format finds fault with nothing" >&2
  exit 1
fi

mapfile -t sources < <(find -L "$folder" -name '*.cc' -o -name '*.cu' \
  -o -name '*.h' -o -name '*.inc')
if [ ${#sources[@]} -eq 0 ]; then
  echo "check_format.sh: no sources under $folder" >&2
  exit 1
fi
if ! formatted "${sources[@]}"; then
  echo "mend it with: clang-format-14 -i FILE" >&2
  exit 1
fi
echo "${#sources[@]} sources of $folder are formatted"
