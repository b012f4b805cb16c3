# What `scripts/test --all` runs beside the rest. Sourced by it, after steps.bash.
# shellcheck shell=bash disable=SC2154 # target and chaos are set there
# shellcheck disable=SC2086 # options are words

step "shared-memory protocols, every interleaving (loom)"
RUSTFLAGS="--cfg loom" try cargo test --package vrt-shm --release --quiet --test loom \
    --target-dir "$target/loom"

step "memory errors of the parts that need no ranks (AddressSanitizer)"
# The compiler's sanitizers are unstable, which it can be told to overlook. Ranks change stacks and
# bring their own malloc, which they cannot follow.
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" try cargo test --quiet -p vrt-shm \
    --target x86_64-unknown-linux-gnu --target-dir "$target/asan"

step "undefined behaviour of the parts that need no ranks (Miri)"
# The interpreter comes with nightly compilers only. It brings its own malloc and calls of the system,
# so what vrt defines in front of libc's is left out.
if rustup toolchain install nightly --profile minimal --component miri,rust-src >"$log" 2>&1; then
    miri=(cargo +nightly miri test --target-dir "$target/miri")
    export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-ignore-leaks" PROPTEST_CASES=8
    # interpreted PACKAGE [FILTERS]: its unit tests, at least one for each filter.
    interpreted() {
        local package=$1 filter
        shift
        # Without most of what calls them, many functions are unused.
        RUSTFLAGS=-Awarnings try "${miri[@]}" -p "$package" --lib -- "$@"
        grep -q '^test result: ok. 0 passed' "$log" && fail "Miri has run no test of $package"
        for filter; do
            grep -q "^test $filter" "$log" || fail "no test of $package is in $filter"
        done
    }
    interpreted vrt-shm
    interpreted vrt-core mailbox:: layout:: pe::extension
    interpreted virtual-ranks datatype::
    unset MIRIFLAGS PROPTEST_CASES
else
    cat "$log"
    echo "   it cannot be had: left out"
fi

step "lints of the library with the features that it has by default, and without"
try cargo clippy --package virtual-ranks --no-default-features --quiet -- -D warnings
try cargo clippy --package virtual-ranks --all-targets --quiet -- -D warnings

step "documentation"
RUSTDOCFLAGS="-D warnings" try cargo doc "${everything[@]}" --no-deps
# (Links and commands of its pages are checked by a test of vrt-tests.)
if ! mdbook --version >/dev/null 2>&1 && ! cargo install --locked --quiet mdbook >"$log" 2>&1; then
    cat "$log"
    echo "   mdbook cannot be had: the book is not built"
else
    try mdbook build docs --dest-dir "$target/book"
    ! grep -E "WARN|ERROR" "$log" || fail "mdbook complains"
fi

step "another architecture"
# The C compiler is for the heap of threads, which is C.
if ! rustup target add aarch64-unknown-linux-gnu >"$log" 2>&1; then
    cat "$log"
    echo "   the standard library for aarch64 cannot be had: not checked"
elif have aarch64-linux-gnu-gcc crossbuild-essential-arm64; then
    try cargo clippy --quiet -p virtual-ranks -p uts --target aarch64-unknown-linux-gnu -- -D warnings
else
    echo "   a C compiler for aarch64 cannot be had: not checked"
fi

step "dependencies: licences, bans, sources, advisories (deny.toml)"
if ! cargo deny --version >/dev/null 2>&1 && ! cargo install --locked --quiet cargo-deny >"$log" 2>&1; then
    cat "$log"
    echo "   cargo-deny cannot be had: left out"
else
    try cargo deny --locked check bans licenses sources
    # A database that cannot be fetched is no finding, and an old one would find nothing new.
    if cargo deny --locked fetch db >"$log" 2>&1; then
        try cargo deny --locked check advisories
    else
        cat "$log"
        echo "   the database of advisories cannot be fetched: advisories are NOT checked"
    fi
fi

step "unit tests of the applications, and what takes long of their others"
# (With what the features belong to, as everywhere.)
applications=("${options[@]}" -p rocket-mini -p sparse-mini -p uts -p virtual-ranks -p lb-strategies)
try cargo clippy "${applications[@]}" --profile test --lib --bins -- -D warnings
try cargo test "${applications[@]}" --lib --bins --no-fail-fast -- --include-ignored
try cargo test "${applications[@]}" --test beside --test program --test programs -- --ignored
try cargo test --quiet -p rocket-mini --test '*' --no-fail-fast

step "jobs of ranks in all cases, and the benchmarks' own tests"
VRT_TEST_ALL=1 try cargo test "${everything[@]}" --test jobs --no-fail-fast
try cargo test --quiet -p vrt-bench --no-fail-fast

# A package of its own, because it shows how such are ported: it has cargo put `mpi` in the place of the
# registry's crate.
step "a ported program"
ported=(--locked --manifest-path rsmpi/example/Cargo.toml --target-dir "$target" --quiet)
CARGO_PROFILE_DEV_DEBUG=false try cargo build "${ported[@]}"
CARGO_PROFILE_DEV_DEBUG=false try cargo test "${ported[@]}"
job 60 "$target/debug/vrtrun" --pes 2 --ranks 7 --lb random --lb-period 1ms "$target/debug/ported"

step "ranks leave a busy core"
try cargo test --quiet -p vrt-tests --test noisy_neighbour -- --ignored

step "rocket-mini: every problem of every code on 1 to 8 ranks"
try cargo test --quiet -p rocket-mini --test every_size -- --ignored

step "programs for the jobs"
# Without link-time optimisation, which takes longer than the jobs; what depends on how the
# compiler inlines is run as released, too.
programs=$target/quick
try cargo build --profile quick --workspace --bins --examples "${options[@]}"
try cargo build --release --quiet --package vrt-tests --bin soak

step "commands of the book"
VRT_TEST_ALL=1 VRT_BOOK_PROGRAMS=$programs try cargo test "${everything[@]}" --test book

step "jobs: every tree, graphs, solvers, on 1 to 64 ranks"
for ranks in 1 2 7 64; do
    on="--pes 2 --ranks $ranks"
    for tree in T1 T2 T3 T4 T5; do
        job 120 $programs/uts --tree $tree --no-progress $on
    done
    job 120 $programs/sparse-mini bfs $on
    job 120 $programs/sparse-mini bfs --graph kronecker --scale 14 $on
    job 120 $programs/sparse-mini cg $on
    job 120 $programs/sparse-mini nbody --bodies 2000 --steps 20 $on
done
job 300 $programs/rocket-mini jacobi --size 96 --pes 2 --ranks 32
job 300 $programs/exchange --pes 2 --ranks 7
job 120 $programs/exchange --pes 2 --ranks 64 --rounds 2 --largest 10000
job 120 $programs/exchange --pes 2 --ranks 4 --soak 100000
job 120 $target/release/soak --pes 4 --ranks 64 --seconds 5 --check-stacks
job 120 $target/release/soak --pes 4 --ranks 64 --seconds 3 --longest 100000 --hostile --check-stacks
run 120 $programs/demo --report "$log.html"
rm "$log"*.html

step "collective operations: 64 ranks, with messages that wait for their receive"
table="collectives --pes 2 --ranks 64 --eager 64 --counts 1,600 --largest 1100"
job 300 $programs/$table
job 300 $programs/$table --lb random --lb-period 1ms
job 300 $programs/collectives --pes 2 --ranks 7 --eager 1K --check-stacks
for ranks in 2 5 8; do
    job 300 $programs/collectives --pes 2 --ranks $ranks --eager 1K
    job 300 $programs/collectives --pes 2 --ranks $ranks --eager 1K --moved 1
    job 300 $programs/collectives --pes 2 --ranks $ranks --eager 1K --lb random --lb-period 500us
    moved
    job 300 $programs/exchange --pes 2 --ranks $ranks --largest 100000
done

step "the examples of the mpi crate"
try cargo xtask rsmpi-examples
try cargo xtask rsmpi-examples --unchanged --ranks 1,4,7

step "what a browser and Perfetto show of jobs"
if have chromium chromium && have python3 python3-venv; then
    try scripts/views
    cat "$log"
else
    echo "   Chromium cannot be had: left out"
fi

step "very many ranks"
run 120 $programs/vrt-bench run many --what allreduce --pes 2 --ranks 100000 --operations 3 --repetitions 2
run 120 $programs/vrt-bench run many --what balance --lb greedy-refine --pes 2 --ranks 100000 --operations 3 --repetitions 2
# A million ranks have some 14 GiB.
if (($(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo) > 18 << 20)); then
    run 300 $programs/vrt-bench run many --what start --pes 2 --ranks 1000000
else
    echo "   there are less than 18 GiB of memory: a million ranks are left out"
fi

step "jobs while ranks are moved by lot, every millisecond: one node, and four"
for nodes in "" "--node-size 1"; do
    for tree in T1 T2 T3 T4 T5; do
        job 120 $programs/uts --tree $tree --ranks 16 --no-progress $chaos $nodes
    done
    job 300 $programs/rocket-mini jacobi --size 64 --ranks 32 --uneven 0.25:8 $chaos $nodes
    job 300 $programs/rocket-mini jacobi --size 64 --ranks 32 --migrate-every 5 --move state $chaos $nodes
    job 120 $programs/soak --ranks 64 --seconds 5 $chaos $nodes
    job 120 $programs/soak --ranks 64 --seconds 5 --longest 100000 --hostile $chaos $nodes
    job 120 $programs/migrate_stress --pes 2 --ranks 2 --rounds 100000 --lb rotate $nodes
    job 120 $programs/exchange --ranks 16 --largest 1000000 $chaos $nodes
    job 120 $programs/exchange --ranks 4 --soak 20000 $chaos $nodes
    job 120 $programs/sparse-mini bfs $chaos $nodes
    job 120 $programs/sparse-mini cg $chaos $nodes
    job 120 $programs/sparse-mini nbody --bodies 2000 --steps 20 $chaos $nodes
    for moves in "" "--lb random --lb-period 1ms" "--lb random --move state"; do
        for ranks in 1 2 7 32; do
            job 120 $programs/rocket-mini crack --size 64 --pressure 2.5 --heat 32 --migrate-every 20 \
                --pes 2 --ranks $ranks $moves $nodes
            job 120 $programs/rocket-mini rocket --size 48 --intervals 8 --ignition 0.5 --heat 64 \
                --pes 2 --ranks $ranks $moves $nodes
        done
    done
    job 120 $programs/windows --ranks 16 --rounds 200 --long 20000 $chaos $nodes
done

step "programs in the manner of ordinary ones, 20 times each: ranks stay, move, move between nodes"
every_ms="--lb random --lb-period 1ms"
# everyday LIST OPTIONS: each program of a list.
everyday() {
    local names program i
    names=$("$programs/everyday" "$1")
    for program in $names; do
        for ((i = 0; i < 20; i++)); do
            try timeout --kill-after=10 60 $programs/everyday $program --pes 2 --ranks 8 $2
            says_ok || fail "it does not say ok: everyday $program $2"
        done
    done
}
for moves in "" "$every_ms" "$every_ms --node-size 1"; do
    everyday names "$moves"
done
for nodes in "" "--node-size 1"; do
    everyday names-by-state "$every_ms --move state $nodes"
done

step "100,000 random datatypes and 10,000 rounds of random one-sided access: ranks stay, move, move between nodes"
# Other ones each time; what fails says its seed.
seed=$((EPOCHSECONDS * 100))
for source in random_types random_access; do
    try $programs/vrtcc -O2 vrt/run/tests/programs/c/$source.c -o $programs/$source -lm
done
for moves in "" "$every_ms" "$every_ms --node-size 1"; do
    for ((i = 0; i < 4; i++)); do
        job 600 $programs/vrtrun --pes 2 --ranks $((2 + i)) $moves $programs/random_types $seed 8400
        job 600 $programs/vrtrun --pes 2 --ranks $((2 + i)) $moves $programs/random_access $seed 840
        seed=$((seed + 8400))
    done
done

for library in openmpi mpich; do
    step "more jobs whose PEs are MPI processes: $library"
    on_mpi $library
    if [[ $library = openmpi ]]; then
        try cargo clippy "${mpi[@]}" -p virtual-ranks --all-targets -- -D warnings
        RUSTDOCFLAGS="-D warnings" try cargo doc "${mpi[@]}" -p vrt-net-mpi --no-deps
    fi
    # (Those of Open MPI have run.)
    [[ $library = openmpi ]] || try cargo test "${mpi[@]}" --no-fail-fast --test mpi
    try cargo build "${mpi[@]}" --profile quick --bins
    programs=$target/$library/quick
    uneven="rocket-mini jacobi --size 48 --ranks 32 --uneven 0.25:8"
    for nodes in "-n 2:--node-size 1" "-n 2:" "-n 4:--node-size 2"; do
        processes=${nodes%:*} nodes=${nodes#*:}
        for tree in T1 T2 T3 T4 T5; do
            job 120 "${launch[@]}" $processes $programs/uts --tree $tree --ranks 16 --no-progress $nodes
        done
        job 120 "${launch[@]}" $processes $programs/uts --tree T1 --ranks 16 --no-progress \
            --lb random --lb-period 1ms $nodes
        job 120 "${launch[@]}" $processes $programs/$uneven --lb greedy-refine --lb-period 20ms $nodes
        job 120 "${launch[@]}" $processes $programs/$uneven --lb greedy-refine --migrate-every 10 \
            --move state $nodes
    done
    cargo xtask uts-exact --mpi "$library" --programs "$programs" || fail "uts-exact: $library"
    # C programs, in all places.
    sources=vrt/run/tests/programs/c
    for source in globals.c collectives.c communicators.c point_to_point.c one_sided.c datatypes.c cpp.cc; do
        compiler=vrtcc
        [[ $source = *.c ]] || compiler=vrtcxx
        try $programs/$compiler -O1 -g $sources/$source -o $programs/${source%.*} -lm
        for nodes in "-n 2:--node-size 1" "-n 2:" "-n 4:--node-size 2"; do
            for moves in "" "--lb random --lb-period 1ms"; do
                job 120 "${launch[@]}" ${nodes%:*} $programs/vrtrun --ranks 8 $moves ${nodes#*:} \
                    $programs/${source%.*}
                [[ -z $moves ]] || moved
            done
        done
    done
done

step "two machines"
if [[ $(id -u) -eq 0 ]] && unshare --net --mount --uts --ipc --pid --fork true 2>/dev/null; then
    cargo xtask two-machines --programs "$target/openmpi/quick" || fail "two machines"
else
    echo "   they need root and namespaces: left out"
fi

step "uts: every algorithm, termination and tree"
cargo xtask uts-exact --programs "$target/quick" || fail "uts-exact"

step "chaos"
cargo xtask chaos --minutes 2 --programs "$target/quick" || fail "chaos"

step "instructions of the most frequent operations, to 2% (bench/counts.json)"
if have valgrind valgrind; then
    try scripts/bench counts
    cat "$log"
else
    echo "   valgrind is not installed: left out"
fi
