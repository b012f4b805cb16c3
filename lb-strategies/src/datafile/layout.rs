//! The layout of a file: one type for each kind of JSON object in it.
//!
//! Field names are those of the files. Optional fields are an `Option` or an empty list here;
//! unknown fields are ignored.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The value of `type` in a file of this layout.
pub const KIND: &str = "LBDatafile";

/// Arbitrary data that a program adds.
pub type UserDefined = BTreeMap<String, Value>;

/// Any value of JSON.
///
/// Not `serde_json`'s, because the runtime writes these files in programs of others: with that crate in
/// a program, numbers can be compared with its values, which makes types ambiguous there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number without a sign.
    Whole(u64),
    /// A number with a sign.
    Signed(i64),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// An object.
    Object(BTreeMap<String, Value>),
}

impl Value {
    /// The number that it is.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Value::Whole(number) => Some(number as f64),
            Value::Signed(number) => Some(number as f64),
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The list that it is.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(values) => Some(values),
            _ => None,
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Whole(number)
    }
}

/// As in JSON, without what is in objects: for messages.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Whole(number) => write!(f, "{number}"),
            Value::Signed(number) => write!(f, "{number}"),
            Value::Number(number) => write!(f, "{number:?}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::List(values) => {
                f.write_str("[")?;
                for (number, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if number > 0 { "," } else { "" })?;
                }
                f.write_str("]")
            }
            Value::Object(_) => f.write_str("{..}"),
        }
    }
}

/// A whole file: the record of one PE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// [`KIND`]; older files have it here, newer ones in the metadata.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Data about the file and the PE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The phases, in the order in which they ran.
    pub phases: Vec<Phase>,
}

/// Data about a file and its PE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    /// [`KIND`].
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The PE (in vt's words the rank) that wrote the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u64>,
    /// The PE's position among those that share memory with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_node: Option<SharedNode>,
    /// Phases that are not in the list of phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhaseNotes>,
    /// Attributes of the PE.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: UserDefined,
}

/// A PE's position among those that share memory with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedNode {
    /// The node's number.
    pub id: u64,
    /// Number of its PEs.
    pub size: u64,
    /// Index of this PE among them.
    pub rank: u64,
    /// Number of nodes.
    pub num_nodes: u64,
}

/// Phases that are not in the list of phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseNotes {
    /// Number of phases that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Phases that were not written.
    pub skipped: PhaseSet,
    /// Phases that were identical to the previous one.
    pub identical_to_previous: PhaseSet,
}

/// A set of phases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseSet {
    /// Single phases.
    pub list: Vec<u64>,
    /// Ranges from the first to the second, inclusive.
    pub range: Vec<(u64, u64)>,
}

impl PhaseSet {
    /// Whether `phase` is in the set.
    #[must_use]
    pub fn contains(&self, phase: u64) -> bool {
        self.list.contains(&phase)
            || self.range.iter().any(|&(first, last)| (first..=last).contains(&phase))
    }
}

/// What happened on the PE in one phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The phase's number.
    pub id: u64,
    /// The work that was done.
    pub tasks: Vec<Task>,
    /// Who sent to whom.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub communications: Vec<Communication>,
    /// The program's data about the phase.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub user_defined: UserDefined,
}

/// The work of one object in one phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The object.
    pub entity: Entity,
    /// Its PE.
    pub node: u64,
    /// The resource used: `cpu`.
    pub resource: String,
    /// Parts of the phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subphases: Vec<Subphase>,
    /// Seconds.
    pub time: f64,
    /// The program's data about the object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub user_defined: UserDefined,
    /// Attributes of the object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: UserDefined,
}

/// A part of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subphase {
    /// The part's number.
    pub id: u64,
    /// Seconds.
    pub time: f64,
}

/// A participant in work or communication: an object, a PE, or a block of shared memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entity {
    /// `object`, `node` or `shared_id`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The number, which contains vt's flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The plain number, if there is no `id`; unique among objects of one home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq_id: Option<u64>,
    /// The PE that always knows where the object is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<u64>,
    /// The collection that the object is an element of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<u64>,
    /// The object's index in its collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<Vec<i64>>,
    /// Whether the object can move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migratable: Option<bool>,
    /// The group of objects, one on each PE, that the object belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objgroup_id: Option<u64>,
}

/// Messages between two ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Communication {
    /// `SendRecv` or `Broadcast` between objects; others have a PE or a block at an end.
    #[serde(rename = "type")]
    pub kind: String,
    /// The sender.
    pub from: Entity,
    /// The receiver.
    pub to: Entity,
    /// Number of messages.
    pub messages: u64,
    /// Bytes in all of them.
    pub bytes: f64,
}
