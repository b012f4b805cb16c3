//! The one place that knows how serde values become bytes (bincode 2, integers at their
//! full length: numbers by the million are encoded three times as fast that way).

mod bounded;

use std::marker::PhantomData;

use bincode::config::{Configuration, Fixint, LittleEndian};
use bincode::serde::seed_decode_from_slice;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use bounded::{Bounded, Budget};

/// A value that cannot be encoded.
#[derive(Debug, thiserror::Error)]
#[error("cannot encode the value: {0}")]
pub struct EncodeError(String);

/// Bytes that are no encoding of the type asked for.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// They do not fit the type.
    #[error("cannot decode a {what} from {len} bytes: {why}")]
    Unfit {
        /// The type.
        what: &'static str,
        /// How many bytes there are.
        len: usize,
        /// What does not fit.
        why: String,
    },
    /// The message was not sent as a value.
    #[error(
        "cannot decode a {what}: the message, {len} bytes, was sent as {found}, not as a value"
    )]
    NoValue {
        /// The type.
        what: &'static str,
        /// What the message is made of.
        found: String,
        /// How many bytes there are.
        len: usize,
    },
    /// More bytes than the value has.
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

/// A value as bytes, which [`decode`] and [`decode_own`] read.
///
/// # Errors
/// The value's `Serialize` fails, or does not say in advance how long a sequence is.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, EncodeError> {
    bincode::serde::encode_to_vec(value, CONFIG).map_err(|error| EncodeError(error.to_string()))
}

/// [`encode`] of a value that will be about so many bytes.
///
/// # Errors
/// As [`encode`].
pub fn encode_long<T: Serialize>(value: &T, len: usize) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::with_capacity(len);
    bincode::serde::encode_into_std_write(value, &mut bytes, CONFIG)
        .map_err(|error| EncodeError(error.to_string()))?;
    Ok(bytes)
}

/// Decodes with a limit on what lengths found in the bytes may claim: at least so many times the
/// bytes there are (a character claims four bytes for one). So a length that is nonsense is an error
/// before much is allocated for it, and, by the budget of `bounded`, before elements without bytes
/// are counted. A limit is a type to the decoder, which is compiled for each: there are few.
macro_rules! with_limits {
    ($bytes:expr, $seed:expr, [$($limit:literal)*] $last:literal) => {{
        const SLACK: usize = 4;
        match $bytes.len().saturating_mul(SLACK) {
            $(claim if claim <= 1 << $limit => {
                seed_decode_from_slice($seed, $bytes, CONFIG.with_limit::<{ 1 << $limit }>())
            })*
            _ => seed_decode_from_slice($seed, $bytes, CONFIG.with_limit::<{ 1 << $last }>()),
        }
    }};
}

/// Decodes a value that may have been sent as anything.
///
/// # Errors
/// The bytes do not fit the type, or are more than the value has.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    let budget = Budget::of(bytes.len());
    let seed = Bounded::new(PhantomData::<T>, &budget);
    whole(with_limits!(bytes, seed, [20 30] 46), bytes.len())
}

/// [`decode`] of what was encoded here, or by the runtime itself.
///
/// # Errors
/// As [`decode`].
pub fn decode_own<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    whole(bincode::serde::decode_from_slice(bytes, CONFIG), bytes.len())
}

/// [`decode_own`] of a value that borrows from the bytes.
pub(crate) fn decode_borrowed<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, DecodeError> {
    whole(bincode::serde::borrow_decode_from_slice(bytes, CONFIG), bytes.len())
}

fn whole<T>(
    decoded: Result<(T, usize), bincode::error::DecodeError>,
    len: usize,
) -> Result<T, DecodeError> {
    let what = std::any::type_name::<T>();
    match decoded {
        Ok((value, used)) if used == len => Ok(value),
        Ok((_, used)) => Err(DecodeError::Rest { what, used, len }),
        Err(error) => Err(DecodeError::Unfit { what, len, why: error.to_string() }),
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

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Tree {
        Leaf(String),
        Node(Vec<Tree>, Option<f32>),
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
