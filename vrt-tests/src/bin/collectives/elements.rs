//! Buffers of each type of element. Every element has lanes, numbers that can be told apart, and
//! perhaps gaps, in which a canary lives.

use vrt::datatype::{DynBuffer, DynBufferMut, UserDatatype};
use vrt::traits::*;

const CANARY: u64 = 0x5151_5151_5151_5151;

#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
pub(crate) struct Record {
    pub(crate) tag: u8,
    pub(crate) value: i64,
    pub(crate) pair: (u16, u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integers,
    Floats,
    /// Two numbers with a gap of one behind each.
    Strided,
    Records,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Integers, Kind::Floats, Kind::Strided, Kind::Records];

    /// Words of 8 bytes in one element.
    fn words(self) -> usize {
        match self {
            Kind::Integers | Kind::Floats => 1,
            Kind::Strided => 4,
            Kind::Records => size_of::<Record>().div_ceil(8),
        }
    }

    fn datatype(self) -> UserDatatype {
        let number = i64::equivalent_datatype();
        match self {
            Kind::Strided => UserDatatype::resized(0, 32, &UserDatatype::vector(2, 1, 2, &number)),
            _ => unreachable!("these have datatypes of their own"),
        }
    }
}

/// A buffer.
#[derive(Debug)]
pub(crate) struct Elements {
    kind: Kind,
    memory: Vec<u64>,
    len: usize,
    datatype: Option<UserDatatype>,
}

impl Elements {
    /// So many elements, each made from a number.
    pub(crate) fn new(kind: Kind, len: usize, value: impl Fn(usize) -> i64) -> Elements {
        let datatype = (kind == Kind::Strided).then(|| kind.datatype());
        let memory = vec![CANARY; (len * kind.words()).max(1)];
        let mut elements = Elements { kind, memory, len, datatype };
        for i in 0..len {
            elements.set(i, value(i));
        }
        elements
    }

    /// Elements that are to be overwritten.
    pub(crate) fn blank(kind: Kind, len: usize) -> Elements {
        Elements::new(kind, len, |_| -1)
    }

    pub(crate) fn set(&mut self, i: usize, value: i64) {
        let at = i * self.kind.words();
        match self.kind {
            Kind::Integers => self.memory[at] = value as u64,
            Kind::Floats => self.memory[at] = float(value).to_bits(),
            Kind::Strided => {
                self.memory[at] = value as u64;
                self.memory[at + 2] = second(value) as u64;
            }
            // SAFETY: the words of element `i` are as many as a record has.
            Kind::Records => unsafe {
                self.memory.as_mut_ptr().add(at).cast::<Record>().write(record(value));
            },
        }
    }

    /// Checks that element `i` is the one made from a number, and its gaps are untouched.
    #[track_caller]
    pub(crate) fn expect(&self, i: usize, value: i64, case: impl Fn() -> String) {
        let at = i * self.kind.words();
        let good = match self.kind {
            Kind::Integers => self.memory[at] == value as u64,
            Kind::Floats => self.memory[at] == float(value).to_bits(),
            Kind::Strided => {
                let lanes = [self.memory[at] as i64, self.memory[at + 2] as i64];
                lanes == [value, second(value)]
            }
            Kind::Records => self.record(i) == record(value),
        };
        assert!(good && self.gaps_are_untouched(i), "element {i} in {}", case());
    }

    fn gaps_are_untouched(&self, i: usize) -> bool {
        let at = i * self.kind.words();
        self.kind != Kind::Strided
            || (self.memory[at + 1] == CANARY && self.memory[at + 3] == CANARY)
    }

    /// The numbers of an element; floats as they are.
    pub(crate) fn lanes(&self, i: usize) -> [i64; 2] {
        let at = i * self.kind.words();
        assert!(self.gaps_are_untouched(i), "a gap of element {i} was written to");
        match self.kind {
            Kind::Integers | Kind::Floats => [self.memory[at] as i64, 0],
            Kind::Strided => [self.memory[at] as i64, self.memory[at + 2] as i64],
            Kind::Records => [self.record(i).value, 0],
        }
    }

    pub(crate) fn record(&self, i: usize) -> Record {
        let at = i * self.kind.words();
        // SAFETY: as in `set`.
        unsafe { self.memory.as_ptr().add(at).cast::<Record>().read() }
    }

    pub(crate) fn buffer(&self) -> DynBuffer<'_> {
        self.range(0, self.len)
    }

    /// A part of it.
    pub(crate) fn range(&self, at: usize, len: usize) -> DynBuffer<'_> {
        assert!(at + len <= self.len);
        let from = self.memory[at * self.kind.words()..].as_ptr();
        // SAFETY: the elements lie in the memory.
        unsafe {
            match self.kind {
                Kind::Integers => DynBuffer::from_raw(from, len as i32, i64::equivalent_datatype()),
                Kind::Floats => DynBuffer::from_raw(from, len as i32, f64::equivalent_datatype()),
                Kind::Records => {
                    DynBuffer::from_raw(from, len as i32, Record::equivalent_datatype())
                }
                Kind::Strided => match &self.datatype {
                    Some(datatype) => DynBuffer::from_raw(from, len as i32, datatype.as_ref()),
                    None => unreachable!("made with its datatype"),
                },
            }
        }
    }

    pub(crate) fn buffer_mut(&mut self) -> DynBufferMut<'_> {
        let (len, to) = (self.len as i32, self.memory.as_mut_ptr());
        // SAFETY: the elements lie in the memory.
        unsafe {
            match self.kind {
                Kind::Integers => DynBufferMut::from_raw(to, len, i64::equivalent_datatype()),
                Kind::Floats => DynBufferMut::from_raw(to, len, f64::equivalent_datatype()),
                Kind::Records => DynBufferMut::from_raw(to, len, Record::equivalent_datatype()),
                Kind::Strided => match &self.datatype {
                    Some(datatype) => DynBufferMut::from_raw(to, len, datatype.as_ref()),
                    None => unreachable!("made with its datatype"),
                },
            }
        }
    }
}

/// The float made from a number: sums of them round, so their order can be seen.
pub(crate) fn float(value: i64) -> f64 {
    (value >> 11) as f64 * 1e-3
}

/// The second lane made from a number.
pub(crate) fn second(value: i64) -> i64 {
    value.rotate_left(17) ^ 0x55
}

/// The record made from a number.
pub(crate) fn record(value: i64) -> Record {
    Record { tag: value as u8, value, pair: ((value >> 16) as u16, (value >> 40) as u16) }
}
