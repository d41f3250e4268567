#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check_without_cuda.sh - without a CUDA toolkit, Bazel skips every target that
# needs one, with all that depends on it, and calls the rest a success. Fails if
# that would be any test but those that look at what nvcc makes.
set -euo pipefail
cd "$(dirname "$0")/.."
allowed='^//(kernels/cuda:(access|cublaslt_library|nccl_library|planted_stack_frame|resources)_test|property_tests/gpu:gpu_bundle_test)$'

provided='"IncompatiblePlatformProvider" in providers(target)'
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
listing=$(CUDA_HOME=/nonexistent ./bazelw cquery 'tests(//...)' \
  --output=starlark \
  --starlark:expr="('skipped ' if $provided else 'runs ') + str(target.label)" \
  2>"$errors") || {
  cat "$errors" >&2
  exit 1
}
runs=$(grep -c '^runs ' <<<"$listing")
skipped=$(sed -n 's/^skipped //p' <<<"$listing" | sort -u)
others=$(grep -vE "$allowed" <<<"$skipped" || true)
if [ "$runs" -lt 90 ] || [ -n "$others" ]; then
  echo "without a CUDA toolkit $runs tests run, and these would be skipped:"
  echo "${others:-none}"
  echo "a dependency on //kernels/cuda must be a choice of CUDA_AVAILABLE"
  exit 1
fi
echo "without a CUDA toolkit: $runs tests, $(wc -l <<<"$skipped") of nvcc's work skipped"
