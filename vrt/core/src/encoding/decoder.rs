//! Reads what bincode has written with fixed-width integers in little-endian order: a format that its specification
//! fixes. Compared with bincode's own decoder, this one is safe with untrusted bytes whatever their type, and faster:
//! its state is a pointer and a number, and an error is one word, so that the compiler keeps all of it in registers and
//! inlines the reads of a structure's fields.
//!
//! An impossible length is an error before its first element is read. Elements that have bytes cannot outnumber the
//! bytes; elements without bytes (`()`, empty structures) could be any number, and a length of 2^60 in eight bytes
//! would have them counted that far. So every sequence and map takes its length out of a [budget](Decoder::new) for the
//! whole value: as many elements as there are bytes, plus [`EMPTY`]. Tuples and structures have as many elements as
//! their types define; they take nothing.

use std::fmt;

use serde::de::value::U32Deserializer;
use serde::de::{DeserializeSeed, Unexpected};
use serde::de::{
    Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// Most elements without bytes in a value that came from somebody else.
pub(super) const EMPTY: usize = 1 << 20;

/// What does not fit. One word, so that a number or an error is returned in registers.
#[derive(Debug)]
pub(super) struct Misfit(Box<Why>);

#[derive(Debug)]
struct Why(String);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.0)
    }
}

impl std::error::Error for Misfit {}

impl Error for Misfit {
    #[cold]
    fn custom<T: fmt::Display>(what: T) -> Misfit {
        Misfit(Box::new(Why(what.to_string())))
    }
}

impl Misfit {
    #[cold]
    #[inline(never)]
    fn end() -> Misfit {
        Misfit::custom("more of them are needed")
    }
}

/// Reads a value from bytes.
#[derive(Clone)]
pub(super) struct Decoder<'de> {
    /// An iterator: with a slice, both words would be written for each number that is read.
    rest: std::slice::Iter<'de, u8>,
    /// How many more elements are allowed.
    budget: usize,
}

impl<'de> Decoder<'de> {
    /// For bytes that anybody may have made.
    pub(super) fn new(bytes: &'de [u8]) -> Decoder<'de> {
        Decoder { rest: bytes.iter(), budget: bytes.len().saturating_add(EMPTY) }
    }

    /// For bytes that were encoded here: all lengths are what they say.
    pub(super) fn trusting(bytes: &'de [u8]) -> Decoder<'de> {
        Decoder { rest: bytes.iter(), budget: usize::MAX }
    }

    /// How many bytes were not read.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Misfit> {
        let Some(bytes) = self.rest.as_slice().first_chunk() else { return Err(Misfit::end()) };
        self.rest.nth(N - 1);
        Ok(*bytes)
    }

    #[inline]
    fn take_slice(&mut self, len: usize) -> Result<&'de [u8], Misfit> {
        let Some((bytes, rest)) = self.rest.as_slice().split_at_checked(len) else {
            return Err(Misfit::end());
        };
        self.rest = rest.iter();
        Ok(bytes)
    }

    /// A length.
    #[inline]
    fn len(&mut self) -> Result<usize, Misfit> {
        let len = u64::from_le_bytes(self.take()?);
        usize::try_from(len).map_err(|_| Misfit::custom(format_args!("{len} is too long")))
    }

    #[inline]
    fn bytes(&mut self) -> Result<&'de [u8], Misfit> {
        let len = self.len()?;
        self.take_slice(len)
    }

    #[inline]
    fn text(&mut self) -> Result<&'de str, Misfit> {
        std::str::from_utf8(self.bytes()?).map_err(Misfit::custom)
    }

    /// A character: its UTF-8, without a length.
    fn char(&mut self) -> Result<char, Misfit> {
        let bytes = self.take_slice(match self.rest.as_slice().first() {
            None | Some(..0x80) => 1,
            Some(..0xe0) => 2,
            Some(..0xf0) => 3,
            Some(_) => 4,
        })?;
        let text = std::str::from_utf8(bytes).ok();
        text.and_then(|text| text.chars().next())
            .ok_or_else(|| Misfit::invalid_value(Unexpected::Bytes(bytes), &"a character"))
    }

    /// The length of a sequence or map.
    #[inline]
    fn claim(&mut self) -> Result<usize, Misfit> {
        let len = self.len()?;
        let Some(budget) = self.budget.checked_sub(len) else {
            return Err(Misfit::custom(format_args!(
                "{len} elements are claimed, {} at most can be there",
                self.budget
            )));
        };
        self.budget = budget;
        Ok(len)
    }
}

/// The parts of a value, how many of them are left. (Two words, which are handed to a visitor in registers.)
struct Parts<'a, 'de> {
    whole: &'a mut Decoder<'de>,
    left: usize,
}

impl<'de> Parts<'_, 'de> {
    #[inline(always)]
    fn next<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Misfit> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.whole).map(Some)
    }
}

impl<'de> SeqAccess<'de> for Parts<'_, 'de> {
    type Error = Misfit;

    #[inline(always)]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Misfit> {
        self.next(seed)
    }

    #[inline(always)]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Parts<'_, 'de> {
    type Error = Misfit;

    #[inline(always)]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Misfit> {
        self.next(seed)
    }

    #[inline(always)]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Misfit> {
        seed.deserialize(&mut *self.whole)
    }

    #[inline(always)]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

macro_rules! numbers {
    ($($deserialize:ident $visit:ident $number:ident)*) => {
        $(#[inline(always)]
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            visitor.$visit($number::from_le_bytes(self.take()?))
        })*
    };
}

/// Types that the bytes alone do not determine.
macro_rules! untold {
    ($($deserialize:ident)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Misfit> {
            Err(Misfit::custom("the bytes do not say what they are, and the type does not, either"))
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Decoder<'de> {
    type Error = Misfit;

    numbers! {
        deserialize_i8 visit_i8 i8
        deserialize_i16 visit_i16 i16
        deserialize_i32 visit_i32 i32
        deserialize_i64 visit_i64 i64
        deserialize_i128 visit_i128 i128
        deserialize_u8 visit_u8 u8
        deserialize_u16 visit_u16 u16
        deserialize_u32 visit_u32 u32
        deserialize_u64 visit_u64 u64
        deserialize_u128 visit_u128 u128
        deserialize_f32 visit_f32 f32
        deserialize_f64 visit_f64 f64
    }

    untold! { deserialize_any deserialize_ignored_any deserialize_identifier }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.take()? {
            [0] => visitor.visit_bool(false),
            [1] => visitor.visit_bool(true),
            [other] => Err(Misfit::invalid_value(Unexpected::Unsigned(other.into()), &"0 or 1")),
        }
    }

    #[inline]
    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_char(self.char()?)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_borrowed_str(self.text()?)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_string(self.text()?.to_owned())
    }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_borrowed_bytes(self.bytes()?)
    }

    #[inline]
    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_byte_buf(self.bytes()?.to_owned())
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.take()? {
            [0] => visitor.visit_none(),
            [1] => visitor.visit_some(self),
            [other] => Err(Misfit::invalid_value(Unexpected::Unsigned(other.into()), &"0 or 1")),
        }
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    #[inline(always)]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    /// Never inlined, so that what the visitor does with a sequence of this type is likely to be inlined here,
    /// and the place that it reads from, which is nobody else's, kept in a register.
    #[inline(never)]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let left = self.claim()?;
        let mut whole = self.clone();
        let value = visitor.visit_seq(Parts { whole: &mut whole, left });
        *self = whole;
        value
    }

    #[inline(always)]
    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_seq(Parts { whole: self, left: len })
    }

    #[inline(always)]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_seq(Parts { whole: self, left: len })
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let left = self.claim()?;
        visitor.visit_map(Parts { whole: self, left })
    }

    #[inline(always)]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_seq(Parts { whole: self, left: fields.len() })
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_enum(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

impl<'de> EnumAccess<'de> for &mut Decoder<'de> {
    type Error = Misfit;
    type Variant = Self;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Misfit> {
        let number: U32Deserializer<Misfit> = u32::from_le_bytes(self.take()?).into_deserializer();
        Ok((seed.deserialize(number)?, self))
    }
}

impl<'de> VariantAccess<'de> for &mut Decoder<'de> {
    type Error = Misfit;

    #[inline]
    fn unit_variant(self) -> Result<(), Misfit> {
        Ok(())
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Misfit> {
        seed.deserialize(self)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_seq(Parts { whole: self, left: len })
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_seq(Parts { whole: self, left: fields.len() })
    }
}
