//! The bindings for Rust: types, constants, and the type of each function.

use std::fmt::Write;

use crate::Error;
use crate::declaration::Type;
use crate::table::Table;

/// The module `types`.
pub(crate) fn types(table: &Table) -> Result<String, Error> {
    let mut text = String::new();
    for (name, ctype) in &table.integers {
        let rust = match ctype.as_str() {
            "intptr_t" => "isize",
            "int64_t" => "i64",
            _ => return Err(Error::entry(name, format!("is a `{ctype}`, unknown in Rust"))),
        };
        let _ = writeln!(text, "/// `{ctype}` in C.\npub type {name} = {rust};");
    }
    for handle in &table.handles {
        let name = &handle.name;
        let _ = writeln!(text, "handle! {{ {name} {:?} }}", format!("{}.", handle.about));
    }
    for structure in &table.structures {
        let _ = writeln!(
            text,
            "/// {}.\n#[repr(C)]\n#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]\n\
             pub struct {} {{",
            structure.about, structure.name
        );
        for field in &structure.fields {
            let ctype = Type::parse(&field.ctype)
                .ok_or_else(|| Error::entry(&field.name, "has no type"))?
                .rust(&field.name, table)?;
            let ctype = match field.length {
                Some(length) => format!("[{ctype}; {length}]"),
                None => ctype,
            };
            let _ = writeln!(text, "    /// {}.\n    pub {}: {ctype},", field.about, field.name);
        }
        text.push_str("}\n");
    }
    for enumeration in &table.enumerations {
        let _ = writeln!(text, "/// {}.\npub type {} = c_int;", enumeration.about, enumeration.key);
    }
    for callback in &table.callbacks {
        let _ = writeln!(
            text,
            "/// `{}`\npub type {} = Option<{}>;",
            callback.prototype.declare(&callback.name),
            callback.name,
            callback.prototype.rust(&callback.name, table)?
        );
    }
    for (synonym, name) in &table.synonyms {
        let _ = writeln!(text, "/// A second name.\npub type {synonym} = {name};");
    }
    Ok(text)
}

/// The module `constants`.
pub(crate) fn constants(table: &Table) -> Result<String, Error> {
    let mut text = String::new();
    let mut constant = |about: &str, name: &str, rust: &str, value: &str| {
        let since = match table.deprecated(name) {
            Some(since) => format!(" Out of date since MPI {since}."),
            None => String::new(),
        };
        let _ = writeln!(text, "/// {about}.{since}\npub const {name}: {rust} = {value};");
    };
    for (name, value) in &table.versions {
        constant("Of this interface", name, "c_int", &value.to_string());
    }
    for predefined in &table.predefined {
        let ctype = &predefined.ctype;
        let about = table.handles.iter().find(|handle| handle.name == *ctype);
        let about = about.map_or(ctype, |handle| &handle.about);
        for (name, value) in &predefined.values {
            constant(about, name, ctype, &format!("{ctype}({value:#x})"));
        }
    }
    for datatype in &table.datatypes {
        let value = format!("MPI_Datatype({:#x})", datatype.value);
        constant("A datatype", &datatype.name, "MPI_Datatype", &value);
    }
    for (synonym, name) in &table.datatype_synonyms {
        constant(&format!("A second name of [`{name}`]"), synonym, "MPI_Datatype", name);
    }
    for (name, ctype, value) in &table.addresses {
        let rust = Type::parse(ctype)
            .ok_or_else(|| Error::entry(name, "has no type"))?
            .rust(name, table)?;
        let about = format!("`{ctype}` in C, an address that stands for something else");
        constant(&about, name, &rust, &format!("ptr::without_provenance_mut({value})"));
    }
    for (name, ctype, value) in &table.sentinels {
        let about = format!("In the place of a [`{ctype}`], whose address it would be");
        constant(&about, name, "usize", &value.to_string());
    }
    for number in &table.typed_macros {
        constant(&number.about, &number.name, &number.ctype, &number.value.to_string());
    }
    for group in table.macros.iter().chain(&table.enumerators) {
        for (name, value) in &group.values {
            constant(&group.about, name, "c_int", &value.to_string());
        }
    }
    for enumeration in &table.enumerations {
        for (name, value) in &enumeration.values {
            constant(&enumeration.about, name, &enumeration.key, &value.to_string());
        }
    }
    Ok(text)
}

/// The module `signatures`.
pub(crate) fn signatures(table: &Table) -> Result<String, Error> {
    let mut text = String::new();
    for function in table.functions() {
        let _ = writeln!(
            text,
            "/// `{}`\npub type {} = {};",
            function.prototype.declare(&function.name),
            function.name,
            function.prototype.rust(&function.name, table)?
        );
    }
    Ok(text)
}
