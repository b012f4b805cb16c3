//! What `pkg-config` says about the header and the stub library.

use std::path::Path;

use crate::constants::{MPI_SUBVERSION, MPI_VERSION};

/// The text of `vrt-mpi.pc` for a header in `PREFIX/include` and a stub library in `PREFIX/lib`.
pub fn pkg_config(prefix: &Path) -> String {
    // In these files a backslash keeps a blank from ending a word, and `#` begins a comment.
    let mut escaped = String::new();
    for letter in prefix.to_string_lossy().chars() {
        if matches!(letter, ' ' | '\\' | '#' | '"' | '\'' | '$') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    format!(
        "prefix={escaped}\n\
         includedir=${{prefix}}/include\n\
         libdir=${{prefix}}/lib\n\
         \n\
         Name: vrt-mpi\n\
         Description: MPI programs whose ranks are virtual: header and stub library\n\
         Version: {MPI_VERSION}.{MPI_SUBVERSION}\n\
         Cflags: -I${{includedir}}\n\
         Libs: -L${{libdir}} -Wl,-rpath,${{libdir}} -lmpi_abi\n"
    )
}
