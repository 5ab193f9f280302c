#!/usr/bin/env bash
# verify_stored.sh PROGRAM NAME: `verify --full` on a stored model; 77 (skipped) where it is not stored.
set -euo pipefail
if ! "$1" info "$2" >/dev/null 2>&1; then
  echo "$2 is not stored here: run $1 pull $2"
  exit 77
fi
exec "$1" verify "$2" --full
