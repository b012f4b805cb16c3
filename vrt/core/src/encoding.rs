//! The only module that knows how serde values are encoded: in bincode 2's format, with fixed-width integers. bincode
//! writes them; the decoder here reads them.

mod decoder;

use std::mem::MaybeUninit;

use bincode::config::{Configuration, Fixint, LittleEndian};
use bincode::enc::write::{SizeWriter, Writer};
use bincode::serde::encode_into_writer;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use vrt_slot::report::count;

use decoder::Decoder;

/// A value that cannot be encoded.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode the value: {0}")]
pub struct EncodeError(String);

/// Bytes that are not an encoding of the requested type.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// They do not fit the type.
    #[error("cannot decode a {what} from {}: {why}", count(*len, "byte"))]
    Unfit {
        /// The type.
        what: &'static str,
        /// How many bytes there are.
        len: usize,
        /// What is wrong.
        why: String,
    },
    /// The message was not sent as a value.
    #[error(
        "cannot decode a {what}: the message, {}, was sent as {found}, not as a value",
        count(*len, "byte")
    )]
    NoValue {
        /// The type.
        what: &'static str,
        /// The message's element type.
        found: String,
        /// How many bytes there are.
        len: usize,
    },
    /// There are more bytes than the value has.
    #[error("a {what} was decoded from {used} of {len} bytes; what is the rest?")]
    Rest {
        /// The type.
        what: &'static str,
        /// Bytes the value has.
        used: usize,
        /// Bytes there are.
        len: usize,
    },
}

const CONFIG: Configuration<LittleEndian, Fixint> =
    bincode::config::standard().with_fixed_int_encoding();

/// Encodes a value, for [`decode`] and [`decode_own`]. The value is serialized twice, first only to measure it, which
/// takes no time for numbers however many: so the bytes are written to their place once, without a capacity check for
/// each.
///
/// # Errors
/// The value's `Serialize` fails, does not give the length of a sequence in advance, or yields different numbers of
/// bytes both times.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    let len = encoded_len(value)?;
    let mut bytes = Vec::with_capacity(len);
    encode_into(value, &mut bytes.spare_capacity_mut()[..len])?;
    // SAFETY: `encode_into` has written all of them.
    unsafe { bytes.set_len(len) };
    Ok(bytes)
}

/// The number of bytes of an encoded value.
///
/// # Errors
/// Those of [`encode`].
pub fn encoded_len<T: Serialize + ?Sized>(value: &T) -> Result<usize, EncodeError> {
    let mut size = SizeWriter::default();
    encode_into_writer(value, &mut size, CONFIG).map_err(|error| EncodeError(error.to_string()))?;
    Ok(size.bytes_written)
}

/// Encodes a value into exactly as many bytes as [`encoded_len`] returned: all of them are written, unless this fails.
///
/// # Errors
/// Those of [`encode`].
pub fn encode_into<T: Serialize + ?Sized>(
    value: &T,
    room: &mut [MaybeUninit<u8>],
) -> Result<(), EncodeError> {
    let len = room.len();
    let mut left = len;
    let written = encode_into_writer(value, Place { room, left: &mut left }, CONFIG);
    match (written, left) {
        (Ok(()), 0) => Ok(()),
        (Ok(()), left) => Err(EncodeError(format!(
            "it was serialized to {len} bytes, and then to {}; it has to be the same again",
            len - left
        ))),
        (Err(error), _) => Err(EncodeError(error.to_string())),
    }
}

/// Bytes that are written, from the first to the last. What does not fit is an error, and leaves them as they
/// are. How many are left is said at the end: a number kept by reference would be written each time.
struct Place<'a> {
    room: &'a mut [MaybeUninit<u8>],
    left: &'a mut usize,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.left = self.room.len();
    }
}

impl Writer for Place<'_> {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) -> Result<(), bincode::error::EncodeError> {
        let room = std::mem::take(&mut self.room);
        let Some((to, rest)) = room.split_at_mut_checked(bytes.len()) else {
            return Err(bincode::error::EncodeError::UnexpectedEnd);
        };
        for (to, byte) in to.iter_mut().zip(bytes) {
            to.write(*byte);
        }
        self.room = rest;
        Ok(())
    }
}

/// Decodes a value of unknown origin: an impossible length is an error before much memory is allocated for it, and
/// before elements without bytes are counted that far.
///
/// # Errors
/// The bytes do not fit the type, or are more than the value has.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    whole(Decoder::new(bytes))
}

/// [`decode`] for bytes that were encoded here, or by the runtime itself.
///
/// # Errors
/// Those of [`decode`].
pub fn decode_own<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    whole(Decoder::trusting(bytes))
}

/// [`decode_own`] of a value that borrows from the bytes.
pub(crate) fn decode_borrowed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    whole(Decoder::trusting(bytes))
}

fn whole<'a, T: Deserialize<'a>>(mut decoder: Decoder<'a>) -> Result<T, DecodeError> {
    let len = decoder.left();
    let decoded = T::deserialize(&mut decoder);
    let what = std::any::type_name::<T>();
    match (decoded, decoder.left()) {
        (Ok(value), 0) => Ok(value),
        (Ok(_), rest) => Err(DecodeError::Rest { what, used: len - rest, len }),
        (Err(misfit), _) => Err(DecodeError::Unfit { what, len, why: misfit.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_survive_and_foreign_bytes_do_not() {
        let value = (7u8, vec!["a".to_owned(), "b".to_owned()], Some(-3i64));
        let bytes = encode(&value).unwrap();
        assert_eq!(decode::<(u8, Vec<String>, Option<i64>)>(&bytes).unwrap(), value);
        assert!(matches!(decode::<u8>(&bytes), Err(DecodeError::Rest { used: 1, .. })));
        assert!(matches!(decode::<String>(&[200]), Err(DecodeError::Unfit { len: 1, .. })));
    }

    #[test]
    fn absurd_lengths_are_errors() {
        for length in [u64::MAX, 1 << 63, 1 << 46, 1 << 40, 1 << 33] {
            let bytes = [&length.to_le_bytes()[..], b"abc"].concat();
            assert!(matches!(decode::<String>(&bytes), Err(DecodeError::Unfit { .. })), "{length}");
            assert!(decode::<Vec<u64>>(&bytes).is_err());
            assert!(decode::<HashMap<u8, String>>(&bytes).is_err());
            assert!(decode::<serde_bytes::ByteBuf>(&bytes).is_err());
            assert!(decode::<(u8, Option<String>)>(&bytes).is_err());
        }
        // What is long for its bytes is none of that.
        let text: Vec<char> = vec!['a'; 70_000];
        assert_eq!(decode::<Vec<char>>(&encode(&text).unwrap()).unwrap(), text);
    }

    #[test]
    fn absurd_numbers_of_nothing_are_errors() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Nothing {}
        for length in [u64::MAX, 1 << 60, 1 << 32] {
            let bytes = length.to_le_bytes();
            assert!(
                matches!(decode::<Vec<()>>(&bytes), Err(DecodeError::Unfit { .. })),
                "{length}"
            );
            assert!(decode::<Vec<Nothing>>(&bytes).is_err());
            assert!(decode::<HashMap<(), ()>>(&bytes).is_err());
            assert!(
                decode::<Result<Vec<((), [(); 3])>, u8>>(&[&[0; 4][..], &bytes].concat()).is_err()
            );
        }
        // Many short ones are as bad as a long one.
        let each = [&(100_000u64).to_le_bytes()[..]; 20].concat();
        let bytes = [&20u64.to_le_bytes()[..], &each].concat();
        let error = decode::<Vec<Vec<()>>>(&bytes).unwrap_err().to_string();
        assert!(error.contains("100000 elements are claimed"), "{error}");
        // What is as long as that is none of it.
        let some = (vec![(); 1000], vec![Nothing {}], vec![((), 1u8, [(); 3]); 70_000]);
        let bytes = encode(&some).unwrap();
        assert_eq!(
            decode::<(Vec<()>, Vec<Nothing>, Vec<((), u8, [(); 3])>)>(&bytes).unwrap(),
            some
        );
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    enum Tree {
        Leaf(String),
        Node(Vec<Tree>, Option<f32>),
        Cut { at: char, by: Box<Tree> },
        Empty,
    }

    fn trees() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![".{0,5}".prop_map(Tree::Leaf), Just(Tree::Empty)];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let children = proptest::collection::vec(inner.clone(), 0..5);
            // bincode's own decoder is the oracle, and a NaN is not the same as itself.
            let number = proptest::option::of(proptest::num::f32::NORMAL);
            prop_oneof![
                (children, number).prop_map(|(children, number)| Tree::Node(children, number)),
                (any::<char>(), inner).prop_map(|(at, by)| Tree::Cut { at, by: Box::new(by) }),
            ]
        })
    }

    /// Everything that serde knows.
    type Zoo = (
        (bool, char, String, Option<()>, (i8, i16, i32, i64, i128)),
        (u8, u16, u32, u64, u128, usize),
        (Vec<u64>, Vec<Vec<f64>>, [u16; 3], Box<[i32]>),
        std::collections::BTreeMap<String, Vec<(u8, char)>>,
        Result<Tree, (u8, String)>,
    );

    fn zoo() -> impl Strategy<Value = Zoo> {
        let number = proptest::num::f64::NORMAL;
        (
            (
                any::<bool>(),
                any::<char>(),
                any::<String>(),
                any::<Option<()>>(),
                any::<(i8, i16, i32, i64, i128)>(),
            ),
            any::<(u8, u16, u32, u64, u128, usize)>(),
            (
                any::<Vec<u64>>(),
                proptest::collection::vec(proptest::collection::vec(number, 0..9), 0..9),
                any::<[u16; 3]>(),
                any::<Vec<i32>>().prop_map(Vec::into_boxed_slice),
            ),
            proptest::collection::btree_map(any::<String>(), any::<Vec<(u8, char)>>(), 0..5),
            prop_oneof![trees().prop_map(Ok), any::<(u8, String)>().prop_map(Err)],
        )
    }

    /// bincode's decoder, limited as it has to be where lengths are not to be trusted.
    fn by_bincode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
        let limited = CONFIG.with_limit::<{ 1 << 20 }>();
        let decoded = bincode::serde::decode_from_slice(bytes, limited);
        decoded.ok().filter(|(_, used)| *used == bytes.len()).map(|(value, _)| value)
    }

    #[test]
    fn borrowed_values_lie_in_the_bytes() {
        let bytes = encode(&("some text", serde_bytes::Bytes::new(b"and bytes"), 7u8)).unwrap();
        let (text, raw, seven): (&str, &serde_bytes::Bytes, u8) = decode_borrowed(&bytes).unwrap();
        assert_eq!((text, &raw[..], seven), ("some text", &b"and bytes"[..], 7));
        assert!(bytes.as_ptr_range().contains(&text.as_ptr()));
    }

    #[test]
    fn what_says_something_else_the_second_time_is_an_error() {
        struct Once(std::cell::Cell<usize>);
        impl Serialize for Once {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_seq(std::iter::repeat_n(1u8, self.0.replace(2)))
            }
        }
        for first in [0, 5] {
            let error = encode(&Once(first.into())).unwrap_err().to_string();
            assert!(error.starts_with("cannot encode the value: "), "{error}");
        }
        assert_eq!(encode(&Once(2.into())).unwrap().len(), 10);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_value_or_an_error(bytes in proptest::collection::vec(0u8.., 0..200)) {
            let _ = decode::<String>(&bytes);
            let _ = decode::<Vec<String>>(&bytes);
            let _ = decode::<HashMap<String, Vec<u16>>>(&bytes);
            let _ = decode::<serde_bytes::ByteBuf>(&bytes);
            let _ = decode::<(bool, char, Option<Box<i64>>)>(&bytes);
            let _ = decode::<Tree>(&bytes);
            let _ = decode::<Result<[u32; 4], String>>(&bytes);
        }

        #[test]
        fn the_format_is_bincodes(value in zoo()) {
            let bytes = encode(&value).unwrap();
            prop_assert_eq!(&bytes, &bincode::serde::encode_to_vec(&value, CONFIG).unwrap());
            prop_assert_eq!(decode::<Zoo>(&bytes).unwrap(), value.clone());
            prop_assert_eq!(decode_own::<Zoo>(&bytes).unwrap(), value);
        }

        #[test]
        fn damaged_bytes_are_what_bincode_finds_in_them(
            value in trees(), at in 0usize.., to: u8, cut: bool,
        ) {
            let mut bytes = encode(&value).unwrap();
            let at = at % bytes.len();
            bytes[at] = to;
            bytes.truncate(if cut { at } else { bytes.len() });
            let (ours, theirs) = (decode::<Tree>(&bytes).ok(), by_bincode::<Tree>(&bytes));
            // A number may have become a NaN.
            prop_assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        }

        #[test]
        fn damaged_encodings_give_a_value_or_an_error(
            words in proptest::collection::vec(".{0,9}", 0..9), at in 0usize.., to: u8,
        ) {
            let mut bytes = encode(&words).unwrap();
            let at = at % bytes.len();
            bytes[at] = to;
            let _ = decode::<Vec<String>>(&bytes);
            bytes.truncate(at);
            prop_assert!(decode::<Vec<String>>(&bytes).is_err());
        }
    }
}
