//! `spec/notices.md`, read both ways: every row happens, nothing happens without a row.

use std::collections::BTreeSet;

use super::world::World;

const SPEC: &str = include_str!("../../../../spec/notices.md");

#[test]
fn what_happens_to_matters_is_what_the_table_says() {
    let mut happened = BTreeSet::new();
    for seed in 0..200 {
        let mut world = World::new(seed);
        (0..200).for_each(|_| world.step());
        happened.extend(world.rows);
    }
    let written: BTreeSet<[String; 5]> = rows().into_iter().collect();
    let unwritten: Vec<_> = happened.difference(&written).collect();
    let idle: Vec<_> = written.difference(&happened).collect();
    assert!(
        unwritten.is_empty() && idle.is_empty(),
        "not in the table: {unwritten:#?}\nnever happens: {idle:#?}"
    );
}

fn rows() -> Vec<[String; 5]> {
    let table = SPEC.lines().skip_while(|line| *line != "## A matter");
    let table = table.take_while(|line| *line != "## Kinds").filter(|line| line.starts_with('|'));
    table
        .skip(2)
        .map(|line| {
            let cells: Vec<String> =
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            cells.try_into().expect("five cells")
        })
        .collect()
}
