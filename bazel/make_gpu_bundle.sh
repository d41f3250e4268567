#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# make_gpu_bundle.sh MANIFEST ARCHIVE - packs programs for a machine that has a
# driver, cuBLAS and glibc, and nothing else of what they need. The lines of
# MANIFEST:
#
#   program NAME FILE         bin/NAME, stripped, which looks for its libraries
#                             in ../lib (softmoe_cc_binary, in_gpu_bundle)
#   runfile NAME PATH FILE    a file that it finds by its path in the repository
#   share NAME FILE           share/NAME
#   text FILE                 a part of share/text.txt, of which tokens are made
#   script FILE               the script at the top
#   tokenizer FILE            prepare_data
#   toolkit FOLDER            the CUDA toolkit with which it was built
#
# The same files give the same bytes, wherever and by whomever they are packed.
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
manifest=$1
archive=$(realpath -m "$2")
most_bytes=$((48 << 20))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/softmoe_gpu
mkdir -p "$top/bin" "$top/lib" "$top/share"
tokenizer=
toolkit=

while read -r kind rest; do
  read -r first second third <<<"$rest"
  case $kind in
    program) strip -o "$top/bin/$first" "$second" ;;
    runfile)
      mkdir -p "$top/bin/$first.runfiles/softmoe/$(dirname "$second")"
      cp -L "$third" "$top/bin/$first.runfiles/softmoe/$second"
      ;;
    share) cp -L "$second" "$top/share/$first" ;;
    text) { cat "$first"; echo; } >>"$top/share/text.txt" ;;
    script) cp -L "$first" "$top" ;;
    tokenizer) tokenizer=$(realpath "$first") ;;
    toolkit) toolkit=$first ;;
    *) echo "$manifest: a line of kind '$kind'" >&2; exit 1 ;;
  esac
done <"$manifest"

# Every library but glibc's own, which must fit the loader of the machine.
for program in "$top"/bin/*; do
  [[ -f $program ]] || continue
  ldd "$program" | while read -r name arrow path _; do
    case $name in
      linux-vdso.so.* | */ld-linux-* | ld-linux-* | libc.so.* | libm.so.* | \
        libpthread.so.* | libdl.so.* | librt.so.* | libresolv.so.* | \
        libutil.so.* | libanl.so.* | libnss_*) continue ;;
    esac
    if [[ $arrow != "=>" || $path != /* ]]; then
      echo "$program needs $name, which is not installed" >&2
      exit 1
    fi
    [[ -e $top/lib/$name ]] || cp -L "$path" "$top/lib/$name"
  done
done

# What run_all.sh looks for: the newest symbols of glibc, the name of cuBLASLt.
{
  echo "glibc=$(for file in "$top"/bin/* "$top"/lib/*; do
    [[ -f $file ]] && objdump -T "$file"
  done | grep -o 'GLIBC_2[.][0-9]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)"
  if [[ -n $toolkit ]]; then
    echo "cublas=libcublasLt.so.$(awk '$2 == "CUBLAS_VER_MAJOR" { print $3 }' "$toolkit/include/cublas_api.h")"
  fi
} >"$top/share/needs"

# Its provenance has the path of the text: the same one everywhere.
if [[ -n $tokenizer ]]; then
  (cd "$top/share" && env -u BUILD_WORKING_DIRECTORY XDG_CACHE_HOME="$work/cache" \
    "$tokenizer" --corpus path:/proc/self/cwd/text.txt --vocab-size 1024 \
    --out tokens --quiet >/dev/null)
fi

find "$top" -type d -exec chmod 755 {} +
find "$top" -type f -exec chmod 644 {} +
find "$top/bin" -maxdepth 1 -type f -exec chmod 755 {} +
chmod 755 "$top"/*.sh
tar --create --format=gnu --sort=name --owner=0 --group=0 --numeric-owner \
  --mtime=@0 --directory="$work" softmoe_gpu | gzip -6 -n >"$archive"
bytes=$(stat -c %s "$archive")
if ((bytes >= most_bytes)); then
  echo "$archive has $bytes bytes, $most_bytes are too many:" >&2
  du -a "$top" | sort -n | tail -n 20 >&2
  exit 1
fi
