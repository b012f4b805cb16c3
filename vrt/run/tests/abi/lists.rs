//! Tests of the lists, and of lookups in them.

use std::collections::HashSet;
use std::ffi::c_int;
use std::path::Path;
use std::sync::Mutex;

use vrt_abi::constants::*;
use vrt_abi::types::*;
use vrt_abi::*;

#[test]
fn numbers_of_functions() {
    assert_eq!(FUNCTIONS.len(), 664);
    assert_eq!(FUNCTIONS.iter().filter(|function| function.is_large).count(), 161);
    assert_eq!(FUNCTIONS.iter().filter(|function| !function.is_large).count(), 503);
    let names: HashSet<_> = FUNCTIONS.iter().map(|function| function.name).collect();
    assert_eq!(names.len(), 664);
    for large in FUNCTIONS.iter().filter(|function| function.is_large) {
        let base = function(large.name.strip_suffix("_c").unwrap()).unwrap();
        assert_eq!(base.chapter, large.chapter);
        assert_ne!(base.prototype.replace(base.name, large.name), large.prototype);
    }
    assert_eq!(CHAPTERS.len(), 17);
    assert_eq!(function("PMPI_Send"), function("MPI_Send"));
    assert_eq!(function("PPMPI_Send"), None);
    assert_eq!(function("MPI_Errhandler_set"), None);
    assert_eq!(function("MPI_Attr_get").unwrap().deprecated, Some("2.0"));
}

#[test]
fn numbers_of_constants() {
    let in_group = |group| CONSTANTS.iter().filter(|c| c.group == group).count();
    let all_of = |c_type| CONSTANTS.iter().filter(|c| c.c_type == c_type).count();
    // 215 enumerators, 14 macros of type int and 4 of versions.
    let enumerations = all_of("MPI_T_cb_safety") + all_of("MPI_T_source_order");
    assert_eq!(all_of("int") + enumerations, 215 + in_group("lengths") + 1 + 4);
    assert_eq!(in_group("error-classes") + in_group("error-classes-of-tools"), 63 + 18);
    assert_eq!(all_of("MPI_Op"), 15);
    assert_eq!(DATATYPES.len(), all_of("MPI_Datatype") - 3);
    let names: HashSet<_> = CONSTANTS.iter().map(|constant| constant.name).collect();
    assert_eq!(names.len(), CONSTANTS.len());
}

#[test]
fn names_are_found() {
    assert_eq!(error_class_name(0), Some("MPI_SUCCESS"));
    assert_eq!(error_class_name(MPI_ERR_ABI), Some("MPI_ERR_ABI"));
    assert_eq!(error_class_name(MPI_T_ERR_MEMORY), Some("MPI_T_ERR_MEMORY"));
    assert_eq!(error_class_name(MPI_ERR_LASTCODE), Some("MPI_ERR_LASTCODE"));
    assert_eq!(error_class_name(500), None);
    assert_eq!(name_in_group("combiners", 110), Some("MPI_COMBINER_STRUCT"));
    assert_eq!(MPI_COMM_WORLD.name(), Some("MPI_COMM_WORLD"));
    assert_eq!(MPI_Op(0x21).name(), Some("MPI_SUM"));
    assert_eq!(MPI_Op(0x101).name(), None);
    assert_eq!(MPI_C_COMPLEX.name(), Some("MPI_C_FLOAT_COMPLEX"));
    assert_eq!(constant("MPI_ANY_TAG").unwrap().value, -2);
    assert_eq!(constant("MPI_ANYTHING"), None);
}

#[test]
fn constants_of_rust_are_those_of_the_list() {
    assert_eq!((MPI_ANY_SOURCE, MPI_PROC_NULL, MPI_UNDEFINED), (-1, -3, -32766));
    assert_eq!((MPI_BOTTOM as usize, MPI_IN_PLACE as usize), (0, 1));
    assert!(MPI_STATUS_IGNORE.is_null());
    assert_eq!(MPI_WEIGHTS_EMPTY as usize, 11);
    assert_eq!((MPI_COMM_NULL_COPY_FN, MPI_COMM_DUP_FN), (0, 1));
    assert_eq!(MPI_DISPLACEMENT_CURRENT, -1);
    assert_eq!(size_of::<MPI_Status>(), 32);
    assert_eq!(size_of::<MPI_Comm_errhandler_function>(), size_of::<MPI_Comm>());
}

#[test]
fn datatypes_are_found_by_handle() {
    for datatype in DATATYPES {
        assert_eq!(NamedDatatype::of(datatype.handle), Some(datatype));
        assert_eq!(datatype.handle.name(), Some(datatype.name));
    }
    for number in [0, 0x200, 0x204, 0x206, 0x2ec, 0x300, usize::MAX] {
        assert_eq!(NamedDatatype::of(MPI_Datatype(number)), None, "{number:#x}");
    }
}

/// From 0x240 on, three bits of a datatype's handle are its size's exponent.
#[test]
fn sizes_are_those_in_the_handles() {
    for datatype in DATATYPES.iter().filter(|datatype| datatype.handle.0 >= 0x240) {
        assert_eq!(datatype.size, 1 << (datatype.handle.0 >> 3 & 7), "{}", datatype.name);
    }
}

#[test]
fn layouts_of_pairs() {
    let layout = |handle| {
        let datatype = NamedDatatype::of(handle).unwrap();
        let Kind::Pair { index_offset, .. } = datatype.kind else { panic!("{datatype:?}") };
        (datatype.size, datatype.extent, index_offset)
    };
    assert_eq!(layout(MPI_2INT), (8, 8, 4));
    assert_eq!(layout(MPI_FLOAT_INT), (8, 8, 4));
    assert_eq!(layout(MPI_SHORT_INT), (6, 8, 4));
    assert_eq!(layout(MPI_DOUBLE_INT), (12, 16, 8));
    assert_eq!(layout(MPI_LONG_DOUBLE_INT), (20, 32, 16));
    assert_eq!(layout(MPI_2DOUBLE_PRECISION), (16, 16, 8));
}

/// Each stub calls the hook with its own name.
#[test]
fn what_is_not_there_says_its_name() {
    static CALLED: Mutex<Vec<&str>> = Mutex::new(Vec::new());
    fn note(name: &'static str) -> c_int {
        CALLED.lock().unwrap().push(name);
        MPI_ERR_UNSUPPORTED_OPERATION
    }
    MISSING.set(note).unwrap();
    for (name, function) in NOT_THERE {
        // SAFETY: it looks at no arguments.
        let class = unsafe { function() };
        assert_eq!(class, MPI_ERR_UNSUPPORTED_OPERATION, "{name}");
    }
    let names: Vec<_> = FUNCTIONS.iter().map(|function| function.name).collect();
    assert_eq!(*CALLED.lock().unwrap(), names);
    assert!(NOT_THERE.iter().map(|(name, _)| name).eq(&names));
}

#[test]
fn coverage_names_what_is_missing() {
    let none = coverage_table(&|_| false);
    assert!(none.ends_with("| **all** | 503 | 161 | 0 | 0 |  |\n"), "{none}");
    // What is missing in both forms is named once.
    assert!(none.contains("`MPI_Send`") && !none.contains("`MPI_Send_c`"));
    let all = coverage_table(&|_| true);
    assert!(all.ends_with("| **all** | 503 | 161 | 503 | 161 |  |\n") && !all.contains('`'));
    let most = coverage_table(&|name| !matches!(name, "MPI_Send_c" | "MPI_Info_set"));
    assert!(most.contains("| Hints | 11 | 0 | 10 | 0 | `MPI_Info_set` |\n"), "{most}");
    assert!(most.contains(" | `MPI_Send_c` |\n"), "{most}");
    assert_eq!(all.lines().count(), 2 + CHAPTERS.len() + 1);
}

#[test]
fn blanks_in_a_prefix_are_escaped_for_pkg_config() {
    let text = pkg_config(Path::new("/a b"));
    assert!(text.starts_with("prefix=/a\\ b\n"), "{text}");
    assert!(text.contains("\nLibs: -L${libdir} -Wl,-rpath,${libdir} -lmpi_abi\n"), "{text}");
}
