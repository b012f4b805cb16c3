//! Prototypes as the table has them, `int (const void *buf, int ranges[][3], ...)`: taken apart,
//! and written in Rust.

use crate::Error;
use crate::table::Table;

/// A function's result and parameters.
pub(crate) struct Prototype {
    /// The whole, as it is in the table.
    pub text: String,
    /// What it returns.
    pub result: Type,
    /// What it takes.
    pub parameters: Vec<Parameter>,
    /// Whether more arguments may follow.
    pub variadic: bool,
}

/// A parameter of a function.
pub(crate) struct Parameter {
    /// What it is called.
    pub name: String,
    /// Of which type it is.
    pub ctype: Type,
}

/// A type: pointers to something that has a name.
pub(crate) struct Type {
    /// The name, such as `int` or `MPI_Comm`.
    pub base: String,
    /// Whether the base is `const`.
    pub constant: bool,
    /// How many pointers lead to the base; an array of open length is one.
    pub pointers: usize,
    /// Of the innermost pointer: how many elements of the base are behind it, in `int a[][3]` 3.
    pub row: Option<usize>,
}

impl Prototype {
    /// Takes a prototype apart; `entry` is whose it is.
    pub(crate) fn parse(entry: &str, text: &str) -> Result<Prototype, Error> {
        let wrong = || Error::entry(entry, format!("has no prototype, but `{text}`"));
        let (result, rest) = text.split_once(" (").ok_or_else(wrong)?;
        let inside = rest.strip_suffix(')').ok_or_else(wrong)?;
        let mut prototype = Prototype {
            text: text.to_owned(),
            result: Type::parse(result).ok_or_else(wrong)?,
            parameters: Vec::new(),
            variadic: false,
        };
        for parameter in inside.split(", ").filter(|&inside| inside != "void") {
            if parameter == "..." {
                prototype.variadic = true;
            } else {
                prototype.parameters.push(Parameter::parse(parameter).ok_or_else(wrong)?);
            }
        }
        Ok(prototype)
    }

    /// The declaration of a function or function type of that name in C, without a semicolon.
    pub(crate) fn declare(&self, name: &str) -> String {
        let (result, rest) = self.text.split_once(" (").unwrap_or(("", &self.text));
        format!("{result} {name}({rest}")
    }

    /// The type of a pointer to such a function in Rust.
    pub(crate) fn rust(&self, entry: &str, table: &Table) -> Result<String, Error> {
        let mut parameters = Vec::new();
        for parameter in &self.parameters {
            parameters.push(format!("{}: {}", parameter.name, parameter.ctype.rust(entry, table)?));
        }
        if self.variadic {
            parameters.push("...".to_owned());
        }
        let result = match self.result.rust(entry, table)?.as_str() {
            "c_void" => String::new(),
            result => format!(" -> {result}"),
        };
        Ok(format!("unsafe extern \"C-unwind\" fn({}){result}", parameters.join(", ")))
    }
}

impl Parameter {
    fn parse(text: &str) -> Option<Parameter> {
        let (declarator, brackets) = match text.find('[') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let at = declarator.rfind([' ', '*'])? + 1;
        let (ctype, name) = declarator.split_at(at);
        let mut ctype = Type::parse(ctype)?;
        if let Some(lengths) = brackets.strip_prefix('[') {
            ctype.pointers += 1;
            // The first brackets are a pointer; others say how long what it points to is.
            ctype.row = match lengths.split_once("][") {
                Some((_, row)) => Some(row.strip_suffix(']')?.parse().ok()?),
                None => None,
            };
        }
        let known = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (known && !name.is_empty()).then(|| Parameter { name: name.to_owned(), ctype })
    }
}

impl Type {
    /// Reads a type such as `const char **`.
    pub(crate) fn parse(text: &str) -> Option<Type> {
        let text = text.trim();
        let base = text.trim_end_matches(['*', ' ']);
        let pointers = text[base.len()..].matches('*').count();
        let (constant, base) = match base.strip_prefix("const ") {
            Some(base) => (true, base),
            None => (false, base),
        };
        let known = base.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (known && !base.is_empty()).then(|| Type {
            base: base.to_owned(),
            constant,
            pointers,
            row: None,
        })
    }

    /// The type in Rust.
    pub(crate) fn rust(&self, entry: &str, table: &Table) -> Result<String, Error> {
        let base = match self.base.as_str() {
            "void" => "c_void",
            "char" => "c_char",
            "int" => "c_int",
            "double" => "c_double",
            // A callback's type is a pointer in Rust already.
            name if table.is_callback(name) && self.pointers <= 1 => return Ok(name.to_owned()),
            name if table.is_type(name) => name,
            name => return Err(Error::entry(entry, format!("has the unknown type `{name}`"))),
        };
        let target = match self.row {
            Some(row) => format!("[{base}; {row}]"),
            None => base.to_owned(),
        };
        let innermost = match (self.pointers, self.constant) {
            // A value that cannot be changed is a value.
            (0, _) => return Ok(target),
            (_, true) => "*const ",
            (_, false) => "*mut ",
        };
        Ok(format!("{}{innermost}{target}", "*mut ".repeat(self.pointers - 1)))
    }
}
