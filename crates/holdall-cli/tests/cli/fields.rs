//! The fields of `stat --json` and `ls --json` are those of the tables in docs/cli.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use holdall::{Attributes, PutOptions, Store};
use serde_json::Value;

use crate::docs::DOCS;
use crate::support::{Home, bytes};

/// A row of a table.
struct Row {
    types: Vec<String>,
    meaning: String,
}

/// The table of docs/cli.md whose first column has this heading: rows by field.
fn documented(heading: &str) -> BTreeMap<String, Row> {
    let text = fs::read_to_string(DOCS).unwrap();
    let start = format!("| {heading} | type | unit | meaning |");
    let rows = text.lines().skip_while(|line| *line != start).skip(2);
    let mut table = BTreeMap::new();
    for line in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [field, types, unit, meaning] = cells[..] else { panic!("four cells: {line}") };
        assert!(!unit.is_empty() && !meaning.is_empty(), "{line}");
        let types = types.split(" or ").map(str::to_owned).collect();
        let row = Row { types, meaning: meaning.to_owned() };
        assert!(table.insert(field.trim_matches('`').to_owned(), row).is_none(), "{line}");
    }
    assert!(table.len() > 10, "docs/cli.md has lost its table of the {heading}");
    table
}

/// Adds the path and type of each value that holds no others.
fn walk(value: &Value, path: &str, found: &mut BTreeSet<(String, &'static str)>) {
    let kind = match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = match (path, key.ends_with("_hex")) {
                    ("attributes", false) => "KEY",
                    ("attributes", true) => "KEY_hex",
                    _ => key,
                };
                let dot = if path.is_empty() { "" } else { "." };
                walk(value, &format!("{path}{dot}{key}"), found);
            }
            return;
        }
        // What another process holds is not told: mostly there is no reader to list.
        Value::Array(_) if path == "readers" => "array",
        Value::Array(items) => {
            return items.iter().for_each(|item| walk(item, &format!("{path}[]"), found));
        }
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::String(_) => "text",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
    };
    found.insert((path.to_owned(), kind));
}

fn fields(value: &Value) -> BTreeSet<(String, &'static str)> {
    let mut found = BTreeSet::new();
    walk(value, "", &mut found);
    found
}

/// All that was found is documented, with all its types, and the other way round.
fn assert_same(found: &BTreeSet<(String, &'static str)>, table: &BTreeMap<String, Row>) {
    let found: BTreeSet<_> = found.iter().map(|(field, kind)| (field.as_str(), *kind)).collect();
    let rows = table.iter();
    let told: BTreeSet<_> =
        rows.flat_map(|(f, row)| row.types.iter().map(|t| (f.as_str(), t.as_str()))).collect();
    let (hidden, gone): (Vec<_>, Vec<_>) =
        (found.difference(&told).collect(), told.difference(&found).collect());
    assert!(hidden.is_empty(), "printed, but not in docs/cli.md: {hidden:?}");
    assert!(gone.is_empty(), "in docs/cli.md, but not printed: {gone:?}");
}

/// A store with objects of every kind; the OID of one without a name.
fn sample(home: &Home) -> String {
    let store = Store::create(home.path("s")).unwrap();
    let attributes = Attributes::from([("raw".into(), b"\xff".to_vec())]);
    store
        .write(|tx| {
            tx.put_with("attributed", b"x", &PutOptions::with_attributes(attributes.clone()))
        })
        .unwrap();
    store.write(|tx| tx.put(b"raw \xff", b"x")).unwrap();
    let unnamed = store.write(|tx| tx.create(b"x")).unwrap();
    store.close().unwrap();
    home.file("in", bytes(1, 300_000));
    home.ok(&["put", "s", "large", "in"]);
    home.feed(&["put", "s", "small", "-"], b"x");
    unnamed.to_string()
}

#[test]
fn figures_of_a_store_are_the_documented_ones() {
    let home = Home::new();
    let table = documented("field of a store");
    sample(&home);
    let full = fields(&home.json(&["stat", "s", "--json"]));
    assert_same(&full, &table);
    // The same in an empty store, but that its list of collections is empty.
    home.ok(&["create", "empty"]);
    let empty = home.json(&["stat", "empty", "--json"]);
    assert_eq!(empty["collections"], serde_json::json!([]));
    let told = full.into_iter().filter(|(field, _)| !field.starts_with("collections"));
    assert_eq!(fields(&empty), told.collect());
}

#[test]
fn fields_of_an_object_are_the_documented_ones() {
    let home = Home::new();
    let table = documented("field of an object");
    let unnamed = sample(&home);
    let list = home.json(&["ls", "s", "--json"]);
    let unnamed = home.json(&["stat", "s", &unnamed, "--json"]);
    let listed = list.as_array().unwrap();
    let mut found = fields(&unnamed);
    found.extend(listed.iter().flat_map(fields));
    assert_same(&found, &table);
    // `stat` prints what `ls` does; what only a large object has is documented as such.
    let mut of: Vec<BTreeSet<_>> = Vec::new();
    for name in ["large", "small"] {
        let stat = home.json(&["stat", "s", name, "--json"]);
        assert!(listed.contains(&stat), "{stat} is not in {list}");
        of.push(fields(&stat).into_iter().map(|(field, _)| field).collect());
    }
    let more: Vec<_> = of[0].difference(&of[1]).collect();
    let told = table.iter().filter(|(_, row)| row.meaning.starts_with("large objects: "));
    assert_eq!(more, told.map(|(field, _)| field).collect::<Vec<_>>());
    assert!(of[1].is_subset(&of[0]));
}
