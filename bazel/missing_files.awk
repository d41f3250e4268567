# SPDX-License-Identifier: Apache-2.0
#
# awk -v repository=FILES -f missing_files.awk TEXT... - prints "TEXT:LINE cites
# NAME" for every file that a comment or document cites and FILES does not have,
# then how many they are of how many. What counts: check_citations.sh.
BEGIN {
  while ((status = (getline path <repository)) > 0) {
    there[path] = suffix[path] = 1
    while (i = index(path, "/")) {
      prefix = prefix substr(path, 1, i)
      folders[substr(prefix, 1, length(prefix) - 1)] = 1
      path = substr(path, i + 1)
      suffix[path] = 1
    }
    prefix = ""
  }
  if (status < 0) {
    print "cannot read " repository >"/dev/stderr"
    exit 1
  }
}

# What a line says to people, not to the compiler.
function words(line) {
  if (kind == "md") return line
  if (kind ~ /^(h|cc|cu)$/) {
    return match(line, /\/[\/*]([^\/]|$)/) ? substr(line, RSTART + 2) : ""
  }
  if (kind ~ /^(py|bzl)$/) {
    quotes = gsub(/"""/, "&", line)
    if (in_text || quotes) {
      if (quotes % 2) in_text = !in_text
      return line
    }
  }
  return match(line, /(^|[ \t])#/) ? substr(line, RSTART + RLENGTH) : ""
}

function is_placeholder(name) {
  sub(/.*\//, "", name)
  return name ~ /^([a-z]|my)[_.]/ || name ~ /^[A-Z]+[_.]/ && name !~ /md$/
}

function cite(name) {
  ++found
  print FILENAME ":" FNR " cites " name
}

function check_names(text,    name, before, after) {
  while (match(text, /[A-Za-z0-9_.\/:-]+/)) {
    name = substr(text, RSTART, RLENGTH)
    before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
    after = substr(text, RSTART + RLENGTH, 1)
    text = substr(text, RSTART + RLENGTH)
    sub(/(:[0-9]+)?[.:\/-]*$/, "", name)
    if (name !~ /[A-Za-z0-9_-]\.(h|cc|cu|md|bzl|toml|py|sh)$/) continue
    if (before ~ /[<{}*%$~@=]/ || after ~ /[*{(]/) continue
    if (name ~ /:\/\/|^\/[^\/]/ || is_placeholder(name)) continue
    if (sub(/^\/\//, "", name)) sub(/^:|:/, name ~ /^:/ ? "" : "/", name)
    gsub(/^(\.\.?\/)+/, "", name)
    ++checked
    if (!(name in suffix)) cite(name)
  }
}

function check_links(text,    target, path, part, parts, i) {
  while (match(text, /\]\([^)#: ]+[)#]/)) {
    target = substr(text, RSTART + 2, RLENGTH - 3)
    text = substr(text, RSTART + RLENGTH)
    path = FILENAME
    sub(/[^\/]*$/, "", path)
    parts = split(path target, part, "/")
    path = ""
    for (i = 1; i <= parts; ++i) {
      if (part[i] == "." || part[i] == "") continue
      if (part[i] == "..") sub(/(^|\/)[^\/]*$/, "", path)
      else path = path (path == "" ? "" : "/") part[i]
    }
    ++checked
    if (!(path in there) && !(path in folders)) cite(target)
  }
}

FNR == 1 { kind = FILENAME; sub(/.*[.\/]/, "", kind); in_text = 0 }
{
  text = words($0)
  if (text == "") next
  check_names(text)
  if (kind == "md") check_links(text)
}
END { if (status == 0) print found + 0 " of " checked + 0 }
