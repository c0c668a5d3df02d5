//! A settings file's text in, its new text out. Pure.
//!
//! Only our own entries are added, changed or taken out; all else keeps its bytes. Taking out is
//! the inverse of putting in as long as nobody else wrote to the file in between, and leaves a
//! clean file when somebody did.

mod editing;
#[cfg(test)]
mod tests;

use jsonc_parser::cst::CstRootNode;
use serde_json::Value;

use super::json_text::{self, Refused};
use super::wanted::{Entry, Mode, Telemetry, Wanted, program};
use editing::{Slot, append_entry, remove_slots, replace_slot, slots};

/// What is to become of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// `None`: no file.
    pub new_text: Option<String>,
    /// One line each, for people. None: nothing is to be done.
    pub changes: Vec<String>,
}

/// Puts everything wanted in. `text` is `None` where there is no file.
pub fn install(text: Option<&str>, wanted: &Wanted) -> Result<Plan, Refused> {
    let original = text.unwrap_or_default();
    let root = open(original, wanted)?;
    let mut changes = Vec::new();
    for event in wanted.events() {
        install_event(&root, &wanted.entries_on(event), &mut changes);
    }
    let unwanted: Vec<Slot> = slots(&root)
        .into_iter()
        .filter(|slot| slot.is_ours() && !wanted.entries.iter().any(|e| e.event == slot.event))
        .collect();
    changes.extend(unwanted.iter().map(|slot| format!("remove the hook on {}", slot.event)));
    remove_slots(unwanted, &|_| false);
    if let Some(telemetry) = &wanted.telemetry {
        install_telemetry(&root, telemetry, &mut changes);
    }
    if changes.is_empty() {
        return Ok(Plan { new_text: text.map(str::to_owned), changes });
    }
    Ok(Plan { new_text: Some(json_text::print(original, &root)), changes })
}

/// The entries are all those of one event.
fn install_event(root: &CstRootNode, entries: &[&Entry], changes: &mut Vec<String>) {
    match pairs(entries, ours_on(root, entries[0].event)) {
        Ok(pairs) => {
            for (entry, slot) in pairs {
                match slot {
                    Some(slot) if slot.value() == Some(entry.value()) => {}
                    Some(slot) => {
                        replace_slot(&slot, entry);
                        changes.push(format!("change the hook on {}", entry.label()));
                    }
                    None => {
                        append_entry(root, entry);
                        changes.push(format!("add a hook on {}", entry.label()));
                    }
                }
            }
        }
        Err(surplus) => {
            remove_slots(surplus, &|_| true);
            entries.iter().for_each(|entry| append_entry(root, entry));
            let what = if entries.len() == 1 { "into one" } else { "into two" };
            changes.push(format!("change the hooks on {} {what}", entries[0].event));
        }
    }
}

fn ours_on(root: &CstRootNode, event: &str) -> Vec<Slot> {
    slots(root).into_iter().filter(|slot| slot.is_ours() && slot.event == event).collect()
}

/// Which hook of ours is which of the wanted ones on the same event: one of the same mode, else
/// any, as an older version may have left it. All of ours come back if they are too many, or run
/// only for some of the event.
fn pairs<'a>(
    entries: &[&'a Entry],
    mut ours: Vec<Slot>,
) -> Result<Vec<(&'a Entry, Option<Slot>)>, Vec<Slot>> {
    if ours.len() > entries.len() || !ours.iter().all(Slot::is_unmatched) {
        return Err(ours);
    }
    let mut pairs: Vec<(&Entry, Option<Slot>)> = Vec::new();
    for entry in entries {
        let same = ours.iter().position(|slot| slot.mode() == entry.mode());
        pairs.push((entry, same.map(|place| ours.remove(place))));
    }
    for (_, slot) in pairs.iter_mut().filter(|(_, slot)| slot.is_none()) {
        *slot = ours.pop();
    }
    Ok(pairs)
}

fn install_telemetry(root: &CstRootNode, telemetry: &Telemetry, changes: &mut Vec<String>) {
    if telemetry_found(root, telemetry) == TelemetryFound::Foreign {
        return;
    }
    let Some(section) = root.object_value().map(|root| root.object_value_or_set(telemetry.section))
    else {
        return;
    };
    for (key, value) in &telemetry.values {
        let found = section.get(key);
        if found.as_ref().and_then(|property| property.to_serde_value()).as_ref() == Some(value) {
            continue;
        }
        match found {
            Some(property) => property.set_value(editing::input(value)),
            None => {
                section.append(key, editing::input(value));
            }
        }
        changes.push(format!("set {}.{key}", telemetry.section));
    }
}

/// What an uninstall takes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Everything,
    TelemetryOnly,
}

/// Takes ours out. `before` is the text before the first install (`None`: there was no file): if
/// nobody else changed the file since, it is the answer, byte for byte.
pub fn uninstall(
    text: &str,
    before: Option<&str>,
    wanted: &Wanted,
    extent: Extent,
) -> Result<Plan, Refused> {
    let (stripped, changes) = strip(text, before, wanted, extent)?;
    if changes.is_empty() {
        return Ok(Plan { new_text: Some(text.to_owned()), changes });
    }
    let hooks_only = Wanted { telemetry: None, ..wanted.clone() };
    let telemetry_only = Wanted { entries: Vec::new(), ..wanted.clone() };
    let then: &[&Wanted] = match extent {
        Extent::Everything => &[wanted, &hooks_only, &telemetry_only],
        Extent::TelemetryOnly => &[&telemetry_only],
    };
    let untouched = then.iter().any(|wanted_then| {
        let installed = install(before, wanted_then).ok().and_then(|plan| plan.new_text);
        let stripped_then =
            installed.and_then(|installed| strip(&installed, before, wanted, extent).ok());
        stripped_then.is_some_and(|(then, _)| then == stripped)
    });
    let new_text = if untouched { before.map(str::to_owned) } else { Some(stripped) };
    Ok(Plan { new_text, changes })
}

/// The text without ours, and what was taken out. What held only ours goes too, unless it was
/// there before.
fn strip(
    text: &str,
    before: Option<&str>,
    wanted: &Wanted,
    extent: Extent,
) -> Result<(String, Vec<String>), Refused> {
    let root = open(text, wanted)?;
    let before = before.and_then(|before| open(before, wanted).ok());
    let before = before.and_then(|before| before.to_serde_value());
    let had = |pointer: &str| before.as_ref().and_then(|before| before.pointer(pointer));
    let mut changes = Vec::new();
    if extent == Extent::Everything {
        let ours: Vec<Slot> = slots(&root).into_iter().filter(Slot::is_ours).collect();
        changes.extend(ours.iter().map(|slot| format!("remove the hook on {}", slot.event)));
        remove_slots(ours, &|pointer| had(pointer).is_some());
    }
    if let Some(telemetry) = &wanted.telemetry
        && telemetry_found(&root, telemetry) == TelemetryFound::Ours
        && let Some(section) = root.object_value().and_then(|r| r.object_value(telemetry.section))
    {
        for (key, _) in &telemetry.values {
            let Some(property) = section.get(key) else { continue };
            let value = property.to_serde_value();
            if value.is_none() || had(&format!("/{}/{key}", telemetry.section)) != value.as_ref() {
                property.remove();
                changes.push(format!("remove {}.{key}", telemetry.section));
            }
        }
        if section.properties().is_empty()
            && had(&format!("/{}", telemetry.section)).is_none()
            && let Some(property) = root.object_value().and_then(|r| r.get(telemetry.section))
        {
            property.remove();
        }
    }
    Ok((json_text::print(text, &root), changes))
}

/// How a file stands to what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    pub missing: Vec<String>,
    pub changed: Vec<String>,
    /// Of a version that could not be answered: they send where they would wait now.
    pub old: Vec<String>,
    /// Those that run as wanted.
    pub good: Vec<String>,
    /// The programs that our entries run.
    pub programs: Vec<String>,
    pub telemetry: TelemetryFound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetryFound {
    Absent,
    Ours,
    Foreign,
}

pub fn inspect(text: Option<&str>, wanted: &Wanted) -> Result<Findings, Refused> {
    let root = open(text.unwrap_or_default(), wanted)?;
    let ours: Vec<Slot> = slots(&root).into_iter().filter(Slot::is_ours).collect();
    let mut findings = Findings {
        missing: Vec::new(),
        changed: Vec::new(),
        old: Vec::new(),
        good: Vec::new(),
        programs: Vec::new(),
        telemetry: wanted
            .telemetry
            .as_ref()
            .map_or(TelemetryFound::Absent, |telemetry| telemetry_found(&root, telemetry)),
    };
    for event in wanted.events() {
        let entries = wanted.entries_on(event);
        let Ok(pairs) = pairs(&entries, ours_on(&root, event)) else {
            findings.changed.push(event.to_owned());
            continue;
        };
        let has_any = pairs.iter().any(|(_, slot)| slot.is_some());
        for (entry, slot) in pairs {
            let list = match slot {
                Some(slot) if slot.value() == Some(entry.value()) => &mut findings.good,
                Some(slot) if slot.mode() == entry.mode() => &mut findings.changed,
                Some(_) => &mut findings.old,
                None if has_any && entry.mode() == Mode::Wait => &mut findings.old,
                None => &mut findings.missing,
            };
            list.push(entry.label());
        }
    }
    for slot in &ours {
        if !wanted.entries.iter().any(|entry| entry.event == slot.event) {
            findings.changed.push(slot.event.clone());
        }
        let program = program(&slot.command);
        if !findings.programs.contains(&program) {
            findings.programs.push(program);
        }
    }
    Ok(findings)
}

fn telemetry_found(root: &CstRootNode, telemetry: &Telemetry) -> TelemetryFound {
    let section = root.object_value().and_then(|root| root.object_value(telemetry.section));
    let found = |key| section.as_ref().and_then(|s| s.get(key)).and_then(|p| p.to_serde_value());
    match found(telemetry.anchor) {
        Some(value) if Some(&value) == telemetry.anchor_value() => TelemetryFound::Ours,
        Some(_) => TelemetryFound::Foreign,
        // One of the others set to something else: somebody has plans of their own.
        None if telemetry.values.iter().any(|(k, v)| found(k).is_some_and(|f| f != *v)) => {
            TelemetryFound::Foreign
        }
        None => TelemetryFound::Absent,
    }
}

/// Where a hook sits, for those who know hooks by their place (Codex's trust).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub event: String,
    pub group: usize,
    pub index: usize,
    pub is_ours: bool,
    /// Its place after ours are gone; `None` for ours.
    pub after: Option<(usize, usize)>,
}

pub fn places(text: &str, wanted: &Wanted) -> Result<Vec<Place>, Refused> {
    let root = open(text, wanted)?;
    Ok(editing::places(&root))
}

/// One value of the file, for notes about switches that the operator has set.
pub fn value_at(text: &str, wanted: &Wanted, pointer: &str) -> Option<Value> {
    let root = open(text, wanted).ok()?;
    root.to_serde_value()?.pointer(pointer).cloned()
}

/// Event names start with a capital; a client's own switches beside them do not.
pub fn is_event(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_uppercase())
}

fn open(text: &str, wanted: &Wanted) -> Result<CstRootNode, Refused> {
    json_text::check(text, wanted.dialect, wanted.telemetry.as_ref().map(|t| t.section))?;
    let root = json_text::parse(text, wanted.dialect)?;
    // A file of nothing but comments has no value yet.
    root.object_value_or_create();
    Ok(root)
}
