//! Writes a snapshot as JSON, by hand. So programs need not be linked with a JSON library, whose implementations for
//! numbers would be visible all over them.

use std::fmt::Write;

use super::snapshot::{MoveSeen, PeSeen, RankSeen, Snapshot};

/// A value that can be written as JSON.
trait Json {
    fn write(&self, out: &mut String);
}

/// Numbers, as they are printed.
macro_rules! printed {
    ($($Number:ty),*) => { $(
        impl Json for $Number {
            fn write(&self, out: &mut String) {
                // Writing to a string does not fail.
                let _ = write!(out, "{self}");
            }
        }
    )* };
}
printed!(u32, u64, usize);

impl Json for f64 {
    fn write(&self, out: &mut String) {
        // There are no others in JSON.
        let number = if self.is_finite() { *self } else { 0.0 };
        let _ = write!(out, "{number:?}");
    }
}

impl Json for String {
    fn write(&self, out: &mut String) {
        out.push('"');
        for letter in self.chars() {
            match letter {
                '"' | '\\' => out.extend(['\\', letter]),
                '\0'..='\x1f' => {
                    let _ = write!(out, "\\u{:04x}", u32::from(letter));
                }
                _ => out.push(letter),
            }
        }
        out.push('"');
    }
}

impl<T: Json> Json for Option<T> {
    fn write(&self, out: &mut String) {
        match self {
            Some(value) => value.write(out),
            None => out.push_str("null"),
        }
    }
}

impl<T: Json> Json for Vec<T> {
    fn write(&self, out: &mut String) {
        out.push('[');
        for (number, value) in self.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            value.write(out);
        }
        out.push(']');
    }
}

/// Structs, all of whose fields must be listed here.
macro_rules! objects {
    ($($Struct:ident { $first:ident $(, $field:ident)* $(,)? })*) => { $(
        impl Json for $Struct {
            fn write(&self, out: &mut String) {
                let $Struct { $first, $($field),* } = self;
                out.push_str(concat!("{\"", stringify!($first), "\":"));
                $first.write(out);
                $(
                    out.push_str(concat!(",\"", stringify!($field), "\":"));
                    $field.write(out);
                )*
                out.push('}');
            }
        }
    )* };
}

objects! {
    Snapshot {
        process, command, seconds, pes, unseen_pes, ranks, left_out, number_of_ranks, ended, messages, bytes,
        message_rate, all_moves, moves,
    }
    PeSeen { pe, node, process, silent, busy, idle, overhead, ranks, ready, switch_rate }
    RankSeen { rank, pe, state, wait, load, memory, messages, message_rate, byte_rate, moves }
    MoveSeen { at, rank, from, to, times }
}

/// The JSON of a snapshot.
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    snapshot.write(&mut text);
    text
}

#[cfg(all(test, feature = "json"))]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_the_library_reads() {
        let pe = PeSeen { pe: 1, busy: 0.25, overhead: Some(1e-9), ..PeSeen::default() };
        let rank = RankSeen {
            wait: "\"MPI_Recv\"\t\\ \u{1}\u{e9}".to_owned(),
            memory: u64::MAX,
            ..RankSeen::default()
        };
        let shot = Snapshot {
            command: "a\nb".to_owned(),
            seconds: 1e21,
            pes: vec![pe, PeSeen::default()],
            ranks: vec![rank],
            moves: vec![MoveSeen::default()],
            ..Snapshot::default()
        };
        let read: serde_json::Value = serde_json::from_str(&text(&shot)).unwrap();
        assert_eq!(read, serde_json::to_value(&shot).unwrap());
        let odd = Snapshot { seconds: f64::NAN, ..Snapshot::default() };
        assert!(serde_json::from_str::<Snapshot>(&text(&odd)).is_ok());
    }
}
