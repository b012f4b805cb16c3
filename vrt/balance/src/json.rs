//! JSON without `serde_json`: programs have not to be linked with that crate, whose implementations for
//! numbers would be seen all over them (`assert_eq!(7, x.receive().0)` would not say any more what is received).

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use jsonc_parser::errors::ParseError;

/// Why a value cannot be written.
pub use serde_json_core::ser::Error as WriteError;

/// The first length of a text that is tried.
const SHORT: usize = 4096;

/// A value as JSON.
///
/// # Errors
/// It is nothing that JSON can have.
pub fn text(value: &impl Serialize) -> Result<Vec<u8>, WriteError> {
    let mut text = vec![0; SHORT];
    loop {
        match serde_json_core::to_slice(value, &mut text) {
            Ok(length) => {
                text.truncate(length);
                return Ok(text);
            }
            Err(WriteError::BufferFull) => text.resize(2 * text.len(), 0),
            Err(error) => return Err(error),
        }
    }
}

/// The value of a text.
///
/// # Errors
/// What is wrong, and in which line and column.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, ParseError> {
    let strict = jsonc_parser::ParseOptions {
        allow_comments: false,
        allow_trailing_commas: false,
        allow_loose_object_property_names: false,
        ..Default::default()
    };
    jsonc_parser::parse_to_serde_value(text, &strict)
}
