#!/bin/sh
# Builds a ChatTTS bundle for TensorRT on the board that will run it, after checking what that needs.
#
#   sudo ./build-bundle.sh [--max-clocks] --checkpoint DIR [options of: edged bundle build chattts]
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

clocks=no
if [ "${1-}" = --max-clocks ]; then clocks=yes && shift; fi
case " $* " in
*' --checkpoint'*) ;;
*) sed -n '4,7s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
[ -x "$edged" ] && [ -x "$python" ] || fail "edged is not installed in $edged" "EDGED=/path/to/bin/edged $0 ..."

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
room=$(df -Pm "${TMPDIR:-/tmp}" | awk 'NR == 2 { print $4 }')
[ "$room" -ge "$LOW_DISK_MB" ] || say "warning: $room MB are free in ${TMPDIR:-/tmp}; TMPDIR names another place"
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
"$edged" bundle build chattts --backend tensorrt "$@"
say "check it with: edged doctor; use it: sudo edged reload"
