//! The table, read from `abi.toml` and checked as far as C and Rust would not do it.

use std::collections::HashSet;

use toml_edit::{Document, Item, TableLike};

use crate::Error;
use crate::declaration::Prototype;

/// Entries of the table, each with its name.
type Named<T> = Vec<(String, T)>;

/// All of `abi.toml`, in its order.
pub(crate) struct Table {
    /// Macros that say which version this is.
    pub versions: Named<i64>,
    /// Names of integers, and what they are in C.
    pub integers: Named<String>,
    /// Types of handles.
    pub handles: Vec<HandleType>,
    /// Structures.
    pub structures: Vec<Structure>,
    /// Types of functions that programs hand over.
    pub callbacks: Vec<Callback>,
    /// Second names of types, and what they are names of.
    pub synonyms: Named<String>,
    /// Handles that exist from the beginning.
    pub predefined: Vec<Predefined>,
    /// Datatypes that exist from the beginning.
    pub datatypes: Vec<Datatype>,
    /// Second names of those, and what they are names of.
    pub datatype_synonyms: Named<String>,
    /// Addresses that stand for something: name, type in C, value.
    pub addresses: Vec<(String, String, i64)>,
    /// Functions that stand for something: name, type in C, value.
    pub sentinels: Vec<(String, String, i64)>,
    /// Macros of type `int`.
    pub macros: Vec<Group>,
    /// Macros of other types.
    pub typed_macros: Vec<TypedMacro>,
    /// Enumerators.
    pub enumerators: Vec<Group>,
    /// Enumerations that are types.
    pub enumerations: Vec<Group>,
    /// What is out of date, and since which version.
    pub deprecated: Named<String>,
    /// Functions.
    pub chapters: Vec<Chapter>,
    types: HashSet<String>,
}

/// The type of a handle: a pointer to a structure that nobody defines.
pub(crate) struct HandleType {
    /// The handle's type.
    pub name: String,
    /// The structure's tag.
    pub tag: String,
    /// What the handle is of.
    pub about: String,
}

/// A structure with public fields.
pub(crate) struct Structure {
    /// Its name.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A field of a structure.
pub(crate) struct Field {
    /// Its name.
    pub name: String,
    /// Type of it, or of its elements.
    pub ctype: String,
    /// How many elements it has, if it is an array.
    pub length: Option<usize>,
    /// What it is.
    pub about: String,
}

/// The type of a function that a program hands over.
pub(crate) struct Callback {
    /// Its name.
    pub name: String,
    /// What such a function takes and returns.
    pub prototype: Prototype,
}

/// The handles of a type that exist from the beginning.
pub(crate) struct Predefined {
    /// Their type.
    pub ctype: String,
    /// Names and values.
    pub values: Named<i64>,
}

/// A datatype that exists from the beginning.
pub(crate) struct Datatype {
    /// Its name.
    pub name: String,
    /// The handle's value.
    pub value: i64,
    /// What its elements are.
    pub element: Element,
}

/// What the elements of a datatype are.
pub(crate) enum Element {
    /// One thing.
    Plain {
        /// Which kind of thing.
        kind: String,
        /// Bytes of it.
        size: usize,
        /// Language, `c`, `cxx` or `fortran`, and type.
        native: Option<(String, String)>,
    },
    /// Names of the datatypes of a value and of its index.
    Pair(String, String),
}

/// Numbers that belong together.
pub(crate) struct Group {
    /// The group's key in the table; the name of an enumeration.
    pub key: String,
    /// What they are.
    pub about: String,
    /// Names and values.
    pub values: Named<i64>,
}

/// A macro that is a number of a type.
pub(crate) struct TypedMacro {
    /// Its name.
    pub name: String,
    /// Its type in C.
    pub ctype: String,
    /// Its value.
    pub value: i64,
    /// What it is.
    pub about: String,
}

/// The functions of a chapter.
pub(crate) struct Chapter {
    /// The chapter's key in the table.
    pub key: String,
    /// Its title.
    pub about: String,
    /// Its functions.
    pub functions: Vec<Function>,
}

/// A function.
pub(crate) struct Function {
    /// Its name.
    pub name: String,
    /// What it takes and returns.
    pub prototype: Prototype,
}

impl Function {
    /// Whether it is a form for counts of 64 bits.
    pub(crate) fn is_large(&self) -> bool {
        self.name.ends_with("_c")
    }
}

impl Table {
    /// Reads the table.
    pub(crate) fn read(text: &str) -> Result<Table, Error> {
        let document = Document::parse(text)?;
        let root = At { name: "abi.toml".to_owned(), table: document.as_table() };
        let types = root.table("types")?;
        let mut table = Table {
            versions: root.table("versions")?.integers()?,
            integers: types.table("integers")?.texts()?,
            handles: types.table("handles")?.handle_types()?,
            structures: types.table("structures")?.each(At::structure)?,
            callbacks: Vec::new(),
            synonyms: types.table("synonyms")?.texts()?,
            predefined: root.table("handles")?.each(At::predefined)?,
            datatypes: root.table("datatypes")?.each(At::datatype)?,
            datatype_synonyms: root.table("datatype-synonyms")?.texts()?,
            addresses: root.table("addresses")?.sentinels()?,
            sentinels: root.table("callbacks")?.sentinels()?,
            macros: root.table("macros")?.each(At::group)?,
            typed_macros: root.table("typed-macros")?.typed_macros()?,
            enumerators: root.table("enumerators")?.each(At::group)?,
            enumerations: root.table("enumerations")?.each(At::group)?,
            deprecated: root.table("deprecated")?.texts()?,
            chapters: root.table("functions")?.each(At::chapter)?,
            types: HashSet::new(),
        };
        for (name, text) in types.table("callbacks")?.texts()? {
            let prototype = Prototype::parse(&name, &text)?;
            table.callbacks.push(Callback { name, prototype });
        }
        table.types = table.type_names().map(str::to_owned).collect();
        table.check()?;
        Ok(table)
    }

    /// Whether this is a type of the table.
    pub(crate) fn is_type(&self, name: &str) -> bool {
        self.types.contains(name)
    }

    /// Whether this is the type of a function that programs hand over.
    pub(crate) fn is_callback(&self, name: &str) -> bool {
        self.callbacks.iter().any(|callback| callback.name == name)
            || self.synonyms.iter().any(|(synonym, _)| synonym == name)
    }

    /// Since when this has been out of date.
    pub(crate) fn deprecated(&self, name: &str) -> Option<&str> {
        self.deprecated.iter().find(|(known, _)| known == name).map(|(_, since)| since.as_str())
    }

    /// All functions, in order.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.chapters.iter().flat_map(|chapter| &chapter.functions)
    }

    fn type_names(&self) -> impl Iterator<Item = &str> {
        let integers = self.integers.iter().chain(&self.synonyms).map(|(name, _)| name.as_str());
        integers
            .chain(self.handles.iter().map(|handle| handle.name.as_str()))
            .chain(self.structures.iter().map(|structure| structure.name.as_str()))
            .chain(self.callbacks.iter().map(|callback| callback.name.as_str()))
            .chain(self.enumerations.iter().map(|enumeration| enumeration.key.as_str()))
    }

    /// Every constant's name and value.
    fn values(&self) -> impl Iterator<Item = (&str, i64)> {
        let named = self.versions.iter();
        let groups = self.macros.iter().chain(&self.enumerators).chain(&self.enumerations);
        let sentinels = self.addresses.iter().chain(&self.sentinels);
        named
            .chain(self.predefined.iter().flat_map(|predefined| &predefined.values))
            .chain(groups.flat_map(|group| &group.values))
            .map(|(name, value)| (name.as_str(), *value))
            .chain(self.datatypes.iter().map(|datatype| (datatype.name.as_str(), datatype.value)))
            .chain(sentinels.map(|(name, _, value)| (name.as_str(), *value)))
            .chain(self.typed_macros.iter().map(|value| (value.name.as_str(), value.value)))
    }

    /// No name twice, no handle twice, a large-count form behind what it is a form of, and nothing
    /// out of date that is not there.
    fn check(&self) -> Result<(), Error> {
        let synonyms = self.datatype_synonyms.iter().map(|(name, _)| name.as_str());
        let names = (self.type_names())
            .chain(self.values().map(|(name, _)| name))
            .chain(synonyms)
            .chain(self.functions().map(|function| function.name.as_str()));
        let mut known = HashSet::new();
        for name in names {
            if !known.insert(name) {
                return Err(Error::entry(name, "is there twice"));
            }
        }
        for (name, _) in &self.deprecated {
            if !known.contains(name.as_str()) {
                return Err(Error::entry(name, "is out of date, but not there"));
            }
        }
        let mut handles = HashSet::new();
        for predefined in self.predefined.iter().filter(|known| !known.ctype.contains("_T_")) {
            for (name, value) in &predefined.values {
                if !handles.insert(value) {
                    return Err(Error::entry(name, "has the value of another handle"));
                }
            }
        }
        for datatype in &self.datatypes {
            if !handles.insert(&datatype.value) {
                return Err(Error::entry(&datatype.name, "has the value of another handle"));
            }
        }
        for chapter in &self.chapters {
            let mut before = "";
            for function in &chapter.functions {
                if function.is_large() && function.name.strip_suffix("_c") != Some(before) {
                    return Err(Error::entry(&function.name, "is not behind its other form"));
                }
                before = &function.name;
            }
        }
        Ok(())
    }
}

/// A part of the document.
struct At<'a> {
    name: String,
    table: &'a dyn TableLike,
}

impl<'a> At<'a> {
    fn table(&self, name: &str) -> Result<At<'a>, Error> {
        let table = self.table.get(name).and_then(Item::as_table_like);
        let table = table.ok_or_else(|| Error::entry(&self.name, format!("has no `{name}`")))?;
        Ok(At { name: name.to_owned(), table })
    }

    fn wrong(&self, what: &str) -> Error {
        Error::entry(&self.name, what)
    }

    /// Reads all tables inside.
    fn each<T>(&self, read: impl Fn(&At<'a>) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        self.table.iter().map(|(name, _)| read(&self.table(name)?)).collect()
    }

    /// All entries but `about`, with what `read` makes of them.
    fn entries<T>(&self, what: &str, read: impl Fn(&Item) -> Option<T>) -> Result<Named<T>, Error> {
        let entries = self.table.iter().filter(|(name, _)| *name != "about");
        entries
            .map(|(name, item)| match read(item) {
                Some(value) => Ok((name.to_owned(), value)),
                None => Err(Error::entry(name, format!("is not {what}"))),
            })
            .collect()
    }

    fn about(&self) -> Result<String, Error> {
        let about = self.table.get("about").and_then(Item::as_str);
        about.map(str::to_owned).ok_or_else(|| self.wrong("does not say what it is about"))
    }

    fn integers(&self) -> Result<Named<i64>, Error> {
        self.entries("a number", Item::as_integer)
    }

    fn texts(&self) -> Result<Named<String>, Error> {
        self.entries("a text", |item| item.as_str().map(str::to_owned))
    }

    fn pairs(&self) -> Result<Named<(String, String)>, Error> {
        self.entries("a pair of texts", |item| {
            let array = item.as_array()?;
            let text = |at| array.get(at).and_then(|value| value.as_str()).map(str::to_owned);
            Some((text(0)?, text(1)?))
        })
    }

    fn sentinels(&self) -> Result<Vec<(String, String, i64)>, Error> {
        let entries = self.entries("a type and a number", |item| {
            let array = item.as_array()?;
            Some((array.get(0)?.as_str()?.to_owned(), array.get(1)?.as_integer()?))
        })?;
        Ok(entries.into_iter().map(|(name, (ctype, value))| (name, ctype, value)).collect())
    }

    fn handle_types(&self) -> Result<Vec<HandleType>, Error> {
        let pairs = self.pairs()?.into_iter();
        Ok(pairs.map(|(name, (tag, about))| HandleType { name, tag, about }).collect())
    }

    fn structure(&self) -> Result<Structure, Error> {
        let mut fields = Vec::new();
        for (name, (ctype, about)) in self.pairs()? {
            let (ctype, length) = match ctype.split_once('[') {
                Some((element, length)) => {
                    let length = length.strip_suffix(']').and_then(|length| length.parse().ok());
                    let length = length.ok_or_else(|| self.wrong("has an array of no length"))?;
                    (element.to_owned(), Some(length))
                }
                None => (ctype, None),
            };
            fields.push(Field { name, ctype, length, about });
        }
        Ok(Structure { name: self.name.clone(), about: self.about()?, fields })
    }

    fn predefined(&self) -> Result<Predefined, Error> {
        Ok(Predefined { ctype: self.name.clone(), values: self.integers()? })
    }

    fn group(&self) -> Result<Group, Error> {
        Ok(Group { key: self.name.clone(), about: self.about()?, values: self.integers()? })
    }

    fn typed_macros(&self) -> Result<Vec<TypedMacro>, Error> {
        let entries = self.entries("a type, a number and a text", |item| {
            let array = item.as_array()?;
            let text = |at| array.get(at).and_then(|value| value.as_str()).map(str::to_owned);
            Some((text(0)?, array.get(1)?.as_integer()?, text(2)?))
        })?;
        let made = entries.into_iter().map(|(name, (ctype, value, about))| TypedMacro {
            name,
            ctype,
            value,
            about,
        });
        Ok(made.collect())
    }

    fn datatype(&self) -> Result<Datatype, Error> {
        let text = |name| self.table.get(name).and_then(Item::as_str).map(str::to_owned);
        let number = |name| self.table.get(name).and_then(Item::as_integer);
        let element = match self.table.get("pair").and_then(Item::as_array) {
            Some(pair) => {
                let half = |at| pair.get(at).and_then(|value| value.as_str()).map(str::to_owned);
                let halves = half(0).zip(half(1));
                let (value, index) = halves.ok_or_else(|| self.wrong("is a pair of what?"))?;
                Element::Pair(value, index)
            }
            None => Element::Plain {
                kind: text("kind").ok_or_else(|| self.wrong("has no kind"))?,
                size: number("size")
                    .and_then(|size| usize::try_from(size).ok())
                    .ok_or_else(|| self.wrong("has no size"))?,
                native: ["c", "cxx", "fortran"]
                    .into_iter()
                    .find_map(|language| Some((language.to_owned(), text(language)?))),
            },
        };
        let value = number("value").ok_or_else(|| self.wrong("has no value"))?;
        Ok(Datatype { name: self.name.clone(), value, element })
    }

    fn chapter(&self) -> Result<Chapter, Error> {
        let functions = self.entries("a text", |item| item.as_str().map(str::to_owned))?;
        let functions = functions
            .into_iter()
            .map(|(name, text)| Ok(Function { prototype: Prototype::parse(&name, &text)?, name }));
        Ok(Chapter {
            key: self.name.clone(),
            about: self.about()?,
            functions: functions.collect::<Result<_, Error>>()?,
        })
    }
}
