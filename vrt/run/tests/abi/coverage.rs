//! The table of the functions that are there, in the documentation.

use std::path::Path;
use std::{env, fs};

const HEAD: &str = "# Functions of MPI that C programs find\n\n\
    Of the 664 functions of the MPI-5 ABI; those that are missing can be linked, and say their name when they are \
    called.\nA test compares this page with what there is; `VRT_WRITE_COVERAGE=1 cargo test -p vrtrun --test abi` \
    writes it again.\n\n";

#[test]
fn the_page_says_which_functions_are_there() {
    let is = HEAD.to_owned() + &vrt_abi::coverage_table(&vrt_mpi::has_function);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coverage.md");
    if env::var_os("VRT_WRITE_COVERAGE").is_some() {
        fs::write(&page, &is).unwrap();
    }
    let says = fs::read_to_string(&page).unwrap_or_default();
    assert!(says == is, "{} is out of date: see there; it should be\n{is}", page.display());
}
