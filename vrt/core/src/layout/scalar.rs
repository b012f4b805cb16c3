//! Built-in values: the element types of reductions and one-sided operations.

use std::ops::Range;

/// A built-in value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum Scalar {
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `bool`: one byte, 0 or 1
    Bool,
    /// Complex numbers, the real part first.
    C32,
    /// The same of two `f64`.
    C64,
    /// [`Located`] values.
    F32At,
    /// `Located<f64>`
    F64At,
    /// `Located<i32>`
    I32At,
    /// `Located<i64>`
    I64At,
    /// `Located<i16>`
    I16At,
    /// C's `long double` on x86-64, an x87 number in 16 bytes.
    F80,
    /// Complex numbers of two of these.
    C80,
    /// Such a number with its location.
    F80At,
    /// Fortran's pairs: a value and a location that is also a `f32`.
    F32Pair,
    /// The same of `f64`.
    F64Pair,
}

impl Scalar {
    /// All of them, in their order.
    pub const ALL: [Scalar; 23] = [
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::F32,
        Scalar::F64,
        Scalar::Bool,
        Scalar::C32,
        Scalar::C64,
        Scalar::F32At,
        Scalar::F64At,
        Scalar::I32At,
        Scalar::I64At,
        Scalar::I16At,
        Scalar::F80,
        Scalar::C80,
        Scalar::F80At,
        Scalar::F32Pair,
        Scalar::F64Pair,
    ];

    /// The Rust type.
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
            Scalar::Bool => "bool",
            Scalar::C32 => "Complex<f32>",
            Scalar::C64 => "Complex<f64>",
            Scalar::F32At => "Located<f32>",
            Scalar::F64At => "Located<f64>",
            Scalar::I32At => "Located<i32>",
            Scalar::I64At => "Located<i64>",
            Scalar::I16At => "Located<i16>",
            Scalar::F80 => "long double",
            Scalar::C80 => "long double complex",
            Scalar::F80At => "long double and location",
            Scalar::F32Pair => "two f32",
            Scalar::F64Pair => "two f64",
        }
    }

    /// For a value with its location: the types of both.
    pub const fn pair(self) -> Option<(Scalar, Scalar)> {
        match self {
            Scalar::F32At => Some((Scalar::F32, Scalar::I32)),
            Scalar::F64At => Some((Scalar::F64, Scalar::I32)),
            Scalar::I32At => Some((Scalar::I32, Scalar::I32)),
            Scalar::I64At => Some((Scalar::I64, Scalar::I32)),
            Scalar::I16At => Some((Scalar::I16, Scalar::I32)),
            Scalar::F80At => Some((Scalar::F80, Scalar::I32)),
            Scalar::F32Pair => Some((Scalar::F32, Scalar::F32)),
            Scalar::F64Pair => Some((Scalar::F64, Scalar::F64)),
            _ => None,
        }
    }

    /// Size in bytes, packed.
    #[inline(always)]
    pub const fn size(self) -> usize {
        match self {
            Scalar::U8 | Scalar::I8 | Scalar::Bool => 1,
            Scalar::U16 | Scalar::I16 => 2,
            Scalar::U32 | Scalar::I32 | Scalar::F32 => 4,
            Scalar::U64 | Scalar::I64 | Scalar::F64 | Scalar::C32 => 8,
            Scalar::C64 | Scalar::F80 | Scalar::F64Pair => 16,
            Scalar::C80 => 32,
            Scalar::I16At => 6,
            Scalar::F32At | Scalar::I32At | Scalar::F32Pair => 8,
            Scalar::F64At | Scalar::I64At => 12,
            Scalar::F80At => 20,
        }
    }

    /// Distance in memory between two consecutive ones, in bytes.
    #[inline(always)]
    pub const fn extent(self) -> usize {
        match self {
            Scalar::I16At => 8,
            Scalar::F64At | Scalar::I64At => 16,
            Scalar::F80At => 32,
            _ => self.size(),
        }
    }

    /// Distance in memory between its first and last byte of data.
    #[inline(always)]
    pub const fn span(self) -> usize {
        match self.gap() {
            Some(gap) => self.size().saturating_add(gap.end.saturating_sub(gap.start)),
            None => self.size(),
        }
    }

    /// The bytes between a value and its location in memory, if they do not follow each other.
    pub(crate) const fn gap(self) -> Option<Range<usize>> {
        match self {
            Scalar::I16At => Some(2..4),
            _ => None,
        }
    }

    /// Whether the layout in memory is the packed one.
    #[inline(always)]
    pub const fn is_dense(self) -> bool {
        self.size() == self.extent()
    }

    /// Whether it is one of `u8` to `u64` or `i8` to `i64`; `bool` is not.
    pub const fn is_integer(self) -> bool {
        matches!(
            self,
            Scalar::U8
                | Scalar::U16
                | Scalar::U32
                | Scalar::U64
                | Scalar::I8
                | Scalar::I16
                | Scalar::I32
                | Scalar::I64
        )
    }

    /// The integer that these bytes represent.
    pub fn integer(self, bytes: &[u8]) -> i128 {
        let signed = matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64);
        let negative = signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if negative { 0xff } else { 0 }; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        i128::from_le_bytes(wide)
    }

    /// The bytes of an integer, if it is one of these types: as many of them as its size.
    pub fn integer_bytes(self, value: i128) -> Option<[u8; 16]> {
        let bytes = value.to_le_bytes();
        (self.is_integer() && self.integer(&bytes[..self.size()]) == value).then_some(bytes)
    }

    /// The alignment of one in memory, in bytes.
    pub(crate) const fn align(self) -> usize {
        match self {
            Scalar::C32 | Scalar::F32At | Scalar::I32At | Scalar::I16At | Scalar::F32Pair => 4,
            Scalar::C64 | Scalar::F64At | Scalar::I64At | Scalar::F64Pair => 8,
            Scalar::C80 | Scalar::F80At => 16,
            _ => self.size(),
        }
    }
}

/// A value and its location, for the reductions `max_location` and `min_location` (MPI-4.1 section
/// 6.9.4). Among equal values the one with the lowest location is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[repr(C)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its location, a rank for instance.
    pub location: i32,
}

impl<T> Located<T> {
    /// A value at a location.
    pub const fn new(value: T, location: i32) -> Located<T> {
        Located { value, location }
    }
}
