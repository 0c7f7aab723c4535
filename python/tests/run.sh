#!/bin/sh
# What ctest calls "python": the tests of the package, where there is a Python with NumPy and pytest; else 77, "skipped".
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
python=${HEADSCOPE_PYTHON:-python3}
"$python" -c 'import numpy, pytest' 2>/dev/null || {
  echo "skipped: no Python with NumPy and pytest (HEADSCOPE_PYTHON names one)"
  exit 77
}
cd "$root"
exec "$python" -m pytest -q -p no:cacheprovider tests "$@"
