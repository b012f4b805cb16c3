//! The thread-local variables of the program, by name.
//!
//! Polling a timer, drawing a random number, suspending itself: each leaves the address of some
//! library's thread-local variable on the stack, which nobody uses any more. Those libraries do not
//! wait inside a borrow of theirs, so their variables are no obstacle to a move; a variable of the
//! program itself may be borrowed. Which is which the program's table of symbols says; without
//! one every variable may be borrowed.

use object::{Object, ObjectSymbol, SymbolKind};

/// Crates that do not call the program while they borrow a thread-local variable, or only where the
/// rank is pinned for another reason.
const LIBRARIES: [&str; 14] = [
    "std",
    "core",
    "alloc",
    "vrt",
    "tokio",
    "mio",
    "tracing",
    "tracing_core",
    "tracing_subscriber",
    "rand",
    "regex_automata",
    "rayon_core",
    "crossbeam_epoch",
    "parking_lot_core",
];

/// The thread-local variables of the program that libraries may not have to themselves.
#[derive(Debug)]
pub(super) struct ThreadLocals {
    /// Offset in the thread-local storage, size and name; `None`: nothing is known of the program.
    variables: Option<Vec<Variable>>,
}

#[derive(Debug)]
struct Variable {
    start: usize,
    end: usize,
    name: &'static str,
    is_a_librarys: bool,
}

impl ThreadLocals {
    /// Reads the table of symbols of this program.
    pub(super) fn read() -> ThreadLocals {
        ThreadLocals { variables: variables() }
    }

    /// The name of the variable at an offset in the thread-local storage of the program, empty if it
    /// is not known; nothing if the variable is a library's.
    pub(super) fn at(&self, offset: usize) -> Option<&'static str> {
        let Some(variables) = &self.variables else { return Some("") };
        let variable = variables.iter().find(|v| (v.start..v.end).contains(&offset));
        match variable {
            Some(variable) if variable.is_a_librarys => None,
            Some(variable) => Some(variable.name),
            None => Some(""),
        }
    }
}

fn variables() -> Option<Vec<Variable>> {
    // Only what is needed of it is read.
    let program = object::ReadCache::new(std::fs::File::open("/proc/self/exe").ok()?);
    let program = object::File::parse(&program).ok()?;
    let variables: Vec<Variable> = program
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Tls && !symbol.is_undefined())
        .filter_map(|symbol| {
            let name = readable(symbol.name().ok()?);
            let start = symbol.address() as usize;
            Some(Variable {
                start,
                end: start + symbol.size().max(1) as usize,
                is_a_librarys: is_a_librarys(&name),
                name: Box::leak(name.into_boxed_str()),
            })
        })
        .collect();
    (!variables.is_empty()).then_some(variables)
}

/// `program::module::NAME` of what the compiler calls the variable.
fn readable(symbol: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    let end = name.find("::{").unwrap_or(name.len());
    name[..end].to_owned()
}

fn is_a_librarys(name: &str) -> bool {
    // `<std::hash::RandomState>::new::KEYS` is in `std`, too.
    let name = name.trim_start_matches('<');
    let first = name.split("::").next().unwrap_or_default();
    LIBRARIES.contains(&first) || name.starts_with("_mi_") || name == "recurse"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(1) };
    }

    #[test]
    fn libraries_keep_their_variables_to_themselves() {
        for name in ["std::thread::current::CURRENT", "<std::hash::RandomState>::new::KEYS"] {
            assert!(is_a_librarys(name), "{name}");
        }
        for name in ["program::NUMBERS", "standard::X", "<program::A as std::B>::c::KEYS"] {
            assert!(!is_a_librarys(name), "{name}");
        }
    }

    #[test]
    fn a_variable_is_known_by_its_name() {
        NUMBER.set(2);
        let known = ThreadLocals::read().variables.expect("a test has a table of symbols");
        let is_number = |v: &&Variable| v.name.ends_with("thread_locals::tests::NUMBER");
        let number = known.iter().find(is_number).expect("the variable above is there");
        assert!(number.end - number.start >= 8, "{number:?}");
    }
}
