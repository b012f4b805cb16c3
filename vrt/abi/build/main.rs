//! Makes of `abi.toml` what the library is built of: the header, the stub library's source, the
//! Rust bindings and the lists.
//!
//! [`table`] reads the table, [`declaration`] the C declarations in it; each other module makes one
//! kind of text. All of it goes to `OUT_DIR`, where the library includes it.

mod bindings;
mod declaration;
mod header;
mod lists;
mod stub;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs, io};

use table::Table;

/// Why nothing could be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table is no TOML.
    #[error("abi.toml: {0}")]
    Toml(#[from] toml_edit::TomlError),
    /// An entry of the table is not what is expected there.
    #[error("abi.toml: `{entry}` {what}")]
    Entry {
        /// The entry's name.
        entry: String,
        /// What is wrong with it.
        what: String,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Cargo did not say where to write.
    #[error("OUT_DIR: {0}")]
    OutDir(#[from] env::VarError),
}

impl Error {
    fn entry(entry: &str, what: impl Into<String>) -> Error {
        Error::Entry { entry: entry.to_owned(), what: what.into() }
    }
}

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=abi.toml");
    println!("cargo::rerun-if-changed=missing.txt");
    println!("cargo::rerun-if-changed=build");
    match make() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn make() -> Result<(), Error> {
    let read = |path: &str| {
        fs::read_to_string(path).map_err(|error| Error::File { path: path.into(), error })
    };
    let table = Table::read(&read("abi.toml")?)?;
    let missing = read("missing.txt")?;
    let missing = stub::Missing::of(&table, &missing)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let write = |name: &str, text: String| {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| Error::File { path, error })
    };
    let header = header::text(&table);
    let stub = stub::text(&table, &missing);
    write("hash.rs", format!("{:?}", hash(&[env!("CARGO_PKG_VERSION"), &header, &stub])))?;
    write("mpi.h", header)?;
    write("stub.c", stub)?;
    write("types.rs", bindings::types(&table)?)?;
    write("constants.rs", bindings::constants(&table)?)?;
    write("signatures.rs", bindings::signatures(&table)?)?;
    write("functions.rs", lists::functions(&table))?;
    write("not_there.rs", lists::not_there(&table))?;
    write("missing.rs", format!("&{:?}", missing.names()))?;
    write("constant_list.rs", lists::constants(&table))?;
    write("datatypes.rs", lists::datatypes(&table)?)
}

/// A number in hexadecimal that tells versions of these texts apart (FNV-1a, 64 bits).
fn hash(texts: &[&str]) -> String {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}
