//! Converts a load model to files.

use std::collections::BTreeMap;

use super::{
    BACKGROUND, COORDINATES, Communication, Entity, KIND, LIVE_BYTES, Layout, MOVE_TIME,
    MOVE_TIME_PER_BYTE, Metadata, Phase, SPEED, SharedNode, Task, UserDefined, Value,
};
use crate::model::{LoadModel, MoveCost, Object};

/// The file contents of each PE for `model`, as its phase `phase`.
///
/// A program that records several phases adds the [phases](Layout::phases) of the later ones to the
/// layouts of the first. [`recorded`](super::recorded) returns `model` again, except for objects without coordinates
/// or messages of no bytes. Cost: `n + e + p`.
#[must_use]
pub fn layouts(model: &LoadModel, phase: u64) -> Vec<Layout> {
    let mut sizes: BTreeMap<usize, u64> = BTreeMap::new();
    let mut layouts: Vec<Layout> = vec![];
    for (rank, pe) in model.pes().iter().enumerate() {
        let on_node = sizes.entry(pe.node).or_default();
        let mut attributes = UserDefined::new();
        if pe.speed != 1.0 {
            attributes.insert(SPEED.to_owned(), pe.speed.into());
        }
        if rank == 0 && model.move_cost() != MoveCost::default() {
            attributes.insert(MOVE_TIME.to_owned(), model.move_cost().fixed.into());
            attributes.insert(MOVE_TIME_PER_BYTE.to_owned(), model.move_cost().per_byte.into());
        }
        let mut user_defined = UserDefined::new();
        // The next phase's may be another: other programs come and go.
        if pe.speed != 1.0 {
            user_defined.insert(SPEED.to_owned(), pe.speed.into());
        }
        if pe.background > 0.0 {
            user_defined.insert(BACKGROUND.to_owned(), pe.background.into());
        }
        layouts.push(Layout {
            kind: None,
            metadata: Some(Metadata {
                kind: Some(KIND.to_owned()),
                rank: Some(rank as u64),
                shared_node: Some(SharedNode {
                    id: pe.node as u64,
                    size: 0,
                    rank: *on_node,
                    num_nodes: 0,
                }),
                phases: None,
                attributes,
            }),
            phases: vec![Phase { id: phase, user_defined, ..Phase::default() }],
        });
        *on_node += 1;
    }
    for node in layouts.iter_mut().filter_map(|it| it.metadata.as_mut()?.shared_node.as_mut()) {
        node.size = sizes[&(node.id as usize)];
        node.num_nodes = sizes.len() as u64;
    }
    for (number, object) in model.objects().iter().enumerate() {
        layouts[object.pe].phases[0].tasks.push(task_of(model, number, object));
    }
    for edge in model.edges() {
        let communication = Communication {
            kind: "SendRecv".to_owned(),
            from: entity_of(model, edge.from),
            to: entity_of(model, edge.to),
            messages: edge.messages,
            bytes: edge.bytes as f64,
        };
        let sender = model.objects()[edge.from].pe;
        layouts[sender].phases[0].communications.push(communication);
    }
    layouts
}

fn task_of(model: &LoadModel, number: usize, object: &Object) -> Task {
    let mut user_defined = UserDefined::new();
    if object.bytes > 0 {
        user_defined.insert(LIVE_BYTES.to_owned(), object.bytes.into());
    }
    if let Some(point) = object.coordinates {
        user_defined.insert(COORDINATES.to_owned(), Value::List(point.map(Value::from).to_vec()));
    }
    Task {
        entity: entity_of(model, number),
        node: object.pe as u64,
        resource: "cpu".to_owned(),
        subphases: vec![],
        time: object.load,
        user_defined,
        attributes: UserDefined::new(),
    }
}

/// The objects are one collection; homes are assigned in blocks and are the same in every phase,
/// wherever the objects go.
fn entity_of(model: &LoadModel, number: usize) -> Entity {
    let (objects, pes) = (model.objects().len() as u128, model.pes().len() as u128);
    Entity {
        kind: "object".to_owned(),
        seq_id: Some(number as u64),
        home: Some((number as u128 * pes / objects) as u64),
        collection_id: Some(0),
        migratable: Some(model.objects()[number].migratable),
        ..Entity::default()
    }
}
