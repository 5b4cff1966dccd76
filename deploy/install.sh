#!/bin/sh
# Installs edged from the package in which this file lies; needs no network.
#
#   sudo ./install.sh [install] [--python PATH] [--prefix DIR] [--no-start]
#   sudo /opt/edged/install.sh rollback                  back to the release before
#   sudo /opt/edged/install.sh uninstall [--keep-voices] [--purge]
#
# Running it again changes nothing; running a newer package's upgrades and keeps the configuration. An
# upgrade whose configuration check or start fails leaves the release that was there in service.
#
#   /opt/edged/releases/ID/    a Python environment with the program, the built-in voice, units, licences
#   /opt/edged/current         link to the release in service; "previous" to the one before
#   /opt/edged/.trying         while a release is put in service: the name of the one that it replaces
#   /opt/edged/bin, lib, ...   links into current: bin/edged is what the unit starts
#   PREFIX/lib/systemd ...     units, catalogs, the user edged (PREFIX is /usr/local, /usr for the .deb)
#   /etc/edged/edged.yaml      yours; replaced only while it is as it was installed
#   /var/lib/edged             voices added on this machine
set -eu
umask 022
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP
PATH=$PATH:/usr/sbin:/sbin # su without "-" leaves them out

OPT=/opt/edged
ETC=/etc/edged
STATE=/var/lib/edged
UNIT=edged.service

say() { printf '%s\n' "edged: $*"; }
warn() { printf '%s\n' "edged: warning: $*" >&2; }
fail() { # MESSAGE HINT
    printf '%s\n' "edged: $1" "  $2" >&2
    exit 1
}
usage() {
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit "$1"
}

main() {
    command=install python='' prefix='' start=yes keep_voices=no purge=no
    case ${1-} in install | rollback | uninstall) command=$1 && shift ;; esac
    while [ $# -gt 0 ]; do
        case $1 in
        --python | --prefix)
            [ $# -gt 1 ] || usage 2 >&2
            if [ "$1" = --python ]; then python=$2; else prefix=$2; fi
            shift
            ;;
        --no-start) start=no ;;
        --keep-voices) keep_voices=yes ;;
        --purge) purge=yes ;;
        -h | --help) usage 0 ;;
        *) usage 2 >&2 ;;
        esac
        shift
    done
    [ "$(id -u)" = 0 ] || fail "this needs the rights of root" "sudo $0 $command"
    if [ "$command" = uninstall ]; then uninstall && return; fi
    mkdir -p "$OPT/releases"
    exec 9>"$OPT/.lock"
    flock -n 9 || fail "another installation is running" "wait until it has ended"
    [ -n "$prefix" ] || prefix=$(cat "$OPT/.prefix" 2>/dev/null || echo /usr/local)
    case $prefix in /*) ;; *) fail "--prefix $prefix is not an absolute path" "give one, as /usr/local" ;; esac
    "$command"
}

install() {
    here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
    [ -f "$here/SHA256SUMS" ] ||
        fail "there is no package beside $0" "unpack the archive and run the install.sh in it"
    check_package
    release=$(fact version)-$(sha256sum "$here/SHA256SUMS" | cut -c1-8)
    if is_whole "$release"; then
        say "release $release is there already"
    else
        make_release "$OPT/releases/$release"
    fi
    sound_libraries
    switch "$release"
}

rollback() {
    release=$(linked previous) current=$(linked current) replaced=$(replaced)
    # After an interrupted upgrade it is the one that this was about to replace.
    if [ "$current" != "$release" ] && [ "$current" != "$replaced" ]; then release=$replaced; fi
    [ -n "$release" ] || fail "there is no release to go back to" "ls $OPT/releases"
    is_whole "$release" || fail "the release $release is damaged" "install its package again"
    switch "$release"
}

uninstall() {
    if booted; then
        systemctl disable --now --quiet $UNIT 2>/dev/null || true
        systemctl reset-failed $UNIT 2>/dev/null || true
    elif command -v systemctl >/dev/null; then
        systemctl disable --quiet $UNIT 2>/dev/null || true
    fi
    if [ -f "$OPT/.files" ]; then
        while read -r file; do rm -f "$file"; done <"$OPT/.files"
    fi
    rm -rf "$OPT"
    if [ $keep_voices = no ]; then rm -rf "$STATE"; fi
    if [ $purge = yes ]; then
        rm -rf "$ETC"
        if [ $keep_voices = no ]; then remove_account; fi
    fi
    refresh
    say "removed: the program, its unit$([ -d "$STATE" ] || echo ", and the voices in $STATE")"
    for kept in "$ETC" "$STATE" /etc/systemd/system/$UNIT.d; do
        if [ -d "$kept" ]; then say "kept: $kept"; fi
    done
    if getent passwd edged >/dev/null; then say "kept: the user and the group edged"; fi
}

remove_account() { # the one that was made for the service, not a person of that name
    entry=$(getent passwd edged) || return 0
    id=$(echo "$entry" | cut -d: -f3)
    if [ "$(echo "$entry" | cut -d: -f6)" != "$STATE" ] || [ "$id" -ge 1000 ]; then
        warn "the account edged was not made for the service, and is kept"
        return
    fi
    userdel edged || true
    if getent group edged >/dev/null; then groupdel edged || true; fi
}

# -- what the package needs -----------------------------------------------------------------------

fact() { sed -n "s/^$1=//p" "$here/package"; }

check_package() {
    (cd "$here" && sha256sum --check --quiet --strict SHA256SUMS) ||
        fail "the package is damaged" "copy the archive again and unpack it again"
    unlisted=$(cd "$here" && find . ! -type d | sed 's|^\./||' |
        awk 'NR == FNR {listed[substr($0, 67)]; next} !($0 in listed) && $0 != "SHA256SUMS"' SHA256SUMS -)
    [ -z "$unlisted" ] ||
        fail "the package is damaged: not in SHA256SUMS: $(echo "$unlisted" | head -n 3 | tr '\n' ' ')" \
            "copy the archive again and unpack it again, into a folder that is not there yet"
    [ "$(uname -m)" = "$(fact arch)" ] ||
        fail "the package is for $(fact arch), this machine is $(uname -m)" \
            "make one with: deploy/make-offline-package --arch $(uname -m)"
    glibc=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
    [ "$(printf '%s\n' "$glibc" "$(fact glibc)" | sort -V | head -n 1)" = "$(fact glibc)" ] ||
        fail "the package needs glibc $(fact glibc), this system has $glibc" \
            "make one with: deploy/make-offline-package --glibc $glibc"
    room=$(df -Pm "$OPT" | awk 'NR == 2 {print $4}')
    [ "$room" -ge "$(fact room_mb)" ] ||
        fail "$OPT has $room MB free, a release takes $(fact room_mb) MB" "free some space"
    [ -z "$python" ] || fits "$python" ||
        fail "--python $python is not Python $(fact python), or cannot be run" \
            "name another one, or make a package for it: deploy/make-offline-package --python 3.N"
    find_python
}

fits() { # PROGRAM: the Python that the package was made for
    [ "$("$1" -I -c 'import sys, venv; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$(fact python)" ]
}

find_python() { # sets python
    for candidate in "$python" "python$(fact python)" python3 "/usr/bin/python$(fact python)"; do
        [ -n "$candidate" ] || continue
        # -I: what lies in the directory where we were called is not imported, here and below.
        found=$("$candidate" -I -c 'import sys, venv; print("%d.%d" % sys.version_info[:2], sys.executable)' \
            2>/dev/null) || continue
        [ "${found%% *}" = "$(fact python)" ] || continue
        python=${found#* }
        case $python in
        "$(getent passwd 0 | cut -d: -f6)"/* | /home/*) warn "the service's user may have no access to $python; see --python" ;;
        esac
        return
    done
    fail "Python $(fact python) is not there" \
        "name it with --python, or make a package for yours: deploy/make-offline-package --python 3.N"
}

has() { ldconfig -p | grep -q "$1"; }

sound_libraries() {
    if has 'libportaudio\.so\.2' && has 'libsonic\.so\.0'; then return; fi
    # dpkg cannot be called by a package that dpkg is just installing.
    if [ -d "$here/debs" ] && [ -z "${DPKG_MAINTSCRIPT_PACKAGE-}" ] && dpkg --install "$here"/debs/*.deb; then
        return
    fi
    has 'libportaudio\.so\.2' ||
        warn "PortAudio is missing: audio can be sent to programs, but not played (apt install libportaudio2)"
    has 'libsonic\.so\.0' ||
        warn "libsonic is missing: requests for another pitch change nothing (apt install libsonic0)"
}

# -- releases -------------------------------------------------------------------------------------

is_whole() { # ID: the release is whole, and its Python still there
    [ -f "$OPT/releases/$1/.complete" ] && "$OPT/releases/$1/bin/edged" --version >/dev/null 2>&1
}

make_release() { # PATH; an interrupted one has no .complete, and is made again
    say "making $1"
    rm -rf "$1"
    "$python" -I -m venv --without-pip "$1"
    set -- "$1" "$here"/wheels/pip-*.whl
    PIP_CONFIG_FILE=/dev/null "$1/bin/python" -I "$2/pip" --isolated --quiet install --no-index --no-deps \
        --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
        --find-links "$here/wheels" --require-hashes --requirement "$here/requirements.txt"
    mkdir -p "$1/share/edged"
    for part in bundles systemd config licences install.sh README.md LICENSE NOTICE package; do
        cp -R "$here/$part" "$1/share/edged/"
    done
    sync -f "$1"
    touch "$1/.complete"
}

linked() { # NAME of a link: the release that it names, or nothing
    if [ -L "$OPT/$1" ]; then basename "$(readlink "$OPT/$1")"; fi
}

replaced() { # by the release that is in service, or on trial since an interrupted run
    if [ -f "$OPT/.trying" ]; then cat "$OPT/.trying"; else linked current; fi
}

switch() { # ID: puts a release in service, or leaves the one that is
    before=$(replaced)
    activate "$1"
    if serve; then
        # What never worked is not gone back to, so it becomes "previous" only now that it is replaced.
        if [ -n "$before" ] && [ "$before" != "$1" ]; then link "releases/$before" "$OPT/previous"; fi
        rm -f "$OPT/.trying"
        prune
        say "release $1 is in service"
        if [ -z "$before" ]; then
            say "who may speak: usermod -aG edged NAME; then, as NAME: edged say \"Hello.\""
            say "when nothing is heard: edged doctor"
        fi
    elif [ -n "$before" ] && [ "$before" != "$1" ]; then
        warn "release $1 did not start; going back to $before"
        activate "$before"
        serve || fail "release $before does not start either" "journalctl -u edged -x -e"
        rm -f "$OPT/.trying"
        prune
        fail "release $1 was not taken; $before is in service as before" "journalctl -u edged -x -n 100"
    else
        fail "it is installed, but does not start" "edged doctor, journalctl -u edged -x -e"
    fi
}

prune() { # all releases but the one in service and the one before
    for path in "$OPT"/releases/*; do
        case $path in
        "$(readlink -f "$OPT/current")" | "$(readlink -f "$OPT/previous")") ;;
        *) rm -rf "$path" ;;
        esac
    done
}

activate() { # ID
    share=$OPT/releases/$1/share/edged
    configuration "$OPT/releases/$1" "$OPT/current/share/edged/config/edged.yaml"
    printf '%s\n' "$before" >"$OPT/.trying.new"
    sync "$OPT/.trying.new"
    mv "$OPT/.trying.new" "$OPT/.trying"
    changed=no
    printf '%s\n' "$prefix" >"$OPT/.prefix"
    place_files
    accounts
    if [ "$(linked current)" != "$1" ]; then
        changed=yes
        link "releases/$1" "$OPT/current"
    fi
    for name in bin lib share pyvenv.cfg; do link "current/$name" "$OPT/$name"; done # so that it is one, too
    link share/edged/install.sh "$OPT/install.sh"
}

link() { # TARGET NAME: in one step, so that the service finds the old or the new one
    ln -sfn "$1" "$2.new"
    mv -T "$2.new" "$2"
}

configuration() { # RELEASE OLD-DEFAULT
    mkdir -p "$ETC"
    file=$ETC/edged.yaml
    if [ ! -e "$file" ] || cmp -s "$file" "$2"; then
        cp "$1/share/edged/config/edged.yaml" "$file.new"
        mv "$file.new" "$file"
    elif ! "$1/bin/edged" check-config "$file"; then
        fail "this release cannot use $file (see above); nothing was changed" "correct it and run this again"
    fi
}

place_files() { # units, catalogs, users: those of the release in $share; sets changed
    : >"$OPT/.files.new"
    for file in "$share"/systemd/* "$share"/systemd/*.d/*; do
        name=${file#"$share"/systemd/}
        case $name in
        *.service | *.socket | *.timer) target=$prefix/lib/systemd/system/$name ;;
        *.catalog) target=$prefix/lib/systemd/catalog/$name ;;
        sysusers.d/*.conf | tmpfiles.d/*.conf) target=$prefix/lib/$name ;;
        *) continue ;; # drop-ins are for the administrator to choose
        esac
        place "$file" "$target"
    done
    if [ -e "$prefix/bin/edged" ] && [ "$(readlink "$prefix/bin/edged")" != "$OPT/bin/edged" ]; then
        warn "$prefix/bin/edged is another program and stays; ours is $OPT/bin/edged"
    else
        mkdir -p "$prefix/bin"
        ln -sfn "$OPT/bin/edged" "$prefix/bin/edged"
        echo "$prefix/bin/edged" >>"$OPT/.files.new"
    fi
    if [ -f "$OPT/.files" ]; then # what the release before had and this one has not
        while read -r file; do
            grep -qxF "$file" "$OPT/.files.new" || rm -f "$file"
        done <"$OPT/.files"
    fi
    mv "$OPT/.files.new" "$OPT/.files"
}

place() { # FILE TARGET
    if ! cmp -s "$1" "$2"; then
        mkdir -p "${2%/*}"
        cp "$1" "$2"
        changed=yes
    fi
    echo "$2" >>"$OPT/.files.new"
}

accounts() { # the user, the group and the directories of the service
    for kind in sysusers tmpfiles; do
        file=$prefix/lib/$kind.d/edged.conf
        if [ ! -f "$file" ] || ! command -v systemd-$kind >/dev/null; then continue; fi
        if [ $kind = tmpfiles ]; then set -- --create; else set --; fi
        systemd-$kind "$@" "$file" || warn "systemd-$kind $* $file failed"
    done
}

# -- systemd --------------------------------------------------------------------------------------

booted() { [ -d /run/systemd/system ]; } # not so in a container image or a chroot

refresh() {
    booted || return 0
    systemctl daemon-reload
    if command -v journalctl >/dev/null; then journalctl --update-catalog || true; fi
}

runs_current() { # the service's process has files of the release that is linked, not of one before
    pid=$(systemctl show --property=MainPID --value $UNIT)
    grep -qF " $(readlink -f "$OPT/current")/" "/proc/$pid/maps" 2>/dev/null
}

serve() { # false when the service does not become ready
    if [ $start = no ] || ! command -v systemctl >/dev/null; then return 0; fi
    refresh
    systemctl enable --quiet $UNIT || return 1
    booted || return 0
    # A second run of the same package must not interrupt what is being spoken.
    if [ "$changed" = no ] && systemctl is-active --quiet $UNIT && runs_current; then return 0; fi
    systemctl reset-failed $UNIT 2>/dev/null || true # of earlier starts, which count against its limit
    since=$(date +%s)
    systemctl restart --quiet $UNIT 9>&- && return # when we are killed, it must not keep our lock
    systemctl stop $UNIT || true # it would go on trying
    journalctl --unit $UNIT --since "@$since" --no-pager --output cat | tail -n 25 >&2 || true
    return 1
}

main "$@"
