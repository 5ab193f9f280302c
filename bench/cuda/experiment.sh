#!/usr/bin/env bash
# experiment.sh [-k KV_DTYPES] [-t TEMPERATURES] [-w WINDOW] PROGRAM MODEL...: does a reply depend on who else is there and on where its
# cache lies? 12 prompts of 24 to 4,616 tokens, replies of 160, greedy and sampled, fp8 and bf16 caches: each alone in a fresh
# engine of one stream in a whole window of 32,768; then through one stream on pages; 8 streams of 65,536 on pages, 8 of
# 8,192 in whole windows, three at a time. 12/12: the same ids as alone. A model of a smaller window gets what fits.
# About 60 s a cache type and temperature on the 27B shape; -k and -t split the work (-k fp8 -t 0,0.8). WINDOW: of models
# without a config.json.
set -u
types=bf16,fp8 temperatures=0,0.8 rows=160 known=262144
while getopts k:t:w: option; do
  case $option in
    k) types=$OPTARG ;;
    t) temperatures=$OPTARG ;;
    w) known=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || { sed -n 2p "$0" >&2; exit 2; }
program=$1
shift
command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version,clocks.sm --format=csv,noheader

least() { echo $(($1 < $2 ? $1 : $2)); }
failed=0
for model in "$@"; do
  window=$(grep -o '"max_position_embeddings": *[0-9]*' "$model/config.json" 2>/dev/null | grep -o '[0-9]*$' | sort -n | head -1)
  window=${window:-$known}
  prompts=
  for length in 24 61 130 257 418 640 1000 1365 2047 2600 3333 4616; do
    prompts+=${prompts:+,}$(least $length $((window - rows)))
  done
  one=$(least 32768 "$window") eight=$(least 65536 "$window") short=$(least 8192 "$window")
  [ "$one,$eight,$short" = 32768,65536,8192 ] || echo "$model: its window of $window is less than the experiment's"
  levels=1@$one:paged,8@$eight:paged,8@$short:whole,3@$one:paged
  for type in ${types//,/ }; do
    echo "== $model, keys and values in $type, temperatures $temperatures"
    "$program" bench concurrent "$model" --levels "$levels" --requests 12 --prompt-tokens "$prompts" --tokens $rows \
      --temperatures "$temperatures" --kv-dtype "$type" --reps 1 --alone || failed=1
  done
done
[ $failed = 0 ] && echo "every reply is the same in company, on pages and alone" || echo "SOMETHING DIFFERS OR FAILED"
exit $failed
