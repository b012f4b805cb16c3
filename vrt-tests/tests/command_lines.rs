//! What somebody gets who has typed something wrong: a few lines that name what was typed and what would be right.
//!
//! `cargo test --test command_lines -- --nocapture` shows them all. The programs are those of the target folder that this
//! test lies in.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::{Command, Stdio};

use rayon::prelude::*;

/// A command line, and words that its error has.
type Line = (&'static str, &'static [&'static str]);

const LINES: &[Line] = &[
    ("vrtrun", &["PROGRAM"]),
    ("vrtrun ./nothing-there", &["nothing-there", "No such file"]),
    ("vrtrun /etc/passwd", &["/etc/passwd"]),
    ("vrtrun --lb gredy true", &["gredy", "greedy"]),
    ("vrtrun --lb ./hello", &["--lb auto"]),
    ("vrtrun -n 0 ./hello", &["0", "1"]),
    ("vrtrun -n x ./hello", &["'x'"]),
    ("vrtrun -n -3 ./hello", &["-3"]),
    ("vrtrun --pes 0 ./hello", &["0", "1"]),
    ("vrtrun --pes 1.5 ./hello", &["1.5"]),
    ("vrtrun --ranks 1e6 ./hello", &["1e6"]),
    ("vrtrun --lb gredy ./hello", &["gredy", "greedy"]),
    ("vrtrun --lb greedy --lb-period 5 ./hello", &["5", "ms"]),
    ("vrtrun --lb greedy --lb-period 0ms ./hello", &["0"]),
    ("vrtrun --lb greedy --lb-arg tolerance=1 ./hello", &["tolerance", "home-bias"]),
    ("vrtrun --lb-args x ./hello", &["--lb-args", "--lb-arg"]),
    ("vrtrun --move memry ./hello", &["memry", "memory"]),
    ("vrtrun --move-pinned never ./hello", &["never", "warn"]),
    ("vrtrun --stack 1X ./hello", &["1X"]),
    ("vrtrun --stack 1 ./hello", &["1"]),
    ("vrtrun --slot -1 ./hello", &["-1"]),
    ("vrtrun --eager 1Q ./hello", &["1Q"]),
    ("vrtrun --unexpected -1 ./hello", &["-1"]),
    ("vrtrun --node-size 0 ./hello", &["0", "1"]),
    ("vrtrun --net tcp ./hello", &["tcp", "local"]),
    ("vrtrun --trace /nonexistent/x.trace ./hello", &["/nonexistent/x.trace", "No such file"]),
    ("vrtrun --monitor 99999999 ./hello", &["99999999"]),
    ("vrtrun --watchdog 10 ./hello", &["10", "s"]),
    ("vrtrun --lb greedy --lb-predict meen ./hello", &["meen", "mean"]),
    ("vrtrun --exchange nbc ./hello", &["nbc", "nbx"]),
    ("vrtrun --core sometimes ./hello", &["sometimes", "rank"]),
    ("vrtrun swep ./hello", &["swep", "sweep"]),
    ("vrtrun sweep", &["PROGRAM"]),
    ("vrtrun sweep --ratios 0 ./hello", &["0", "1"]),
    ("vrtrun sweep --metric ( ./hello", &["("]),
    ("vrtrun top nobody", &["nobody"]),
    ("vrtrun top 1", &["1"]),
    ("vrtrun doctor --jsn", &["--jsn", "--json"]),
    ("vrtcc nothing-there.c", &["nothing-there.c"]),
    ("vrtcc --vrt-hlep", &["--vrt-hlep", "--vrt-help"]),
    ("vrtcxx nothing-there.cc", &["nothing-there.cc"]),
    ("vrt-trace", &["Usage"]),
    ("vrt-trace sumary x", &["sumary", "summary"]),
    ("vrt-trace summary /nonexistent", &["/nonexistent", "No such file"]),
    ("vrt-trace summary /etc/passwd", &["/etc/passwd", "trace"]),
    ("vrt-trace convert /nonexistent -o y.foo", &["y.foo", ".html"]),
    ("lb-sim --case exponental", &["exponental", "exponential"]),
    ("lb-sim --case uniform --pes 0", &["0"]),
    ("lb-sim replay /nonexistent", &["/nonexistent"]),
    ("uts --tree T9", &["T9", "T1"]),
    ("uts -t 7", &["7"]),
    ("uts -b -1", &["-1"]),
    ("uts --algorithm steel", &["steel", "steal"]),
    ("uts --algorithm share --termination token", &["share", "counting"]),
    ("uts -c 0", &["0"]),
    ("uts -t 0 -q 0.5 -m 8", &["--limit"]),
    ("rocket-mini", &["Usage"]),
    ("rocket-mini flw", &["flw", "flow"]),
    ("rocket-mini flow --problem sodd", &["sodd", "sod"]),
    ("rocket-mini jacobi --size 0", &["0"]),
    ("rocket-mini jacobi --uneven 2:8", &["2"]),
    ("rocket-mini experiment ratio --out x", &["ratio", "ratios"]),
    ("sparse-mini bfs --graph kroneker", &["kroneker", "kronecker"]),
    ("sparse-mini cg --matrix /nonexistent.mtx", &["/nonexistent.mtx"]),
    ("sparse-mini bench --among 3,x", &["x"]),
];

/// The program that is not to be run.
const HELLO: &str = "#include <mpi.h>\nint main(void) { MPI_Init(0, 0); MPI_Finalize(); }\n";

/// Lines of text that somebody reads, without the hint at `--help`.
const MOST: usize = 4;

#[test]
fn errors_are_short_and_name_what_is_wrong_and_what_is_right() {
    let programs = std::env::current_exe().unwrap();
    let programs = programs.parent().and_then(Path::parent).unwrap();
    let folder = tempfile::tempdir().unwrap();
    // Some options are looked at when a job starts only.
    let hello = folder.path().join("hello.c");
    std::fs::write(&hello, HELLO).unwrap();
    let compiled = Command::new(programs.join("vrtcc"))
        .args(["-o", "hello", "hello.c"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let wrong: Vec<String> = LINES
        .par_iter()
        .filter_map(|(line, words)| {
            let mut all = line.split_whitespace();
            let program = programs.join(all.next().unwrap());
            let mut command = Command::new("timeout");
            let command = command.arg("60").arg(program).args(all);
            let output = command.current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            println!("$ {line}\n{text}[status {}]\n", output.status.code().unwrap_or(-1));
            let said = text.lines().filter(|line| {
                !line.trim().is_empty() && !line.starts_with("For more information")
            });
            let said = said.count();
            let missing: Vec<_> = words.iter().filter(|word| !text.contains(**word)).collect();
            let is_right = !output.status.success()
                && output.status.code().is_some_and(|code| code <= 127)
                && missing.is_empty()
                && !text.contains("panicked")
                && said > 0
                && (said <= MOST || words.contains(&"Usage"));
            (!is_right).then(|| format!("{line}: {}, without {missing:?}:\n{text}", output.status))
        })
        .collect();
    assert!(LINES.len() >= 60);
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), LINES.len(), wrong.join("\n"));
}
