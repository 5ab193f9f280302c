#!/usr/bin/env bash
# sanitize.sh PROGRAM [TOOL...]: compute-sanitizer over small cases of every kernel, on a machine that has the card. TOOLs:
# memcheck racecheck synccheck (the default: all three). One line a tool; exit status 1 if one found something.
set -u
program=$1
shift
(($# > 0)) || set -- memcheck racecheck synccheck
cases=$(cd "$(dirname "$0")" && pwd)/sanitizer_cases.tsv
found=0
for tool in "$@"; do
  log=$(mktemp)
  timeout "${SANITIZE_SECONDS:-300}" compute-sanitizer --tool "$tool" --error-exitcode 9 "$program" contract check --device cuda \
    --cases "$cases" >"$log" 2>&1
  status=$?
  echo "$tool: exit status $status, $(grep -c '^========= .*[Ee]rror' "$log") lines of errors; $(grep 'SUMMARY' "$log" | tail -1)"
  ((status == 0)) || { found=1 && head -60 "$log" && tail -20 "$log"; }
  rm -f "$log"
done
exit $found
