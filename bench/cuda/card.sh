#!/usr/bin/env bash
# card.sh PROGRAM MODELS [SHAPE]: what docs/benchmarks.md says of a card, in one call, on standard output. MODELS: a folder
# of model folders (goldens, the fixture). SHAPE: default qwen3.5-27b. Needs python3 with numpy for the logits alone.
set -u
program=$1 models=$2 shape=${3:-qwen3.5-27b}
here=$(cd "$(dirname "$0")" && pwd)
nvidia-smi --query-gpu=name,driver_version,clocks.sm,power.draw --format=csv,noheader
"$program" --version
echo "== logits beside the CPU's in float32"
python3 "$here/compare_logits.py" "$program" "$models"/*
python3 "$here/compare_logits.py" "$program" "$models"/* --prompt-act int8
echo "== the row law"
"$program" verify "$models/fixture" --quick --device cuda
"$program" verify "$models/fixture" --quick --device cuda --prompt-act int8
echo "== random:$shape, one stream, 8, 64"
"$program" bench decode "random:$shape" --device cuda --runs 3 --streams 1,8,64
echo "== prompts"
"$program" bench prompt "random:$shape" --device cuda --runs 2 --prompt-tokens 512,2048,8192 --rows 8192
"$program" bench prompt "random:$shape" --device cuda --prompt-act int8 --runs 2 --prompt-tokens 16,512,2048,8192 --rows 8192
echo "== where a round's time goes, every launch alone"
"$program" bench decode "random:$shape" --device cuda --runs 1 --ops
"$program" bench prompt "random:$shape" --device cuda --runs 1 --prompt-tokens 8192 --rows 8192 --ops
