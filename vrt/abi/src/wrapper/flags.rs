//! What the compiler has to be told beside the user's arguments.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::prefix::Prefix;

/// A frame that is larger than what lies unused below a rank's stack would reach another rank's memory: so
/// each of its pages is touched in turn.
const PROBES: &str = "-fstack-clash-protection";

/// How far the compiler goes with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has no input: it is asked something.
    Nothing,
    /// It does not link, or links to something that takes no libraries.
    Compile,
    /// It links.
    Link,
}

/// Options with which the compiler does not link, or not to a program or library.
const NO_LINK: &str = "-c -S -E -M -MM -fsyntax-only --precompile -r -Wl,-r";

/// Options with which the compiler says something and does nothing, and beginnings of such.
const ASKED: &str = "--version --help --target-help -dumpversion -dumpfullversion -dumpmachine \
                     -dumpspecs";
const ASKED_PREFIXES: &[&str] = &["-print-", "--print-", "--help="];

/// Options whose value is the next argument.
const WITH_VALUE: &str = "-o -x -I -L -D -U -B -F -T -u -z -e -A -G -include -imacros -isystem \
    -iquote -idirafter -iprefix -iwithprefix -iwithprefixbefore -isysroot -imultilib -MF -MT -MQ \
    -Xlinker -Xpreprocessor -Xassembler -Xclang -mllvm -target -arch -framework -aux-info \
    -dumpbase -dumpbase-ext -dumpdir -wrapper --param --sysroot -Tbss -Tdata -Ttext -rpath -soname";

/// Options with which a program has a fixed address, or no dynamic linker.
const FIXED_ADDRESS: &str = "-no-pie -nopie -static --static -static-pie";

/// Options with which the user says what is linked, so that nothing is added.
const OTHER_OUTPUT: &str = "-shared --shared -dynamiclib -pie --pie";

impl Stage {
    /// How far the compiler goes with these arguments.
    pub(super) fn of(arguments: &[OsString]) -> Stage {
        let mut input = false;
        let mut stage = Stage::Link;
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if is_one_of(argument, ASKED) || begins_with(argument, ASKED_PREFIXES) {
                return Stage::Nothing;
            } else if is_one_of(argument, NO_LINK) {
                stage = Stage::Compile;
            } else if is_one_of(argument, WITH_VALUE) {
                arguments.next();
            } else if argument == "-" || begins_with(argument, &["-l"]) {
                input = true;
            } else {
                input |= !begins_with(argument, &["-"]);
            }
        }
        if input { stage } else { Stage::Nothing }
    }
}

/// The option by which the user asks for a program that cannot be moved, if there is one.
pub(super) fn fixed_address(arguments: &[OsString]) -> Option<&'static str> {
    let mut known = FIXED_ADDRESS.split_whitespace();
    known.find(|option| arguments.iter().any(|argument| argument == option))
}

/// What stands before the user's arguments, and behind them.
pub(super) fn flags(prefix: &Prefix, stage: Stage) -> [Vec<OsString>; 2] {
    let before = vec![joined("-I", &prefix.include())];
    let after = match stage {
        Stage::Link => vec![
            joined("-L", &prefix.linked()),
            joined("-Wl,-rpath,", &prefix.linked()),
            "-lmpi_abi".into(),
        ],
        _ => Vec::new(),
    };
    [before, after]
}

/// The user's arguments with what belongs around them.
///
/// Programs have to be position-independent. Many compilers make them so by default, others are
/// told, where the user's options, which come behind and win, do not say anything else.
pub(super) fn around(prefix: &Prefix, stage: Stage, arguments: Vec<OsString>) -> Vec<OsString> {
    let [mut before, after] = flags(prefix, stage);
    before.push("-fPIE".into());
    before.push(PROBES.into());
    let decided = |argument: &OsString| {
        is_one_of(argument, OTHER_OUTPUT) || is_one_of(argument, FIXED_ADDRESS)
    };
    if stage == Stage::Link && !arguments.iter().any(decided) {
        before.push("-pie".into());
    }
    [before, arguments, after].concat()
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(option);
    argument.push(path);
    argument
}

fn is_one_of(argument: &OsStr, options: &str) -> bool {
    options.split_whitespace().any(|option| argument == OsStr::new(option))
}

fn begins_with(argument: &OsStr, prefixes: &[&str]) -> bool {
    let argument = argument.as_encoded_bytes();
    prefixes.iter().any(|prefix| argument.starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrapper::command::shown;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn stages() {
        let cases = [
            ("", Stage::Nothing),
            ("-v", Stage::Nothing),
            ("--version a.c", Stage::Nothing),
            ("-print-search-dirs", Stage::Nothing),
            ("-dumpmachine", Stage::Nothing),
            ("-dumpbase a.c b.c", Stage::Link),
            ("-O2 -o a -I include -D X=1", Stage::Nothing),
            ("-Q --help=target", Stage::Nothing),
            ("a.c", Stage::Link),
            ("-o a a.o -lm", Stage::Link),
            ("-lm", Stage::Link),
            ("-x c -", Stage::Link),
            ("@arguments", Stage::Link),
            ("-shared -fPIC a.c -o liba.so", Stage::Link),
            ("-MD -MF a.d a.c", Stage::Link),
            ("-c a.c", Stage::Compile),
            ("a.c -S", Stage::Compile),
            ("-E -dM -x c /dev/null", Stage::Compile),
            ("-MM a.c", Stage::Compile),
            ("-fsyntax-only a.c", Stage::Compile),
            ("-r a.o b.o -o c.o", Stage::Compile),
            ("-o -c a.c", Stage::Link),
        ];
        for (line, stage) in cases {
            assert_eq!(Stage::of(&words(line)), stage, "{line}");
        }
    }

    #[test]
    fn programs_are_position_independent_unless_the_user_says_else() {
        let prefix = Prefix::at("/p");
        let line = |line: &str| shown(&around(&prefix, Stage::of(&words(line)), words(line)));
        let link = "-L/p/lib -Wl,-rpath,/p/lib -lmpi_abi";
        assert_eq!(line("a.c -o a"), format!("-I/p/include -fPIE {PROBES} -pie a.c -o a {link}"));
        assert_eq!(line("-c -fPIC a.c"), format!("-I/p/include -fPIE {PROBES} -c -fPIC a.c"));
        for option in ["-shared", "-no-pie", "-static", "-static-pie", "-pie"] {
            let expected = format!("-I/p/include -fPIE {PROBES} {option} a.c {link}");
            assert_eq!(line(&format!("{option} a.c")), expected);
        }
    }

    #[test]
    fn fixed_addresses_are_seen() {
        assert_eq!(fixed_address(&words("a.c -no-pie -O2")), Some("-no-pie"));
        assert_eq!(fixed_address(&words("a.c -static")), Some("-static"));
        assert_eq!(fixed_address(&words("a.c -shared -static-libgcc")), None);
    }

    #[test]
    fn blanks_are_quoted_behind_the_option() {
        let prefix = Prefix::at("/a b");
        assert_eq!(
            shown(&flags(&prefix, Stage::Link).concat()),
            r#"-I"/a b/include" -L"/a b/lib" -Wl,"-rpath,/a b/lib" -lmpi_abi"#
        );
        assert_eq!(shown(&["-DX=\"$y\"".into(), "".into()]), r#""-DX=\"\$y\"" """#);
    }
}
