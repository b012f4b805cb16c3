//! The constants as data, and their names.

/// A constant of the interface.
#[derive(Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: &'static str,
    /// The key of its group in the table: `handles`, `error-classes`, `file-modes`.
    pub group: &'static str,
    /// Its type in C: `int`, `MPI_Comm`, `void *`, `MPI_Copy_function *`.
    pub c_type: &'static str,
    /// Its value; the address, where it is one.
    pub value: i64,
    /// Since which version of MPI it has been out of date.
    pub deprecated: Option<&'static str>,
}

mod list {
    #![allow(missing_docs)]
    use super::Constant;
    include!(concat!(env!("OUT_DIR"), "/constant_list.rs"));
}

/// All constants.
pub static CONSTANTS: &[Constant] = list::CONSTANTS;

/// The constant of that name.
pub fn constant(name: &str) -> Option<&'static Constant> {
    CONSTANTS.iter().find(|constant| constant.name == name)
}

/// The first name of a type's value in C. Numbers of type `int` mean many things; their names are
/// [`name_in_group`]'s to find.
pub fn constant_name(c_type: &str, value: i64) -> Option<&'static str> {
    let named = CONSTANTS.iter().find(|known| known.value == value && known.c_type == c_type);
    named.map(|constant| constant.name)
}

/// The name of a value in a group, such as 110 in `combiners`.
pub fn name_in_group(group: &str, value: i64) -> Option<&'static str> {
    let named = CONSTANTS.iter().find(|known| known.value == value && known.group == group);
    named.map(|constant| constant.name)
}

/// The name of an error class, of the tools' too: 1 is `MPI_ERR_BUFFER`.
pub fn error_class_name(class: i32) -> Option<&'static str> {
    let class = class.into();
    name_in_group("error-classes", class)
        .or_else(|| name_in_group("error-classes-of-tools", class))
        .or_else(|| name_in_group("last-error", class))
}
