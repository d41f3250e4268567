#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run_all.sh [MINUTES] [OPTIONS OF gpu_check] - all that only a CUDA device can
# show, in 9 minutes or MINUTES. Leaves gpu_record.jsonl in the current folder,
# or gpu_record-2.jsonl and so on: send that back, whatever the exit code is.
#
# Needs a driver, cuBLAS and glibc; all else is in this folder. Exit codes: 0 all
# passed; 1 something failed, and is named; 2 usage; 4 not enough time for all;
# 5 something is missing, with what is needed; 75 stopped.
set -u
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
glibc=
cublas=
. "$here/share/needs"

minutes=9
if [ $# -gt 0 ]; then
  case $1 in
    -*) ;;
    '' | *[!0-9.]*)
      echo "run_all.sh: '$1' is not a number of minutes" >&2
      sed -n '/^# run_all/,/^set/s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
    *)
      minutes=$1
      shift
      ;;
  esac
fi

# Checked first, since nothing starts without it: older_than VERSION NEEDED
older_than() {
  [ "${1%%.*}" -lt "${2%%.*}" ] ||
    { [ "${1%%.*}" -eq "${2%%.*}" ] && [ "${1#*.}" -lt "${2#*.}" ]; }
}
libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || libc=
version=$(printf '%s' "${libc#glibc }" | sed 's/^\([0-9]*\.[0-9]*\).*/\1/')
case $version in
  [0-9]*.[0-9]*) ;;
  *)
    echo "run_all.sh: this system has no glibc, and glibc $glibc or later is needed: use a container of Debian 12 or Ubuntu 24.04" >&2
    exit 5
    ;;
esac
if older_than "$version" "$glibc"; then
  echo "run_all.sh: this system has glibc $version, and $glibc or later is needed: use a container of Debian 12 or Ubuntu 24.04" >&2
  exit 5
fi
echo "glibc:    $version (needed: $glibc)"

# Folders in which library $1 may be, as "FOLDER<tab>why it was searched".
tab=$(printf '\t')
given=${LD_LIBRARY_PATH:-}
packages_in() {
  echo "$1/lib${tab}Python's environment"
  for packages in "$1"/lib/python3*/site-packages "$1"/lib/python3*/dist-packages; do
    for folder in "$packages"/nvidia/*/lib; do
      [ -d "$folder" ] && echo "$folder${tab}Python's site-packages"
    done
  done
}
candidates() {
  if [ -n "${CUDA_HOME:-}" ]; then
    for sub in lib64 lib targets/x86_64-linux/lib; do
      echo "$CUDA_HOME/$sub${tab}CUDA_HOME"
    done
  fi
  printf '%s\n' "$given" | tr ':' '\n' | sed "s/\$/${tab}LD_LIBRARY_PATH/"
  # An active environment was chosen on purpose.
  for root in ${VIRTUAL_ENV:+"$VIRTUAL_ENV"} ${CONDA_PREFIX:+"$CONDA_PREFIX"}; do
    packages_in "$root"
  done
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null |
    sed -n "s|.*$1 .*=> \(.*\)/$1\$|\1${tab}the loader's path|p"
  echo "/usr/local/cuda/lib64${tab}the usual place"
  for root in ${HOME:+"$HOME/.local"} /usr/local /usr /opt/conda; do
    packages_in "$root"
  done
  for python in python3 python; do
    "$python" -c 'import site; print("\n".join(site.getsitepackages() + [site.getusersitepackages()]))' 2>/dev/null |
      while read -r packages; do
        for folder in "$packages"/nvidia/*/lib; do
          [ -d "$folder" ] && echo "$folder${tab}Python's site-packages"
        done
      done
  done
  return 0
}
# find_library WHAT FILE - has the loader find it
find_library() {
  found=$(candidates "$2" | while IFS=$(printf '\t') read -r folder why; do
    if [ -n "$folder" ] && [ -e "$folder/$2" ]; then
      printf '%s\t%s\n' "$folder" "$why"
      break
    fi
  done)
  if [ -n "$found" ]; then
    folder=$(printf '%s' "$found" | cut -f 1)
    echo "$1 $folder/$2 ($(printf '%s' "$found" | cut -f 2))"
    LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
  else
    echo "$1 $2 is neither in \$CUDA_HOME nor in the loader's path, in /usr/local/cuda/lib64 or in Python's site-packages"
  fi
}
find_library "NCCL:    " libnccl.so.2
find_library "cuBLASLt:" "$cublas"

record=gpu_record.jsonl
number=2
while [ -e "$record" ]; do
  record=gpu_record-$number.jsonl
  number=$((number + 1))
done

# Leaves nothing outside this folder and the working directory.
XDG_CACHE_HOME=${TMPDIR:-/tmp}/softmoe_gpu.$$
export XDG_CACHE_HOME
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT
# A signal stops gpu_check, which ends the record; what is below is still to be
# done then. Ctrl-C reaches it by itself. Others may have come to this script
# alone, and are handed on as HUP, since a second TERM would end it at once; as
# TERM where nohup has HUP ignored.
hand_on=HUP
grep -q '^SigIgn:.*[13579bdf]$' /proc/self/status && hand_on=TERM
"$here/bin/gpu_check" --minutes "$minutes" --record "$record" \
  --grid "$here/bin/grid" --grid-file "$here/share/smoke.toml" "$@" &
program=$!
again=1
trap 'again=1' INT
trap 'again=1; kill -"$hand_on" "$program" 2>/dev/null' TERM HUP QUIT
while [ -n "$again" ]; do
  again=
  wait "$program"
  status=$?
done
rm -rf "$record.grid"
[ -e "$record" ] && echo "send back: $(pwd)/$record"
exit $status
