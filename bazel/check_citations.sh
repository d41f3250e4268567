#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_citations.sh FOLDER DOCUMENT... - whether what files under FOLDER cite
# of the documents is there. "SPEC.md 2.3-2.5, 4" cites three sections by
# number, "DESIGN.md, ruling 9" an item of a list, 'DESIGN.md, "Formats"' a
# heading; a citation may go on in the next line of a comment.
set -euo pipefail
export LC_ALL=C
folder=$1
shift

cited() { # of $name in the text on stdin, one per line
  local number='[0-9][0-9a-c.]*' this="\<${name/./\\.}('s)?,? +" text
  text=$(sed -E 's,^[[:space:]]*(//|#)?[[:space:]]*,,' | tr '\n' ' ')
  { grep -aoE "$this$number((, |-)$number)*" <<<"$text" || true; } |
    { grep -oE "$number" || true; } | sed 's/\.$//'
  { grep -aoE "${this}ruling +[0-9]+" <<<"$text" || true; } |
    sed -E 's/.*ruling +/ruling /'
  { grep -aoE "$this\"[A-Z][^\"]*\"" <<<"$text" || true; } |
    sed -E 's/^[^"]*"(.*)"$/\1/'
}

has() { # Does $document have this?
  case $1 in
    [0-9]*) grep -qE "^#+ ${1//./\\.} " "$document" ;;
    "ruling "*) grep -qE "^${1#ruling }\. \*\*" "$document" ;;
    *) grep -qE "^#+ $1\$" "$document" ;;
  esac
}

failed=0
for document in "$@"; do
  name=$(basename "$document")

  # A check that finds nothing has to be able to.
  example=$(printf '%s\n' "// ($name 1.1," '// 98.7-98.9). '"$name" '# 99a.' \
    "// ($name," '// ruling 97; '"$name"', "No such' '// title").' |
    cited | tr '\n' ';')
  [ "$example" = "1.1;98.7;98.9;99a;ruling 97;No such title;" ] ||
    { echo "saw: $example" >&2; exit 1; }
  if has 99a || has "ruling 97" || has "No such title" ||
    ! { has 1.1 || has "ruling 1"; }; then
    echo "$document: neither '## 1.1 Title' nor '1. **Ruling**'" >&2
    exit 1
  fi

  citations=0
  while IFS= read -r file; do
    while IFS= read -r place; do
      citations=$((citations + 1))
      has "$place" && continue
      echo "$file cites $name, $place; $document has no such place" >&2
      failed=1
    done < <(cited <"$file")
  done < <(grep -RlaF "$name" "$folder" | sort)
  echo "$citations citations of $name checked"
done
exit "$failed"
