# Steps of a check: each says its name, what it runs and how long it took; a command that fails is
# shown with all that it printed, and ends the script. Sourced by the scripts beside this folder.
# shellcheck shell=bash disable=SC2034 # what it sets is used by the others

# Nothing here asks anybody anything.
exec </dev/null
target=${CARGO_TARGET_DIR:-target}

self=scripts/$(basename "$0")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
step_name=

# Seconds of processor time that ended children have used.
cpu_seconds() {
    local fields
    read -ra fields <"/proc/$$/stat"
    echo $(((fields[15] + fields[16]) / $(getconf CLK_TCK)))
}

step_end() {
    [[ -n $step_name ]] || return 0
    printf '   %d s, %d s of processor time\n' $((SECONDS - step_began)) $(($(cpu_seconds) - step_cpu))
    step_name=
}

# step NAME: the last one has succeeded, the next one begins.
step() {
    step_end
    step_name=$*
    step_began=$SECONDS
    step_cpu=$(cpu_seconds)
    printf '\n== %s (after %d s)\n' "$*" "$SECONDS"
}

# The last line of a check that failed.
fail() {
    printf '\n%s: FAILED in "%s" after %d s: %s\n' "$self" "$step_name" "$SECONDS" "$*" >&2
    exit 1
}

# try COMMAND..: runs it without a word; shows everything if it fails.
try() {
    local status=0
    "$@" >"$log" 2>&1 || status=$?
    [[ $status -eq 0 ]] && return
    cat "$log"
    fail "status $status of: $*"
}

# run SECONDS COMMAND..: a job, which has to end in this time.
run() {
    local limit=$1
    shift
    printf '   %s\n' "$*"
    try timeout --kill-after=10 "$limit" "$@"
}

# Whether what ran last has verified its result, and says so: a line is or ends with ok. (Notes of
# the balancer may come after it.)
says_ok() { grep -Eq '(^|, |: |^verification +)ok$' "$log"; }

# job SECONDS COMMAND..: a job that has to say so.
job() {
    run "$@"
    says_ok && return
    cat "$log"
    fail "it does not say ok: $*"
}

# Whether the balancer of the job that ran last has moved ranks, as it says at the end.
has_moved() { grep -Eq 'load balancing: .* [1-9][0-9]* ranks? moved' "$log"; }

# moved: a job whose balancer has to have moved some.
moved() {
    has_moved && return
    cat "$log"
    fail "no rank has moved"
}

# need COMMAND PACKAGE: installs a Debian package that is missing, as root; says so to others.
need() {
    have "$@" || fail "$1 is missing: install the package $2"
}

# have COMMAND PACKAGE: the same for what a step can do without: whether it is there now.
have() {
    command -v "$1" >/dev/null && return
    install_package "$2" && command -v "$1" >/dev/null
}

install_package() {
    [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null || return
    printf '   installing %s\n' "$1"
    export DEBIAN_FRONTEND=noninteractive
    if [[ -z ${packages_are_listed-} ]]; then
        apt-get update -q >"$log" 2>&1 || cat "$log"
        packages_are_listed=yes
    fi
    apt-get install -q -y --no-install-recommends "$1" >"$log" 2>&1 || { cat "$log"; return 1; }
}

# on_mpi LIBRARY [FOLDER]: what follows is built, in this target folder, and run with openmpi or mpich.
# Sets `mpi`, the options of cargo; `launch`, the launcher; `programs`, the folder of what was built.
on_mpi() {
    # A folder for each library: cargo does not notice when MPICC names another one.
    local library=$1 folder=${2-$target/$1}
    need "mpicc.$library" "lib$library-dev"
    need "mpirun.$library" "${library/%openmpi/openmpi-bin}"
    # Debian keeps ldconfig out of an ordinary user's PATH. (libclang-cpp is another library.)
    [[ -n ${LIBCLANG_PATH-} ]] || /sbin/ldconfig -p | grep -E 'libclang(-[0-9.]+)?\.so' >/dev/null ||
        install_package libclang-dev || fail "libclang is missing: install the package libclang-dev"
    export MPICC=mpicc.$library VRT_MPIRUN=mpirun.$library
    # In containers, and with more processes than cores.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export OMPI_MCA_rmaps_base_oversubscribe=1
    mpi=(--target-dir "$folder" --quiet -p uts -p rocket-mini -p vrt-tests -p vrtrun
        --no-default-features --features "uts/mpi,rocket-mini/mpi,vrt-tests/mpi,vrt-tests/everyday,vrtrun/mpi")
    launch=("$VRT_MPIRUN")
    programs=$folder/debug
}
