//! The lists: functions, constants and datatypes as data.

use std::fmt::Write;

use crate::Error;
use crate::table::{Datatype, Element, Group, Table};

/// `FUNCTIONS`, and the chapters that they belong to.
pub(crate) fn functions(table: &Table) -> String {
    let mut text = String::from("pub(super) static CHAPTERS: &[Chapter] = &[\n");
    for chapter in &table.chapters {
        let _ =
            writeln!(text, "    Chapter {{ key: {:?}, title: {:?} }},", chapter.key, chapter.about);
    }
    text.push_str("];\n\npub(super) static FUNCTIONS: &[Function] = &[\n");
    for (at, chapter) in table.chapters.iter().enumerate() {
        for function in &chapter.functions {
            let _ = writeln!(
                text,
                "    Function {{ name: {:?}, chapter: &CHAPTERS[{at}], prototype: {:?}, \
                 is_large: {}, deprecated: {:?} }},",
                function.name,
                function.prototype.declare(&function.name),
                function.is_large(),
                table.deprecated(&function.name)
            );
        }
    }
    text.push_str("];\n");
    text
}

/// `NOT_THERE`.
pub(crate) fn not_there(table: &Table) -> String {
    let mut text = String::from("not_there! {\n");
    for function in table.functions() {
        let _ = writeln!(text, "    {}", function.name);
    }
    text.push_str("}\n");
    text
}

/// `CONSTANTS`.
pub(crate) fn constants(table: &Table) -> String {
    let mut text = String::from("pub(super) static CONSTANTS: &[Constant] = &[\n");
    let mut constant = |name: &str, group: &str, ctype: &str, value: i64| {
        let _ = writeln!(
            text,
            "    Constant {{ name: {name:?}, group: {group:?}, c_type: {ctype:?}, \
             value: {value}, deprecated: {:?} }},",
            table.deprecated(name)
        );
    };
    for (name, value) in &table.versions {
        constant(name, "versions", "int", *value);
    }
    for predefined in &table.predefined {
        for (name, value) in &predefined.values {
            constant(name, "handles", &predefined.ctype, *value);
        }
    }
    for datatype in &table.datatypes {
        constant(&datatype.name, "datatypes", "MPI_Datatype", datatype.value);
    }
    for (synonym, name) in &table.datatype_synonyms {
        if let Some(datatype) = table.datatypes.iter().find(|datatype| datatype.name == *name) {
            constant(synonym, "datatype-synonyms", "MPI_Datatype", datatype.value);
        }
    }
    for (name, ctype, value) in &table.addresses {
        constant(name, "addresses", ctype, *value);
    }
    for (name, ctype, value) in &table.sentinels {
        constant(name, "callbacks", &format!("{ctype} *"), *value);
    }
    for number in &table.typed_macros {
        constant(&number.name, "typed-macros", &number.ctype, number.value);
    }
    let mut groups = |groups: &[Group], ctype: fn(&Group) -> &str| {
        for group in groups {
            for (name, value) in &group.values {
                constant(name, &group.key, ctype(group), *value);
            }
        }
    };
    groups(&table.macros, |_| "int");
    groups(&table.enumerators, |_| "int");
    groups(&table.enumerations, |enumeration| &enumeration.key);
    text.push_str("];\n");
    text
}

/// `DATATYPES`, and where a handle's is in it.
pub(crate) fn datatypes(table: &Table) -> Result<String, Error> {
    let mut text = String::from("pub(super) static DATATYPES: &[NamedDatatype] = &[\n");
    for datatype in &table.datatypes {
        let (element, kind) = element(table, datatype)?;
        let native = match &datatype.element {
            Element::Plain { native: Some((language, native)), .. } => {
                let language = match language.as_str() {
                    "c" => "C",
                    "cxx" => "Cxx",
                    _ => "Fortran",
                };
                format!("Some(Native::{language}({native:?}))")
            }
            _ => "None".to_owned(),
        };
        let _ = writeln!(
            text,
            "    NamedDatatype {{ handle: MPI_Datatype({:#x}), name: {:?}, kind: {kind}, \
             size: {}, extent: {}, alignment: {}, native: {native} }},",
            datatype.value, datatype.name, element.size, element.extent, element.alignment
        );
    }
    text.push_str("];\n\n");
    let end = table.datatypes.iter().map(|datatype| datatype.value).max().unwrap_or_default() + 1;
    let first = table.datatypes.iter().map(|datatype| datatype.value).min().unwrap_or_default();
    let places = (first..end).map(|value| {
        let at = table.datatypes.iter().position(|datatype| datatype.value == value);
        at.map_or("NONE".to_owned(), |at| at.to_string())
    });
    let places = places.collect::<Vec<_>>().join(", ");
    let _ = writeln!(
        text,
        "const FIRST: usize = {first:#x};\nstatic PLACES: [u8; {}] = [{places}];",
        end - first
    );
    Ok(text)
}

/// How an element lies in memory.
struct Layout {
    size: usize,
    extent: usize,
    alignment: usize,
}

/// The layout of a datatype's element, and its kind in Rust.
fn element(table: &Table, datatype: &Datatype) -> Result<(Layout, String), Error> {
    let wrong = |what: String| Error::entry(&datatype.name, what);
    match &datatype.element {
        Element::Plain { kind, size, .. } => {
            let (rust, parts) = match kind.as_str() {
                "signed" => ("Signed", 1),
                "unsigned" => ("Unsigned", 1),
                "float" => ("Float", 1),
                "long-double" => ("LongDouble", 1),
                "complex" => ("Complex", 2),
                "long-double-complex" => ("LongDoubleComplex", 2),
                "char" => ("Char", 1),
                "bool" => ("Bool", 1),
                "logical" => ("Logical", 1),
                "byte" => ("Byte", 1),
                "packed" => ("Packed", 1),
                _ => return Err(wrong(format!("is of the unknown kind `{kind}`"))),
            };
            // All of these are aligned to their size on x86-64, complex ones to their halves'.
            let layout = Layout { size: *size, extent: *size, alignment: size / parts };
            Ok((layout, format!("Kind::{rust}")))
        }
        Element::Pair(value, index) => {
            let half = |name: &str| {
                let half = table.datatypes.iter().find(|datatype| datatype.name == name);
                let half = half.filter(|half| matches!(half.element, Element::Plain { .. }));
                half.ok_or_else(|| wrong(format!("is a pair with the unknown `{name}`")))
            };
            let (value, index) = (half(value)?, half(index)?);
            let (first, _) = element(table, value)?;
            let (second, _) = element(table, index)?;
            let index_offset = first.size.next_multiple_of(second.alignment);
            let alignment = first.alignment.max(second.alignment);
            let layout = Layout {
                size: first.size + second.size,
                extent: (index_offset + second.size).next_multiple_of(alignment),
                alignment,
            };
            let kind = format!(
                "Kind::Pair {{ value: MPI_Datatype({:#x}), index: MPI_Datatype({:#x}), \
                 index_offset: {index_offset} }}",
                value.value, index.value
            );
            Ok((layout, kind))
        }
    }
}
