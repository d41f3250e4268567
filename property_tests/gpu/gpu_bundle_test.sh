#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gpu_bundle_test.sh ARCHIVE GPU_CHECK_SIMULATED BENCH_SIMULATED MAKE_GPU_BUNDLE -
# the archive, unpacked in an empty folder, with an empty environment.
set -uo pipefail
archive=$PWD/$1
simulated=$PWD/$2
bench=$PWD/$3
maker=$PWD/$4
cd "$TEST_TMPDIR" || exit 1
failures=0
fail() {
  echo "FAIL: $*"
  failures=$((failures + 1))
}
# says TEXT WORD... - all words are in the text
says() {
  local text=$1 word
  shift
  for word; do [[ $text == *"$word"* ]] || fail "'$word' is not in: $text"; done
}

bytes=$(stat -L -c %s "$archive")
((bytes < 48 << 20)) || fail "$bytes bytes are too many"
echo "the archive has $bytes bytes"
mkdir empty && tar -xzf "$archive" -C empty || fail "it cannot be unpacked"
bundle=$PWD/empty/softmoe_gpu
mkdir here && cd here || exit 1

# clean VARIABLE=VALUE... PROGRAM ARGUMENT... - runs it with nothing else in the
# environment; any real device is hidden
clean() { env -i PATH=/usr/bin:/bin CUDA_VISIBLE_DEVICES=-1 TMPDIR="$TEST_TMPDIR" "$@" 2>&1; }

# Every library comes from the bundle or from glibc.
for program in "$bundle"/bin/*; do
  [[ -f $program ]] || continue
  while read -r name arrow path _; do
    case $name in
      linux-vdso.so.* | /lib64/ld-linux-* | libc.so.6 | libm.so.6 | libresolv.so.2 | libdl.so.2 | libpthread.so.0 | librt.so.1) ;;
      *) [[ $arrow == "=>" && $path == "$bundle"/bin/../lib/* ]] || fail "$program: $name is $path" ;;
    esac
  done < <(clean ldd "$program")
  clean "$program" --help >help || fail "$program does not start: $(cat help)"
done
[[ -n $(find "$bundle" -newermt 1970-01-02 -print -quit) ]] && fail "files have times"
for file in bin/gpu_check bin/bench bin/train bin/grid bin/verify share/tokens.bin share/tokens.idx share/text.txt; do
  [[ -s $bundle/$file ]] || fail "$file is not there"
done

# Without a device: exit code 5, the requirements, and no record.
text=$(clean "$bundle/run_all.sh")
[[ $? == 5 ]] || fail "without a device: $text"
says "$text" "glibc:" "cuBLASLt:"
[[ $text == *"no NVIDIA driver"*"install one for CUDA"* || $text == *"no CUDA device"*nvidia-smi* ]] ||
  fail "what is needed is not said: $text"
[[ $(ls) == help ]] || fail "something was left: $(ls)"
train=("$bundle/bin/train" --config "$bundle/share/paper.toml" --data "$bundle/share/tokens")
text=$(clean "${train[@]}" --device=cuda --out run)
[[ $? == 5 ]] || fail "train without a device: $text"
says "$text" 'device "cuda"'

# Where there is one: it holds the step, and the tokens hold a batch, which a
# tiny model trains with here.
text=$(clean "${train[@]}" --device=cuda --dry-run)
[[ $? == 0 ]] || fail "the plan of paper.toml: $text"
says "$text" 'an H100 with 80 GB holds the step with "none"'
tiny=(model.num_layers=1 model.d_model=8 model.num_heads=1 model.d_ffn=8 model.num_experts=2
  router.mean_active_experts=1 training.steps=1 training.precision=fp32)
text=$(clean "${train[@]}" "${tiny[@]/#/--set=}" --out tiny)
[[ $? == 0 ]] || fail "the tokens of paper.toml: $text"

# Usage errors, and an old or missing glibc.
text=$(clean "$bundle/run_all.sh" nine)
[[ $? == 2 ]] || fail "a number of minutes: $text"
says "$text" "'nine'" "run_all.sh [MINUTES]"
mkdir tools
printf '#!/bin/sh\necho glibc 2.17\n' >tools/getconf
chmod +x tools/getconf
text=$(clean PATH="$PWD/tools:/usr/bin:/bin" "$bundle/run_all.sh")
[[ $? == 5 ]] || fail "an old glibc: $text"
says "$text" "glibc 2.17" "or later is needed" "container"
[[ $text != *cuBLASLt* ]] || fail "glibc is not what was looked at first"
printf '#!/bin/sh\nexit 1\n' >tools/getconf
text=$(clean PATH="$PWD/tools:/usr/bin:/bin" "$bundle/run_all.sh")
[[ $? == 5 ]] || fail "no glibc: $text"
says "$text" "has no glibc"
needed=$(sed -n 's/^glibc=2[.]//p' "$bundle/share/needs")
((needed <= 36)) || fail "glibc 2.$needed is needed, more than Debian 12 has"

# Where cuBLASLt and NCCL are found. (A file with that name is enough.)
cublas=$(sed -n 's/^cublas=//p' "$bundle/share/needs")
[[ $cublas =~ ^libcublasLt[.]so[.][1-9][0-9]$ ]] || fail "no name of cuBLASLt: '$cublas'"
# taken FOLDER WHY VARIABLE=VALUE... - both are found there, with these variables
taken() {
  local folder=$1 why=$2
  shift 2
  mkdir -p "$folder" && : >"$folder/$cublas" && : >"$folder/libnccl.so.2"
  says "$(clean "$@" "$bundle/run_all.sh")" "cuBLASLt: $folder/$cublas ($why)" \
    "NCCL:     $folder/libnccl.so.2 ($why)"
}
taken "$PWD/venv/lib/python3.11/site-packages/nvidia/cublas/lib" "Python's site-packages" VIRTUAL_ENV="$PWD/venv"
taken "$PWD/path" LD_LIBRARY_PATH VIRTUAL_ENV="$PWD/venv" LD_LIBRARY_PATH="/nowhere:$PWD/path"
taken "$PWD/toolkit/lib64" CUDA_HOME CUDA_HOME="$PWD/toolkit" LD_LIBRARY_PATH="$PWD/path"

# On the simulated device (where gpu_check_test runs all) a stage of each
# program runs through: of gpu_check (facts, always) and bench, then of verify,
# where a fault is named. The grid, which has train, does not run there.
cp --remove-destination "$simulated" "$bundle/bin/gpu_check"
cp --remove-destination "$bench" "$bundle/bin/bench"
text=$(clean "$bundle/run_all.sh" 60 --only ceilings)
[[ $? == 0 ]] || fail "on the simulated device: $text"
says "$text" "passed, on a simulated device" "send back: $PWD/gpu_record.jsonl"
[[ $(tail -n 1 gpu_record.jsonl) == *'"kind":"end","passed":true'* ]] || fail "the record has no end"
text=$(clean "$bundle/run_all.sh" 60 --plant gemm --only 'operation gemm' --only 'operation adamw')
[[ $? == 1 ]] || fail "with a fault: $text"
says "$text" "FAILED: operation gemm (fp32); operation gemm (bf16)" "ok: adamw" "gpu_record-2.jsonl"

# stopped NUMBER SIGNAL [TO] [WRAPPER...] - the record with this number is ended,
# and named, when the script alone (TO "") or its group (TO "-") gets the signal
stopped() {
  local record=gpu_record-$1.jsonl signal=$2 to=$3 i
  shift 3
  set -m
  env -i PATH=/usr/bin:/bin TMPDIR="$TEST_TMPDIR" "$@" "$bundle/run_all.sh" 60 >stopped 2>&1 &
  set +m
  for ((i = 0; i < 600; ++i)); do
    [[ -s $record ]] && break
    sleep 0.1
  done
  kill "-$signal" -- "$to$!"
  wait $!
  [[ $? == 75 ]] || fail "stopped by $signal: $(<stopped)"
  says "$(<stopped)" "send back: $PWD/$record"
  [[ $(tail -n 1 "$record") == *'"kind":"end","passed":false'* ]] || fail "$record has no end"
}
stopped 3 INT - # Ctrl-C, which all in the foreground get
stopped 4 TERM ""
stopped 5 TERM - # `timeout`
stopped 6 HUP ""
stopped 7 TERM "" nohup

# The bytes are the same wherever it is packed. (Any program with libraries will
# do.)
for place in one two; do
  mkdir -p "$place"
  printf 'program any %s\nshare here.toml %s\ntext %s\nscript %s\n' \
    "$(command -v tar)" "$bundle/share/smoke.toml" "$bundle/share/text.txt" "$bundle/run_all.sh" >"$place/manifest"
  (cd "$place" && umask 077 && "$maker" manifest bundle.tar.gz) || fail "$place cannot be packed"
done
cmp one/bundle.tar.gz two/bundle.tar.gz || fail "other bytes in another place"
printf 'dream\n' >one/manifest
text=$("$maker" one/manifest one/bundle.tar.gz 2>&1) && fail "a line that is none was accepted"
says "$text" "dream"

[[ $failures == 0 ]] && echo passed
exit $((failures > 0))
