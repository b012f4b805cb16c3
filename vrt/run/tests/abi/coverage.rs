//! The documentation's table of implemented functions.

use std::path::Path;
use std::{env, fs};

const HEAD: &str = "# Functions of MPI that C programs find\n\n\
    Of the 664 functions of the MPI-5 ABI; those that are missing are not linked, so that `configure` finds that they are \
    not there. `vrtcc --vrt-all-functions` links them all the same: they say their name when they are called.\nA test compares this page with what there is; `VRT_WRITE_COVERAGE=1 cargo test -p vrtrun --test abi` \
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

/// The functions that the compilers leave out are those that the runtime does not implement.
#[test]
fn the_list_of_those_that_are_missing_is_right() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../abi/missing.txt");
    let is_base =
        |name: &str| name.strip_suffix("_c").is_none_or(|base| vrt_abi::function(base).is_none());
    let missing = vrt_abi::FUNCTIONS.iter().map(|function| function.name);
    let missing = missing.filter(|name| is_base(name) && !vrt_mpi::has_function(name));
    let is: String = missing.map(|name| format!("{name}\n")).collect();
    if env::var_os("VRT_WRITE_COVERAGE").is_some() {
        fs::write(&list, &is).unwrap();
    }
    let says = fs::read_to_string(&list).unwrap_or_default();
    assert!(says == is, "{} is out of date; it should be\n{is}", list.display());
}
