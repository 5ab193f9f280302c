#!/usr/bin/env bash
# run_pytest.sh PYTHON PROGRAM: the Python tests of this folder with the project's environment; 77 (skipped) without it.
set -euo pipefail
if [[ ! -x "$1" ]] || ! "$1" -c 'import numpy, pytest' 2>/dev/null; then
  echo "the Python environment with numpy and pytest is not there; ./setup makes it"
  exit 77
fi
STEADFAST_PROGRAM="$2" exec "$1" -B -m pytest -q -p no:cacheprovider "$(dirname "$0")"
