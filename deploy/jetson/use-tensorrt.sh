#!/bin/sh
# Makes JetPack's TensorRT, which is installed for the system's Python, visible to edged's own Python.
#
#   sudo ./use-tensorrt.sh [PYTHON]      default: /opt/edged/current/bin/python; a checkout: .venv/bin/python
#
# Two links are made in the environment: the package, and its metadata, by which edged knows the version.
# Running it again changes nothing. An upgrade of edged makes a new environment: run it again then.
set -eu

case ${1-} in -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0" && exit ;; esac
python=${1:-/opt/edged/current/bin/python}
system=${SYSTEM_PYTHON:-/usr/bin/python3}

fail() { # MESSAGE HINT
    printf '%s\n' "use-tensorrt: $1" "  $2" >&2
    exit 1
}

[ -x "$python" ] || fail "there is no $python" "give the Python of edged's environment: $0 PYTHON"
version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }
[ "$(version "$python")" = "$(version "$system")" ] ||
    fail "edged runs with Python $(version "$python"), TensorRT is for $(version "$system")" \
        "install edged with $system: install.sh --python $system"

found=$("$system" -c 'from importlib import metadata
try:
    found = metadata.distribution("tensorrt")
except metadata.PackageNotFoundError:
    raise SystemExit
print(found.version, getattr(found, "_path", ""), found.locate_file("tensorrt"), sep="\n")') ||
    fail "$system cannot be asked for its packages" "try: $system -c 'import tensorrt'"
[ -n "$found" ] || fail "$system has no package tensorrt" "sudo apt install tensorrt python3-libnvinfer"
{ read -r release && read -r info && read -r package; } <<EOF
$found
EOF
[ -e "$info" ] && [ -d "$package" ] || fail "the files of TensorRT $release are not where they should be" \
    "sudo apt install --reinstall python3-libnvinfer"

place=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
if [ -d "$place/tensorrt" ] && [ ! -L "$place/tensorrt" ]; then
    fail "$place/tensorrt is there already, and no link" "remove it, if JetPack's is to be used"
fi
[ -w "$place" ] || fail "you may not write to $place" "sudo $0 $python"
for old in "$place"/tensorrt-*; do
    if [ -L "$old" ]; then rm "$old"; fi # of the version before
done
ln -sfn "$package" "$place/tensorrt"
ln -sfn "$info" "$place/$(basename "$info")"
printf '%s\n' "TensorRT $release is visible to $python"
