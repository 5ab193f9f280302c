#!/usr/bin/env bash
# run_pytest.sh PYTHON SERVER: the Python tests of this folder with the project's environment; 77 (skipped) without it.
set -euo pipefail
if [[ ! -x "$1" ]]; then
  echo "the Python environment is not there; ./setup makes it"
  exit 77
fi
STEADFAST_TEST_SERVER="$2" exec "$1" -B -m pytest -q -p no:cacheprovider "$(dirname "$0")"
