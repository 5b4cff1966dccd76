#!/bin/sh
# Compiles pycuda, which has no ready wheels, with JetPack's CUDA and puts it into edged's Python.
#
#   sudo ./install-pycuda.sh [--wheels DIR] [PYTHON]     default: /opt/edged/current/bin/python
#
# It needs a network and some minutes. DIR keeps the wheels: with them another board of the same JetPack needs
# neither network nor compiler. An upgrade of edged makes a new environment: run it again then.
set -eu

usage() { sed -n '2,7s/^# \{0,1\}//p' "$0"; }

wheels='' python=/opt/edged/current/bin/python
case ${1-} in -h | --help) usage && exit ;; esac
if [ "${1-}" = --wheels ]; then
    [ $# -gt 1 ] || { usage >&2 && exit 2; }
    wheels=$2 && shift 2
fi
python=${1:-$python}
system=${SYSTEM_PYTHON:-/usr/bin/python3}
cuda=${CUDA_ROOT:-/usr/local/cuda}
# As edged's environment has everything else, numpy among it.
packages='pycuda pytools Mako MarkupSafe platformdirs typing-extensions siphash24'

fail() { # MESSAGE HINT
    printf '%s\n' "install-pycuda: $1" "  $2" >&2
    exit 1
}

[ -x "$python" ] || fail "there is no $python" "give the Python of edged's environment: $0 PYTHON"
version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }
[ "$(version "$python")" = "$(version "$system")" ] ||
    fail "edged runs with Python $(version "$python"), pip with $(version "$system")" \
        "install edged with $system: install.sh --python $system"
"$system" -m pip --version >/dev/null 2>&1 || fail "$system has no pip" "sudo apt install python3-pip"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
made=${wheels:-$scratch/wheels}
mkdir -p "$made"
if ! ls "$made"/pycuda-*.whl >/dev/null 2>&1; then
    [ -x "$cuda/bin/nvcc" ] || fail "there is no nvcc in $cuda/bin" "sudo apt install cuda-toolkit, or set CUDA_ROOT"
    command -v g++ >/dev/null || fail "there is no C++ compiler" "sudo apt install build-essential"
    [ -f "$("$system" -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] ||
        fail "Python's headers are missing" "sudo apt install python3-dev"
    log=$scratch/log
    compile() {
        "$system" -m pip download --no-deps --no-binary pycuda --dest "$scratch" pycuda &&
            tar xzf "$scratch"/pycuda-*.tar.gz -C "$scratch" &&
            # cuRAND is not among the packages that are asked for, and edged draws its numbers elsewhere.
            printf '%s\n' "CUDA_ROOT = '$cuda'" "CUDA_ENABLE_CURAND = False" >"$(echo "$scratch"/pycuda-*/)siteconf.py" &&
            # shellcheck disable=SC2086 # a list
            "$system" -m pip wheel --no-deps --wheel-dir "$made" "$scratch"/pycuda-*/ ${packages#pycuda }
    }
    PATH=$cuda/bin:$PATH CUDA_ROOT=$cuda compile >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        fail "pycuda was not compiled; the last lines of that are above" "it needs a network, nvcc and g++"
    }
fi
place=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
# shellcheck disable=SC2086 # a list
"$system" -m pip install --quiet --no-index --find-links "$made" --no-deps --upgrade --target "$place" $packages
"$python" -c 'import pycuda; print("pycuda", pycuda.VERSION_TEXT, "is installed")'
