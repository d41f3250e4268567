#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_citations.sh missing_files.awk FILES DOCUMENT... - checks that what
# comments and texts cite exists: places in the documents, and files.
#
# "SPEC.md 2.3-2.5, 4" cites three sections by number, "DESIGN.md, ruling 9" an
# item of a list, 'DESIGN.md, "Formats"' a heading; a citation may go on in the
# next line of a comment.
#
# A file is cited by its path or by the end of that, "router.h" as well as
# "kernels/router.h" or "//kernels:router.h", and is there if FILES, a list of
# paths, has such an end; a Markdown link is relative to its file and must lead
# somewhere. What only stands for a name is no citation: x.h, x_test.cc, my.toml,
# NAME.h, *.h, {x,y}.h; nor is what lies elsewhere: URLs, <header.h>, /etc/x.py.
set -euo pipefail
export LC_ALL=C
missing_files=(awk -v repository="$2" -f "$1")
mapfile -t texts < <(grep -E '(^|/)BUILD$|[.](h|cc|cu|md|bzl|toml|py|sh)$' "$2" |
  while IFS= read -r file; do [ -e "$file" ] && echo "$file"; done)
[ ${#texts[@]} -ge 700 ] || { echo "only ${#texts[@]} texts" >&2; exit 1; }
shift 2

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

has() { # whether $document has this
  case $1 in
    [0-9]*) grep -qE "^#+ ${1//./\\.} " "$document" ;;
    "ruling "*) grep -qE "^${1#ruling }\. \*\*" "$document" ;;
    *) grep -qE "^#+ $1\$" "$document" ;;
  esac
}

failed=0
for document in "$@"; do
  name=$(basename "$document")

  # Before a check may find nothing, it must find what is planted here.
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
  done < <(grep -laF "$name" "${texts[@]}")
  echo "$citations citations of $name checked"
done
# Planted citations again, for the check of files.
planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
cat >"$planted/a.h" <<'END'
inline const char* file = "core/not_cited.h";
// No file: gone_1.h, core/gone_2.toml:7 and (//core:gone_3.bzl). One: README.md
// and `bazel/citations.bzl`. Nor names: x.h, x_test.cc, my.toml, <gone.h>,
// NAME.py, *.md, https://there.is/no.md, /etc/gone.sh, a.b.h.in, gone.h(
int x;  // ../core/gone_4.cc.
END
printf '%s \x23 %s\n' 'key = "not_cited.toml"' gone_5.toml >"$planted/b.toml"
printf '%s\n' 'def f():' '  """Reads gone_6.sh,' '  then gone_7.md."""' \
  '  return "not_cited.py"' >"$planted/c.py"
printf '%s\n' 'See [this](gone_8.txt#a) and gone_9.cu' >"$planted/d.md"
example=$("${missing_files[@]}" "$planted"/*.{h,toml,py,md} | grep -o 'gone.*' |
  sort | tr '\n' ';')
[ "$example" = "$(printf 'gone_%s;' 1.h 2.toml 3.bzl 4.cc 5.toml 6.sh \
  7.md 8.txt 9.cu)" ] || { echo "saw: $example" >&2; exit 1; }

missing=$("${missing_files[@]}" "${texts[@]}")
echo "$(tail -n 1 <<<"$missing") cited files are missing"
if [ "$(wc -l <<<"$missing")" -gt 1 ]; then
  sed '$d' <<<"$missing" >&2
  echo "name a file that is there; what other projects call theirs is listed" \
    "in bazel/citations.bzl" >&2
  failed=1
fi
exit "$failed"
