#!/bin/bash
# All that is to be known of a card in one go: builds with CUDA, compares with the processor, times, looks for faults of
# memory. Writes into FOLDER: report.txt and each part's whole output.
#   tests/bench/cuda_check.sh FOLDER [BUILD]
# BUILD: a folder that holds headscope-cuda-tests and headscope-cuda-bench already (a machine without a compiler).
# Ends with 77 where there is no card.
set -u -o pipefail
folder=${1:?usage: tests/bench/cuda_check.sh FOLDER [BUILD]}
mkdir -p "$folder" || exit 2
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/../.." || exit 2
build=${2:-build/cuda/tests}
if [ $# -lt 2 ]; then
  { cmake --preset cuda && cmake --build --preset cuda --target headscope-cuda-tests headscope-cuda-bench; } \
    >"$folder/build.txt" 2>&1 || { tail -20 "$folder/build.txt"; exit 1; }
fi
bad=0
{
  date -u
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
} | tee "$folder/report.txt"
"$build/headscope-cuda-bench" devices >"$folder/devices.txt" 2>&1
if [ $? = 77 ]; then
  tee -a "$folder/report.txt" <"$folder/devices.txt"
  exit 77
fi
part() { # part NAME COMMAND…
  local name=$1
  shift
  "$@" >"$folder/$name.txt" 2>&1
  local rc=$?
  grep -qE 'test cases: +0 ' "$folder/$name.txt" && rc=1 # nothing was run
  [ $rc = 0 ] || bad=1
  echo "$name: exit $rc: $(grep -E 'assertions:|ERROR SUMMARY|RACECHECK SUMMARY' "$folder/$name.txt" | tr '\n' ' ')" |
    tee -a "$folder/report.txt"
}
part parity "$build/headscope-cuda-tests"
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    part "$tool" compute-sanitizer --tool "$tool" --error-exitcode 1 "$build/headscope-cuda-tests" \
      --test-case="*quickly,few rows*,what was written*,rows put into*,the way back*,a step on the card*"
  done
fi
part times "$build/headscope-cuda-bench"
cat "$folder/times.txt" | tee -a "$folder/report.txt"
exit $bad
