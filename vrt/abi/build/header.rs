//! The header, `mpi.h`: C from C89 with `stdint.h` on, and C++.

use std::fmt::Write;

use crate::table::{Datatype, Element, Group, Table};

/// Columns of a line.
const WIDTH: usize = 100;
/// Columns of a macro's or enumerator's name.
const NAME: usize = 34;

/// The whole header.
pub(crate) fn text(table: &Table) -> String {
    let mut text = String::from(BEGIN);
    heading(&mut text, "Versions: of the standard, and of its binary interface");
    for (name, value) in &table.versions {
        define(&mut text, table, name, &value.to_string());
    }
    types(&mut text, table);
    handles(&mut text, table);
    datatypes(&mut text, table);
    addresses(&mut text, table);
    numbers(&mut text, table);
    for prefix in ["", "P"] {
        let what = match prefix {
            "" => "Functions",
            _ => "The same by the names that nobody replaces: a tool's own functions call these",
        };
        heading(&mut text, what);
        for chapter in &table.chapters {
            comment(&mut text, &chapter.about);
            for function in &chapter.functions {
                let declaration = function.prototype.declare(&format!("{prefix}{}", function.name));
                let mut declaration = wrapped(&declaration);
                declaration.push_str(&note(table, &function.name));
                let _ = writeln!(text, "{declaration}");
            }
        }
    }
    heading(&mut text, "For Fortran");
    text.push_str(FORTRAN);
    text.push_str(END);
    text
}

const BEGIN: &str = "\
/* mpi.h, made by vrt-abi: the binary interface of MPI 5.0.
 *
 * A program that is compiled with it runs under vrtrun, each rank in a process or many in one, and
 * with every other library that has this interface.
 */
#ifndef MPI_H_ABI
#define MPI_H_ABI

#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif
";

/// What the binary interface leaves to each header: the numbers by which Fortran knows handles.
const FORTRAN: &str = "
typedef int MPI_Fint;

#define MPI_Comm_c2f(handle) MPI_Comm_toint(handle)
#define MPI_Comm_f2c(number) MPI_Comm_fromint(number)
#define MPI_Errhandler_c2f(handle) MPI_Errhandler_toint(handle)
#define MPI_Errhandler_f2c(number) MPI_Errhandler_fromint(number)
#define MPI_File_c2f(handle) MPI_File_toint(handle)
#define MPI_File_f2c(number) MPI_File_fromint(number)
#define MPI_Group_c2f(handle) MPI_Group_toint(handle)
#define MPI_Group_f2c(number) MPI_Group_fromint(number)
#define MPI_Info_c2f(handle) MPI_Info_toint(handle)
#define MPI_Info_f2c(number) MPI_Info_fromint(number)
#define MPI_Message_c2f(handle) MPI_Message_toint(handle)
#define MPI_Message_f2c(number) MPI_Message_fromint(number)
#define MPI_Op_c2f(handle) MPI_Op_toint(handle)
#define MPI_Op_f2c(number) MPI_Op_fromint(number)
#define MPI_Request_c2f(handle) MPI_Request_toint(handle)
#define MPI_Request_f2c(number) MPI_Request_fromint(number)
#define MPI_Session_c2f(handle) MPI_Session_toint(handle)
#define MPI_Session_f2c(number) MPI_Session_fromint(number)
#define MPI_Type_c2f(handle) MPI_Type_toint(handle)
#define MPI_Type_f2c(number) MPI_Type_fromint(number)
#define MPI_Win_c2f(handle) MPI_Win_toint(handle)
#define MPI_Win_f2c(number) MPI_Win_fromint(number)

/* A status has the same eight numbers in both languages. */
#define MPI_F_STATUS_IGNORE ((MPI_Fint *)0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *)0)
#define MPI_Status_c2f(status, numbers) (*(MPI_Status *)(numbers) = *(status), MPI_SUCCESS)
#define MPI_Status_f2c(numbers, status) (*(status) = *(const MPI_Status *)(numbers), MPI_SUCCESS)
";

const END: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

fn types(text: &mut String, table: &Table) {
    heading(text, "Types");
    comment(text, "Addresses and counts");
    for (name, ctype) in &table.integers {
        let _ = writeln!(text, "typedef {ctype} {name};");
    }
    comment(text, "Handles: addresses of nothing");
    for handle in &table.handles {
        let _ = writeln!(text, "typedef struct {} *{};", handle.tag, handle.name);
    }
    for structure in &table.structures {
        comment(text, &structure.about);
        text.push_str("typedef struct {\n");
        for field in &structure.fields {
            let length = field.length.map(|length| format!("[{length}]")).unwrap_or_default();
            let line = format!("{} {}{length};", field.ctype, field.name);
            let _ = writeln!(text, "    {line:<25} /* {} */", field.about);
        }
        let _ = writeln!(text, "}} {};", structure.name);
    }
    for enumeration in &table.enumerations {
        comment(text, &enumeration.about);
        let _ = writeln!(text, "typedef enum {} {{", enumeration.key);
        enumerators(text, table, enumeration);
        let _ = writeln!(text, "}} {};", enumeration.key);
    }
    comment(text, "Functions that a program hands over");
    for callback in &table.callbacks {
        let declaration = callback.prototype.declare(&format!("({})", callback.name));
        let declaration = wrapped(&format!("typedef {declaration}"));
        let _ = writeln!(text, "{declaration}{}", note(table, &callback.name));
    }
    for (synonym, name) in &table.synonyms {
        let _ = writeln!(text, "typedef {name} {synonym};");
    }
}

fn handles(text: &mut String, table: &Table) {
    heading(text, "Handles that exist from the beginning");
    for predefined in &table.predefined {
        let about = table.handles.iter().find(|handle| handle.name == predefined.ctype);
        comment(text, about.map_or(&predefined.ctype, |handle| &handle.about));
        for (name, value) in &predefined.values {
            define(text, table, name, &format!("(({})0x{value:03x})", predefined.ctype));
        }
    }
}

fn datatypes(text: &mut String, table: &Table) {
    heading(text, "Datatypes that exist from the beginning");
    text.push('\n');
    for datatype in &table.datatypes {
        let value = format!("((MPI_Datatype)0x{:03x})", datatype.value);
        let _ = writeln!(text, "#define {:<NAME$} {value} /* {} */", datatype.name, what(datatype));
    }
    comment(text, "Second names");
    for (synonym, name) in &table.datatype_synonyms {
        define(text, table, synonym, name);
    }
}

/// What the elements of a datatype are.
fn what(datatype: &Datatype) -> String {
    match &datatype.element {
        Element::Plain { native: Some((_, native)), .. } => native.clone(),
        Element::Plain { kind, .. } => format!("{kind}, untyped"),
        Element::Pair(value, index) => format!("{value} and {index}"),
    }
}

fn addresses(text: &mut String, table: &Table) {
    heading(text, "Addresses and functions that stand for something else");
    text.push('\n');
    for (name, ctype, value) in &table.addresses {
        define(text, table, name, &format!("(({ctype}){value})"));
    }
    text.push('\n');
    for (name, ctype, value) in &table.sentinels {
        define(text, table, name, &format!("(({ctype} *){value})"));
    }
}

fn numbers(text: &mut String, table: &Table) {
    heading(text, "Numbers");
    for group in &table.macros {
        comment(text, &group.about);
        for (name, value) in &group.values {
            define(text, table, name, &value.to_string());
        }
    }
    for number in &table.typed_macros {
        comment(text, &number.about);
        define(text, table, &number.name, &format!("(({}){})", number.ctype, number.value));
    }
    for group in &table.enumerators {
        comment(text, &group.about);
        text.push_str("enum {\n");
        enumerators(text, table, group);
        text.push_str("};\n");
    }
}

fn enumerators(text: &mut String, table: &Table, group: &Group) {
    for (at, (name, value)) in group.values.iter().enumerate() {
        // Before C99 and C++11 no comma may follow the last one.
        let comma = if at + 1 < group.values.len() { "," } else { "" };
        let _ = writeln!(text, "    {name:<NAME$} = {value}{comma}{}", note(table, name));
    }
}

fn define(text: &mut String, table: &Table, name: &str, value: &str) {
    let _ = writeln!(text, "#define {name:<NAME$} {value}{}", note(table, name));
}

/// A comment behind what is out of date.
fn note(table: &Table, name: &str) -> String {
    table
        .deprecated(name)
        .map(|since| format!(" /* out of date since MPI {since} */"))
        .unwrap_or_default()
}

fn heading(text: &mut String, title: &str) {
    let line = "-".repeat(WIDTH - 6);
    let _ = writeln!(text, "\n/* {line} */\n/* {title:<94} */\n/* {line} */");
}

fn comment(text: &mut String, about: &str) {
    let _ = writeln!(text, "\n/* {about}. */");
}

/// The declaration with its semicolon, in as many lines as it needs.
fn wrapped(declaration: &str) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in format!("{declaration};").split_inclusive(", ") {
        if line.len() + word.trim_end().len() > WIDTH {
            let _ = writeln!(lines, "{}", line.trim_end());
            line = "    ".to_owned();
        }
        line.push_str(word);
    }
    lines + &line
}
