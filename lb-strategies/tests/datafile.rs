//! Files of recorded loads: checked against the layout's schema, against DARMA vt's own files, by
//! round trips, and with invalid files.

use std::{fs, path::Path};

use lb_strategies::{
    Assignment, LoadModel, Object, cases,
    datafile::{DataFile, Layout, layouts, phases, recorded},
};
use proptest::prelude::*;
use serde_json::Value;

/// The schema of `scripts/LBDatafile_schema.py` in DARMA vt, as a check of any JSON. Reports the
/// first violation.
mod schema {
    use serde_json::{Map, Value};

    type Check = fn(&Value) -> bool;
    type Outcome = Result<(), String>;

    const ENTITY: &[(&str, bool, Check)] = &[
        ("type", true, Value::is_string),
        ("id", false, is_integer),
        ("seq_id", false, is_integer),
        ("home", false, is_integer),
        ("collection_id", false, is_integer),
        ("migratable", false, Value::is_boolean),
        ("index", false, is_integers),
        ("objgroup_id", false, is_integer),
    ];

    pub(crate) fn check(file: &Value) -> Outcome {
        let top = fields(
            file,
            "",
            &[
                ("type", false, is_kind),
                ("metadata", false, Value::is_object),
                ("phases", true, Value::is_array),
            ],
        )?;
        if let Some(metadata) = top.get("metadata") {
            check_metadata(metadata)?;
        }
        each(&top["phases"], "phases", check_phase)
    }

    fn check_metadata(metadata: &Value) -> Outcome {
        let known: &[(&str, bool, Check)] = &[
            ("type", false, is_kind),
            ("rank", false, is_integer),
            ("rank_alpha", false, Value::is_f64),
            ("shared_node", false, Value::is_object),
            ("phases", false, Value::is_object),
            ("attributes", false, Value::is_object),
        ];
        let metadata = fields(metadata, "metadata", known)?;
        if let Some(node) = metadata.get("shared_node") {
            let known = ["id", "size", "rank", "num_nodes"].map(|it| (it, true, is_integer as _));
            fields(node, "shared_node", &known)?;
        }
        let Some(phases) = metadata.get("phases") else { return Ok(()) };
        let known: &[(&str, bool, Check)] = &[
            ("count", false, is_integer),
            ("skipped", true, is_set),
            ("identical_to_previous", true, is_set),
        ];
        fields(phases, "metadata.phases", known).map(|_| ())
    }

    fn check_phase(phase: &Value, place: &str) -> Outcome {
        let known: &[(&str, bool, Check)] = &[
            ("id", true, is_integer),
            ("tasks", true, Value::is_array),
            ("communications", false, Value::is_array),
            ("user_defined", false, Value::is_object),
            ("lb_iterations", false, Value::is_array),
        ];
        let phase = fields(phase, place, known)?;
        each(&phase["tasks"], &format!("{place}.tasks"), check_task)?;
        let none = Value::Array(vec![]);
        let communications = phase.get("communications").unwrap_or(&none);
        each(communications, &format!("{place}.communications"), |it, place| {
            let known: &[(&str, bool, Check)] = &[
                ("type", true, Value::is_string),
                ("to", true, Value::is_object),
                ("from", true, Value::is_object),
                ("messages", true, is_integer),
                ("bytes", true, Value::is_f64),
            ];
            let it = fields(it, place, known)?;
            check_entity(&it["to"], place)?;
            check_entity(&it["from"], place)
        })?;
        let iterations = phase.get("lb_iterations").unwrap_or(&none);
        each(iterations, &format!("{place}.lb_iterations"), check_phase)
    }

    fn check_task(task: &Value, place: &str) -> Outcome {
        let known: &[(&str, bool, Check)] = &[
            ("entity", true, Value::is_object),
            ("node", true, is_integer),
            ("resource", true, Value::is_string),
            ("subphases", false, Value::is_array),
            ("time", true, Value::is_f64),
            ("user_defined", false, Value::is_object),
            ("attributes", false, Value::is_object),
        ];
        let task = fields(task, place, known)?;
        check_entity(&task["entity"], place)?;
        for key in ["home", "migratable"] {
            task["entity"].get(key).ok_or(format!("{place}.entity: no {key}"))?;
        }
        let none = Value::Array(vec![]);
        each(task.get("subphases").unwrap_or(&none), place, |it, place| {
            let known: &[(&str, bool, Check)] =
                &[("id", true, is_integer), ("time", true, Value::is_f64)];
            fields(it, place, known).map(|_| ())
        })
    }

    fn check_entity(entity: &Value, place: &str) -> Outcome {
        let entity = fields(entity, place, ENTITY)?;
        if !entity.contains_key("seq_id") && !entity.contains_key("id") {
            return Err(format!("{place}: no id"));
        }
        let migratable = entity.get("migratable") == Some(&Value::Bool(true));
        if migratable && entity.contains_key("seq_id") && !entity.contains_key("collection_id") {
            return Err(format!("{place}: no collection_id"));
        }
        Ok(())
    }

    fn fields<'a>(
        value: &'a Value,
        place: &str,
        known: &[(&str, bool, Check)],
    ) -> Result<&'a Map<String, Value>, String> {
        let object = value.as_object().ok_or(format!("{place}: no object"))?;
        for (key, value) in object {
            let rule = known.iter().find(|it| it.0 == key);
            let (.., check) = rule.ok_or(format!("{place}.{key}: not in the schema"))?;
            if !check(value) {
                return Err(format!("{place}.{key}: {value}"));
            }
        }
        match known.iter().find(|it| it.1 && !object.contains_key(it.0)) {
            Some((key, ..)) => Err(format!("{place}: no {key}")),
            None => Ok(object),
        }
    }

    fn each(list: &Value, place: &str, check: impl Fn(&Value, &str) -> Outcome) -> Outcome {
        let list = list.as_array().ok_or(format!("{place}: no list"))?;
        list.iter().enumerate().try_for_each(|(it, value)| check(value, &format!("{place}[{it}]")))
    }

    fn is_kind(value: &Value) -> bool {
        value == "LBDatafile"
    }

    fn is_integer(value: &Value) -> bool {
        value.is_i64() || value.is_u64()
    }

    fn is_integers(value: &Value) -> bool {
        value.as_array().is_some_and(|it| it.iter().all(is_integer))
    }

    fn is_set(value: &Value) -> bool {
        let parts = |key| value.get(key).and_then(Value::as_array);
        let (Some(list), Some(range)) = (parts("list"), parts("range")) else { return false };
        list.iter().all(is_integer) && range.iter().all(is_integers)
    }
}

const OURS: &str = include_str!("data/vt-layout.json");

fn ours() -> Vec<DataFile> {
    vec![DataFile::parse("vt-layout.json", OURS.as_bytes()).expect("sound")]
}

/// Writes `layouts` as files, reads them, and checks each against the schema.
fn through_files(layouts: &[Layout], ending: &str) -> Vec<DataFile> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |(rank, layout): (usize, &Layout)| {
        let path = directory.path().join(format!("data.{rank}.{ending}"));
        layout.write(&path).expect("written");
        let file = DataFile::read(&path).expect("read");
        assert_eq!(file.layout(), layout);
        let plain = serde_json::to_value(file.layout()).expect("JSON");
        assert_eq!(schema::check(&plain), Ok(()));
        file
    };
    layouts.iter().enumerate().map(file).collect()
}

#[test]
fn every_case_comes_back_from_files() {
    for ending in ["json", "json.br"] {
        for case in cases::cases() {
            let size = cases::Size { objects: 60, pes: 18, seed: 3 };
            let model = case.model(size).expect("sound");
            let mut files = through_files(&layouts(&model, 7), ending);
            files.reverse();
            assert_eq!(phases(&files).into_iter().collect::<Vec<_>>(), [7]);
            let back = recorded(&files, 7).expect("sound");
            assert_eq!(back.left_out, 0);
            // Edges come back sorted.
            let mut edges = model.edges().to_vec();
            edges.sort_by_key(|it| (it.from, it.to));
            assert_eq!(back.model.edges(), edges, "{}", case.name);
            assert_eq!(back.model.objects(), model.objects(), "{}", case.name);
            assert_eq!(back.model.pes(), model.pes(), "{}", case.name);
            assert_eq!(back.model.move_cost(), model.move_cost());
        }
    }
}

proptest! {
    #[test]
    fn any_numbers_come_back(
        objects in prop::collection::vec((0.0..1e9_f64, 0_usize..3, any::<u32>(),
            any::<bool>(), prop::option::of([-1e9..1e9_f64, 0.0..1.0, 0.0..1e-9])), 0..20),
    ) {
        let objects: Vec<Object> = objects
            .into_iter()
            .map(|(load, pe, bytes, migratable, coordinates)| {
                Object { load, pe, migratable, bytes: bytes.into(), coordinates }
            })
            .collect();
        let model = LoadModel::new(vec![Default::default(); 3], objects, vec![]).expect("sound");
        let files: Vec<DataFile> = layouts(&model, 0)
            .iter()
            .enumerate()
            .map(|(rank, layout)| {
                let text = serde_json::to_vec(layout).expect("JSON");
                DataFile::parse(format!("data.{rank}.json"), &text).expect("sound")
            })
            .collect();
        prop_assert_eq!(recorded(&files, 0).expect("sound").model, model);
    }

    #[test]
    fn no_damage_makes_it_panic(at in 0..OURS.len(), with in any::<u8>(), cut in any::<bool>()) {
        let mut text = OURS.as_bytes().to_vec();
        if cut {
            text.truncate(at);
        } else {
            text[at] = with;
        }
        if let Ok(file) = DataFile::parse("data.0.json", &text) {
            for phase in 0..10 {
                let _ = recorded(std::slice::from_ref(&file), phase);
            }
        }
    }
}

#[test]
fn the_committed_file_is_of_the_layout_and_says_what_it_should() {
    let plain: Value = serde_json::from_str(OURS).expect("JSON");
    assert_eq!(schema::check(&plain), Ok(()));
    let back = recorded(&ours(), 3).expect("sound");
    let model = &back.model;
    assert_eq!((model.pes().len(), model.objects().len()), (4, 28));
    assert_eq!(model.objects().iter().filter(|it| !it.migratable).count(), 4);
    assert_eq!((model.edges().len(), back.left_out), (38, 1));
    let today = Assignment::today(model);
    assert!((today.pe_loads(model).iter().sum::<f64>() - 9.05).abs() < 1e-9);
    assert!(model.objects().iter().any(|it| it.coordinates == Some([3.0, 5.0, 0.0])));
    // Phase 4 was like phase 3, and 6 to 8 like 5.
    assert_eq!(recorded(&ours(), 4).expect("repeats").model, *model);
    let half = recorded(&ours(), 8).expect("repeats").model;
    assert_eq!(half.objects()[3].load, model.objects()[3].load / 2.0);
    let error = recorded(&ours(), 9).expect_err("no such phase").to_string();
    assert_eq!(error, "vt-layout.json: has no phase 9; it has 3, 5");
}

fn damaged(from: &str, to: &str) -> String {
    assert!(OURS.contains(from));
    let text = OURS.replacen(from, to, 1);
    let file = DataFile::parse("data.0.json", text.as_bytes());
    match file.and_then(|file| recorded(&[file], 3)) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn errors_name_the_file_the_place_and_what_was_expected() {
    for (from, to, expected) in [
        (
            "\"time\": 0.9",
            "\"time\": \"long\"",
            "data.0.json: at phases[0].tasks[0].time: invalid type: string \"long\", expected f64 \
             at line 5 column ",
        ),
        (
            "\"time\": 0.9",
            "\"time\": -0.9",
            "data.0.json: at phases[0].tasks[0].time: found -0.9, expected 0 s or more",
        ),
        (
            "\"node\": 0, ",
            "",
            "data.0.json: at phases[0].tasks[0]: missing field `node` at line 5 column ",
        ),
        (
            "\"LBDatafile\"",
            "\"Trace\"",
            "data.0.json: at metadata.type: found `Trace`, expected LBDatafile",
        ),
        (
            "\"id\": 17179869187, ",
            "",
            "data.0.json: at phases[0].tasks[0].entity: found neither, expected `id` or `seq_id`",
        ),
        (
            "\"task_serialized_bytes\": 1024",
            "\"task_serialized_bytes\": null",
            "data.0.json: at phases[id 3].tasks[0].user_defined.task_serialized_bytes: found null, \
             expected a number, 0 or more",
        ),
        (
            "{\"task_serialized_bytes\": 1024}",
            "{\"coordinates\": [1, \"x\"]}",
            "data.0.json: at phases[id 3].tasks[0].user_defined.coordinates: found [1,\"x\"], \
             expected a list of one to three numbers",
        ),
        (
            "\"phases\": [\n",
            "\"phases\": [[\n",
            "data.0.json: at phases[0][0]: invalid type: map, expected u64 at line 4 column ",
        ),
        ("{\n", "", "data.0.json: at the top: "),
    ] {
        let error = damaged(from, to);
        assert!(error.starts_with(expected), "{error}\nshould start with\n{expected}");
    }
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let model = cases::find("uniform").expect("a case");
    let model = model.model(cases::Size { objects: 9, pes: 3, seed: 0 }).expect("sound");
    let layouts = layouts(&model, 0);
    let file = |rank: usize, name: &str| {
        DataFile::parse(name, &serde_json::to_vec(&layouts[rank]).expect("JSON")).expect("sound")
    };
    let error = |files: &[DataFile]| recorded(files, 0).expect_err("must not fit").to_string();
    assert_eq!(error(&[]), "no files: expected one for each PE");
    assert_eq!(
        error(&[file(0, "a.json"), file(2, "c.json")]),
        "no file of rank 1: expected one for each rank from 0 to 2"
    );
    assert_eq!(
        error(&[file(0, "a.json"), file(1, "b.json"), file(0, "c.json")]),
        "c.json: is of rank 0, and so is a.json"
    );
    let mut twice = layouts[1].clone();
    twice.phases[0].tasks.push(layouts[0].phases[0].tasks[0].clone());
    let twice = serde_json::to_vec(&twice).expect("JSON");
    let twice = DataFile::parse("b.json", &twice).expect("each file is sound");
    let mut elsewhere = twice.layout().clone();
    elsewhere.phases[0].tasks[3].node = 1;
    let elsewhere = serde_json::to_vec(&elsewhere).expect("JSON");
    let elsewhere = DataFile::parse("b.json", &elsewhere).expect("each file is sound");
    assert_eq!(
        error(&[file(0, "a.json"), elsewhere, file(2, "c.json")]),
        "b.json: object seq_id 0 is on node 1, but by another task of the phase on node 0"
    );
    let nameless = DataFile::parse("noname", b"{\"phases\": []}").expect("sound");
    assert_eq!(
        error(&[nameless, file(0, "a.json")]),
        "noname: expected a rank in the metadata or in the name, as in data.3.json"
    );
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data.0.json.br");
    let error = |path: &Path| DataFile::read(path).expect_err("must fail").to_string();
    assert!(error(&path).starts_with(&format!("{}: cannot be read: ", path.display())));
    fs::write(&path, "{\"phases\": []}").expect("written");
    let expected =
        format!("{}: expected data compressed with brotli, as the name says: ", path.display());
    assert!(error(&path).starts_with(&expected), "{}", error(&path));
}

/// Needs a copy of vt: `VT_SOURCE=path cargo test -p lb-strategies -- --ignored`.
#[test]
#[ignore = "needs VT_SOURCE, the path of a copy of DARMA vt"]
fn files_of_vt_itself_are_read() {
    let vt = std::env::var("VT_SOURCE").expect("VT_SOURCE is the path of a copy of DARMA vt");
    let read = |name: &str| {
        let path = Path::new(&vt).join(name);
        let plain: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
        assert_eq!(schema::check(&plain), Ok(()), "{name}");
        DataFile::read(path).expect("sound")
    };
    let example = [read("examples/lb_data/lb_data_file_example.json")];
    for phase in phases(&example) {
        let back = recorded(&example, phase).expect("sound");
        assert_eq!((back.model.pes().len(), back.left_out), (1, 0));
    }
    let blocks: Vec<DataFile> = (0..4)
        .map(|rank| {
            read(&format!("tests/data/synthetic-blocks/synthetic-dataset-blocks.{rank}.json"))
        })
        .collect();
    let back = recorded(&blocks, 0).expect("sound");
    assert_eq!((back.model.pes().len(), back.model.objects().len(), back.left_out), (4, 9, 0));
    // Written and read by us, they say the same.
    let again: Vec<Layout> = blocks.iter().map(|it| it.layout().clone()).collect();
    let again = recorded(&through_files(&again, "json.br"), 0).expect("sound");
    assert_eq!((again.model, again.ids), (back.model, back.ids));
}
