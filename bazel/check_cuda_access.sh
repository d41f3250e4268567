#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# check_cuda_access.sh - reads PTX and prints, for each kernel, how many loads
# from and stores to a device's memory it has by their width in bytes. Fails if a
# wide kernel has none of 16 bytes, or if a source has no wide kernel.
#
#   check_cuda_access.sh 'WORD ...' FILE...
#
# Four stores of 4 bytes in a row, to neighbouring addresses, count as one of 16:
# ptxas makes one of them.
#
# Wide are the kernels whose last template argument is 4 or 8, the elements that
# a thread takes at a time, and those called Wide. Of the kernels with a WORD in
# their names no wide store is asked.
only_loads=$1
shift
awk -v only_loads="$only_loads" '
  function finish_kernel() {
    if (kernel == "") return
    wide = kernel ~ /Li[48]EEEv/ || kernel ~ /Wide/
    printf "%s %s\n        ", wide ? "wide  " : "narrow", kernel
    for (bytes = 1; bytes <= 16; bytes *= 2) {
      printf " %d: %d loads, %d stores;", bytes, loads[bytes], stores[bytes]
    }
    print ""
    stores_wide = 1
    for (i in words) if (index(kernel, words[i])) stores_wide = 0
    if (wide && (!loads[16] || stores_wide && !stores[16])) {
      print "VIOLATION " kernel " is called wide"
      ++violations
    }
    of_file += wide
    kernel = ""
  }
  function finish_file() {
    finish_kernel()
    if (file == "") return
    if (of_file == 0) {
      print "VIOLATION " file " has no wide kernel"
      ++violations
    }
    total += of_file
    of_file = 0
  }
  BEGIN { split(only_loads, words, " ") }
  FNR == 1 { finish_file(); file = FILENAME }
  /\.entry / {
    finish_kernel()
    kernel = $0
    sub(/.*\.entry /, "", kernel)
    sub(/[( ].*/, "", kernel)
    split("", loads)
    split("", stores)
  }
  /(ld|st)\.global\./ {
    access = $0
    sub(/.*(ld|st)\.global\./, "", access)
    sub(/[ \t].*/, "", access)
    bits = access
    sub(/.*[a-z]/, "", bits)
    bytes = bits / 8
    if (access ~ /v2\./) bytes *= 2
    if (access ~ /v4\./) bytes *= 4
    if ($0 ~ /ld\.global/) { ++loads[bytes]; next }
    ++stores[bytes]
    address = $0
    sub(/.*\[/, "", address)
    sub(/\].*/, "", address)
    split(address, part, "+")
    neighbours = bytes == 4 && part[1] == base && part[2] == offset + 4 ? neighbours + 1 : 1
    base = part[1]
    offset = part[2]
    if (neighbours == 4) {
      neighbours = 0
      stores[4] -= 4
      ++stores[16]
    }
  }
  END {
    finish_file()
    print total + 0 " wide kernels, " violations + 0 " violations"
    exit violations > 0 || total == 0
  }' "$@"
