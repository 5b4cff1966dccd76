#!/bin/sh
# Builds a ChatTTS bundle for TensorRT on the board that will run it, after checking what that needs.
#
#   sudo ./build-bundle.sh [--max-clocks] --checkpoint DIR [options of: edged bundle build chattts, in any order]
#
# --max-clocks fixes all clocks at their highest while it builds, as TensorRT chooses by measuring, and puts them
# back afterwards. EDGED=/path/to/edged names another installation than /opt/edged.
set -eu

edged=${EDGED:-/opt/edged/bin/edged}
python=${EDGED_PYTHON:-$(dirname "$edged")/python}
LOW_MEMORY_MB=6000 # free memory and swap, below which a build at full size may be killed
LOW_DISK_MB=3000   # the checkpoint's graphs, the timing cache and the plans

say() { printf '%s\n' "build-bundle: $*"; }
fail() { # MESSAGE HINT
    printf '%s\n' "build-bundle: $1" "  $2" >&2
    exit 1
}

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }

clocks=no out='' checkpoint='' option='' count=$#
while [ "$count" -gt 0 ]; do # --max-clocks is ours, wherever it stands; all others are the build's
    word=$1 count=$((count - 1))
    shift
    case $word in
    --max-clocks) clocks=yes && continue ;;
    -h | --help) usage && exit ;;
    --checkpoint | --checkpoint=*) checkpoint=yes ;;
    --out=*) out=${word#--out=} ;;
    esac
    if [ "$option" = --out ]; then out=$word; fi
    option=$word
    set -- "$@" "$word"
done
[ -n "$checkpoint" ] || { usage >&2 && exit 2; }
[ -x "$edged" ] && [ -x "$python" ] || fail "edged is not installed in $edged" "EDGED=/path/to/bin/edged $0 ..."

# What the build and the new voice import, before anything that takes long.
"$python" -c 'import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in ("onnx", "tokenizers", "opencc")))' ||
    fail "$python lacks the packages of the extras build and chattts" \
        "make the package for this board with: deploy/make-offline-package --extra build --extra chattts ..."
# The driver, before anything of TensorRT is loaded: without one TensorRT ends the process.
"$python" -c 'from edged.engine import preflight
from edged.errors import EdgedError
try:
    print("build-bundle:", preflight.look())
except EdgedError as error:
    raise SystemExit(f"build-bundle: {error.message}\n  {error.hint}")'
"$python" -c 'import tensorrt' 2>/dev/null ||
    fail "$python cannot import tensorrt" "sudo $(dirname "$0")/use-tensorrt.sh $python"
"$python" -c 'import pycuda' 2>/dev/null ||
    fail "$python cannot import pycuda" "sudo $(dirname "$0")/install-pycuda.sh $python"

free=$(awk '/^(MemAvailable|SwapFree):/ { sum += $2 } END { printf "%d", sum / 1000 }' /proc/meminfo)
[ "$free" -ge "$LOW_MEMORY_MB" ] ||
    say "warning: $free MB of memory and swap are free; if the build is killed, add a swap file (README.md)"
# The networks, plans and timings are written where the bundle will be: --out, or what the configuration says.
place=${out:-$("$python" -c 'from edged import config
from edged.paths import writable_bundle_directory
print(writable_bundle_directory(config.load(config.find()).voices.directory))' 2>/dev/null || true)}
while [ ! -d "$place" ]; do place=$(dirname "$place"); done
room=$(df -Pm "$place" | awk 'NR == 2 { print $4 }')
[ "$room" -ge "$LOW_DISK_MB" ] || say "warning: $room MB are free in $place; --out names another place"
if command -v nvpmodel >/dev/null; then nvpmodel -q | sed -n 's/^NV Power Mode: */build-bundle: power mode /p'; fi

if [ "$clocks" = yes ]; then
    command -v jetson_clocks >/dev/null || fail "there is no jetson_clocks" "leave --max-clocks out"
    stored=$(mktemp)
    rm "$stored" # it must not be there
    jetson_clocks --store "$stored"
    trap 'jetson_clocks --restore "$stored"; rm -f "$stored"' EXIT
    trap 'exit 129' HUP # a terminal that is closed
    trap 'exit 130' INT
    trap 'exit 143' TERM
    jetson_clocks
fi
made=$("$edged" bundle build chattts --backend tensorrt "$@")
printf '%s\n' "$made"
path=$(printf '%s\n' "$made" | sed -n '1s/^installed //;1p')
say "check it with: $edged bundle verify $path"
say "to speak with it, name it in voices.bundles of /etc/edged/edged.yaml, then: sudo edged reload, edged doctor"
