//! Two cards joined into one, without losing a value.
//!
//! One card is the base: its lines stay as they are, and what the other one says besides is added before its
//! END. Pure, and sure of itself: what was added is read again before it is given out. How a line is written
//! in another version is for [`written`].
//!
//! | of the other card | what becomes of it |
//! |---|---|
//! | what the base says, too | nothing; parameters that only the other has are added to the base's line, types united |
//! | what makes a value the first | nothing, unless the base has no value of that name |
//! | what may stand only once, and says something else | it is kept as `X-LARDER-` and its name |
//! | UID | always kept so: the base stays the item it is |
//! | VERSION, PRODID, REV | nothing: they are about the other card, not about the person |
//! | members of a list | those that the base has not |
//! | lines of a group | all, under a name that the base does not use, if the base lacks one of them |
//! | what is no property | `X-LARDER-LINES`, as text; of a card within the card, AGENT |

mod parts;

use super::written::{self, Binary, Params, Style, Writing, add_values, leave_places, params};
use crate::decode::{split_raw, split_structured, unescape_text};
use crate::edit::{splice, text_of};
use crate::property::Property;
use crate::value::clean;
use parts::{KEPT, Meaning, Parts, first_name, is_value, says_something};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Of more lines of the base that say the same the rest is not looked at: no card needs them.
const MOST: usize = 64;
/// They may stand once (RFC 6350, 6; RFC 6474; programs' own that mean one thing).
const ONCE: &[&str] = &[
    "N",
    "BDAY",
    "ANNIVERSARY",
    "BIRTHPLACE",
    "DEATHDATE",
    "DEATHPLACE",
    "GENDER",
    "KIND",
    "UID",
    "X-EVOLUTION-FILE-AS",
    "X-EVOLUTION-LIST",
    "X-ADDRESSBOOKSERVER-KIND",
];
/// They, too, before version 4.0.
const ONCE_OLD: &[&str] = &["FN", "SORT-STRING", "NAME", "CLASS", "MAILER"];

/// The base with all values of the other card that it does not have. `None`: the base is no whole card that
/// could be added to.
#[must_use]
pub fn joined(base: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let (text, other) = (text_of(base), text_of(other));
    let (into, from) = (Parts::of(&text), Parts::of(&other));
    let end = into.end.filter(|_| into.is_whole())?;
    let mut join = Join::new(&into, &from);
    join.decide();
    let edits = join.edits(end);
    let result = splice(base, &edits)?;
    join.is_in(&result).then_some(result)
}

/// What becomes of a property of the other card.
enum Fate {
    /// It says nothing, or nothing about the person.
    Left,
    /// The base's property of this number says it, but for these parameters.
    Said(usize, Params),
    /// It takes the place of the base's property of this number.
    Instead(usize),
    /// It is added under this name.
    Added(String),
    /// These members of the list are added.
    Members(Vec<String>),
}

/// The work of joining two cards.
struct Join<'c, 't> {
    into: &'c Parts<'t>,
    from: &'c Parts<'t>,
    /// The base's properties by what they say.
    by_meaning: HashMap<&'c Meaning, Vec<usize>>,
    /// The names of which the base has a value, as they were first.
    valued: HashSet<&'c str>,
    /// By the base's properties: the parameters they get.
    united: HashMap<usize, Params>,
    /// Is all of one group in the other?
    fits: HashMap<(String, Option<String>), bool>,
    /// The members of the base's lists, by name, and those that are added.
    lists: HashMap<String, HashSet<String>>,
    fates: Vec<Fate>,
    /// The names that groups get in the base.
    groups: HashMap<String, String>,
    /// What has to be read in the result: names and values; and how many properties.
    added: Vec<Meaning>,
}

impl<'c, 't> Join<'c, 't> {
    fn new(into: &'c Parts<'t>, from: &'c Parts<'t>) -> Join<'c, 't> {
        let mut by_meaning: HashMap<&Meaning, Vec<usize>> = HashMap::new();
        for (at, meaning) in into.meanings.iter().enumerate() {
            by_meaning.entry(meaning).or_default().push(at);
        }
        Join {
            into,
            from,
            by_meaning,
            valued: into
                .meanings
                .iter()
                .filter(|one| is_value(one))
                .map(|(name, _)| &name[..])
                .collect(),
            united: HashMap::new(),
            fits: HashMap::new(),
            lists: HashMap::new(),
            fates: Vec::new(),
            groups: HashMap::new(),
            added: Vec::new(),
        }
    }

    fn decide(&mut self) {
        let from = self.from;
        for (property, meaning) in from.card.properties().iter().zip(&from.meanings) {
            let fate = self.fate(property, meaning);
            self.fates.push(fate);
        }
        self.keep_beside();
        self.keep_groups();
        self.name_groups();
    }

    fn fate(&mut self, property: &'c Property<'t>, meaning: &Meaning) -> Fate {
        if !says_something(property, meaning) {
            return Fate::Left;
        }
        let target = self.target(property);
        if let Some((at, missing)) = self.said(property, meaning, &target) {
            let united = self.united.entry(at).or_default();
            for (name, values) in &missing {
                add_values(united, name, values.clone());
            }
            return Fate::Said(at, missing);
        }
        if let Some(at) = self.emptier(property, meaning) {
            return Fate::Instead(at);
        }
        match self.members(property) {
            Some(members) if members.is_empty() => Fate::Left,
            Some(members) => Fate::Members(members),
            None => Fate::Added(target),
        }
    }

    /// The name that a property gets in the base, if it has to be added.
    fn target(&self, property: &Property<'_>) -> String {
        let name = property.name();
        let is = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        let once = is(ONCE) || (self.into.card.version() < super::Version::V4_0 && is(ONCE_OLD));
        if property.is("UID") || (once && self.into.has(name)) {
            return format!("{KEPT}{}", name.to_ascii_uppercase());
        }
        name.to_string()
    }

    /// The base's property that says the same, and the parameters it lacks. One that lacks none goes first.
    fn said(
        &mut self,
        property: &'c Property<'t>,
        meaning: &Meaning,
        target: &str,
    ) -> Option<(usize, Params)> {
        let mut found: Option<(usize, Params)> = None;
        let same = self.by_meaning.get(meaning)?;
        for at in same.iter().take(MOST).copied().collect::<Vec<_>>() {
            let known = self.into.card.properties().get(at)?;
            // What was kept of a third card may be what the base says itself.
            let named = known.is(target)
                || known.is(property.name())
                || known.is(&first_name(property.name()));
            if !named || !self.group_fits(property, known) {
                continue;
            }
            match self.missing(property, at, known) {
                Some(missing) if missing.is_empty() => return Some((at, missing)),
                Some(missing) if found.is_none() && known.behind_name().is_some() => {
                    found = Some((at, missing));
                }
                _ => {}
            }
        }
        found
    }

    fn group_fits(&mut self, property: &Property<'_>, known: &Property<'_>) -> bool {
        let Some((name, said)) = self.from.group(property) else { return true };
        let there = self.into.group(known);
        let key = (name, there.as_ref().map(|(name, _)| name.clone()));
        *self
            .fits
            .entry(key)
            .or_insert_with(|| there.is_some_and(|(_, there)| said.is_subset(there)))
    }

    /// The parameters that the base's property lacks; `None`: they contradict its own, or those it gets already.
    fn missing(&self, property: &Property<'_>, at: usize, known: &Property<'_>) -> Option<Params> {
        let to = self.into.card.version();
        let there = params(known, to, to);
        let binary = Binary::of(known).is_some();
        let (mut new, mut missing) =
            (params(property, self.from.card.version(), to), Params::new());
        leave_places(&mut new);
        for (name, values) in new {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("VALUE") || (binary && (is("TYPE") || is("MEDIATYPE"))) {
                continue;
            }
            let united = self.united.get(&at).into_iter().flatten();
            let mut same = there.iter().chain(united).filter(|(known, _)| is(known)).peekable();
            if is("TYPE") {
                let same: Vec<_> = same.flat_map(|(_, values)| values).collect();
                let is_new =
                    |value: &String| !same.iter().any(|known| known.eq_ignore_ascii_case(value));
                let new: Vec<_> = values.into_iter().filter(is_new).collect();
                if !new.is_empty() {
                    missing.push((name, new));
                }
            } else if same.peek().is_none() {
                missing.push((name, values));
            } else if !same.all(|(_, same)| *same == values) {
                return None;
            }
        }
        Some(missing)
    }

    /// The base's only property of this name, if all that it says is part of what this one says.
    fn emptier(&self, property: &Property<'_>, (name, value): &Meaning) -> Option<usize> {
        if self.target(property) == property.name() || property.group().is_some() {
            return None;
        }
        let at = self.into.only(name).filter(|_| self.from.only(name).is_some())?;
        let known = self.into.card.properties().get(at)?;
        let (_, said) = self.into.meanings.get(at)?;
        let to = self.into.card.version();
        let bare = known.group().is_none() && params(known, to, to).is_empty();
        let mut parts = value.split(|byte| *byte == 0x1f);
        let part_of = name == "N"
            && said.split(|byte| *byte == 0x1f).all(|part| {
                let other = parts.next().unwrap_or_default();
                part.is_empty() || part == other
            });
        (bare && !property.is("UID") && (said.is_empty() || part_of)).then_some(at)
    }

    /// The members of a list that the base has not; `None`: it is no list, or it has parameters.
    fn members(&mut self, property: &Property<'_>) -> Option<Vec<String>> {
        let to = self.into.card.version();
        let is_list = property.is("CATEGORIES") || property.is("NICKNAME");
        if !is_list
            || property.group().is_some()
            || !params(property, self.from.card.version(), to).is_empty()
        {
            return None;
        }
        let there = self.lists.entry(property.name().to_ascii_uppercase()).or_insert_with(|| {
            let of_name =
                self.into.card.properties().iter().filter(|known| known.is(property.name()));
            let members = |known: &Property<'_>| -> Vec<String> {
                split_structured(&known.text(), ',').iter().filter_map(|one| clean(one)).collect()
            };
            of_name.flat_map(members).collect()
        });
        let text = property.text();
        let is_new =
            |part: &&str| clean(&unescape_text(part)).is_some_and(|member| there.insert(member));
        Some(split_raw(&text, ',').filter(is_new).map(str::to_string).collect())
    }

    /// What is said by a line that gives way is added: that line says it no more.
    fn keep_beside(&mut self) {
        let gave_way = self.gave_way();
        for at in 0..self.fates.len() {
            if let Some(Fate::Said(known, _)) = self.fates.get(at)
                && gave_way.contains(known)
                && let Some(property) = self.from.card.properties().get(at)
            {
                let target = self.target(property);
                if let Some(fate) = self.fates.get_mut(at) {
                    *fate = Fate::Added(target);
                }
            }
        }
    }

    fn gave_way(&self) -> HashSet<usize> {
        let instead = |fate: &Fate| if let Fate::Instead(at) = fate { Some(*at) } else { None };
        self.fates.iter().filter_map(instead).collect()
    }

    /// A group of which anything is added is added whole: a number belongs to its label.
    fn keep_groups(&mut self) {
        let from = self.from;
        let group = |at: usize| from.group(from.card.properties().get(at)?).map(|(name, _)| name);
        let added: HashSet<String> = (self.fates.iter().enumerate())
            .filter(|(_, fate)| matches!(fate, Fate::Added(_)))
            .filter_map(|(at, _)| group(at))
            .collect();
        for at in 0..self.fates.len() {
            let said = matches!(self.fates.get(at), Some(Fate::Said(..)));
            if said
                && group(at).is_some_and(|group| added.contains(&group))
                && let (Some(property), Some(fate)) =
                    (from.card.properties().get(at), self.fates.get_mut(at))
            {
                let name = property.name();
                let once = self.into.has(name)
                    && ONCE.iter().chain(ONCE_OLD).any(|known| name.eq_ignore_ascii_case(known));
                let kept = format!("{KEPT}{}", name.to_ascii_uppercase());
                *fate = Fate::Added(if once { kept } else { name.to_string() });
            }
        }
    }

    /// Gives the groups of what is added names that the base does not use.
    fn name_groups(&mut self) {
        let names = |parts: &'c Parts<'t>| {
            parts.card.properties().iter().filter_map(|property| property.group())
        };
        let used: HashSet<String> = names(self.into).map(str::to_ascii_lowercase).collect();
        let mut taken: HashSet<String> = names(self.from).map(str::to_ascii_lowercase).collect();
        taken.extend(used.iter().cloned());
        let mut number = 0;
        for (property, fate) in self.from.card.properties().iter().zip(&self.fates) {
            let (Some(group), Fate::Added(_)) = (property.group(), fate) else { continue };
            let lower = group.to_ascii_lowercase();
            if !used.contains(&lower) || self.groups.contains_key(&lower) {
                continue;
            }
            let mut name = lower.clone();
            while taken.contains(&name) {
                number += 1;
                name = format!("item{number}");
            }
            taken.insert(name.clone());
            self.groups.insert(lower, name);
        }
    }

    /// What changes in the base's text, in its order.
    fn edits(&mut self, end: usize) -> Vec<(Range<usize>, String)> {
        let style = self.into.style();
        let (mut edits, mut lines) = (Vec::new(), String::new());
        let mut missing: HashMap<usize, Params> = HashMap::new();
        for (at, fate) in self.fates.iter().enumerate() {
            let (Some(property), Some(meaning)) =
                (self.from.card.properties().get(at), self.from.meanings.get(at))
            else {
                continue;
            };
            match fate {
                Fate::Left => {}
                Fate::Said(known, params) => {
                    let there = missing.entry(*known).or_default();
                    for (name, values) in params.clone() {
                        add_values(there, &name, values);
                    }
                }
                Fate::Instead(known) => {
                    let span = self.into.spans.get(*known).cloned().unwrap_or(end..end);
                    edits.push((span, self.line(property, property.name(), style)));
                    self.added.push(meaning.clone());
                }
                Fate::Added(name) => {
                    lines.push_str(&self.line(property, name, style));
                    self.added.push(meaning.clone());
                }
                Fate::Members(members) => {
                    let from = self.from.card.version();
                    lines.push_str(&written::list_line(property.name(), members, from, style));
                }
            }
        }
        for (known, params) in missing {
            if let (Some(span), Some(property)) =
                (self.into.spans.get(known), self.into.card.properties().get(known))
                && !params.is_empty()
            {
                let place = span.start + property.name_end();
                edits.push((place..place, written::write_params(&params, style.version)));
            }
        }
        lines.push_str(&self.loose_lines(style));
        if !lines.is_empty() {
            edits.push((end..end, format!("{}{lines}", self.before_lines())));
        }
        edits.sort_by_key(|(range, _)| range.start);
        edits
    }

    fn line(&self, property: &Property<'_>, name: &str, style: Style) -> String {
        let group = property.group().map(|group| {
            self.groups.get(&group.to_ascii_lowercase()).map_or(group, String::as_str)
        });
        let from = self.from.card.version();
        let placed = !self.valued.contains(first_name(property.name()).as_str());
        Writing { property, from, group, name, placed }.line(style)
    }

    /// Where the base's last line ends in a soft break, an empty line keeps what is added out of it.
    fn before_lines(&self) -> &'static str {
        let soft = self.into.card.properties().last().is_some_and(|last| {
            let encoding = last.param("ENCODING").unwrap_or_default();
            encoding.eq_ignore_ascii_case("QUOTED-PRINTABLE")
                && last.raw().trim_ascii_end().ends_with(b"=")
        });
        if soft { self.into.line_end } else { "" }
    }

    /// The lines that are no properties, which the base has not.
    fn loose_lines(&mut self, style: Style) -> String {
        let mut lines = String::new();
        for (name, text) in &self.from.loose {
            let meaning = (first_name(name), clean(text).unwrap_or_default().into_bytes());
            let there = self.into.loose.iter().any(|known| known == &(*name, text.clone()));
            if !there && !self.by_meaning.contains_key(&meaning) {
                lines.push_str(&written::loose_line(name, text, style));
                self.added.push(meaning);
            }
        }
        lines
    }

    /// Is all that was added in the result, and nothing of the base lost, and nothing else there?
    fn is_in(&self, result: &[u8]) -> bool {
        let text = text_of(result);
        let parts = Parts::of(&text);
        let there: HashSet<&Meaning> = parts.meanings.iter().collect();
        let listed = self.fates.iter().filter(|fate| matches!(fate, Fate::Members(_))).count();
        let gave_way = self.gave_way();
        let stays = |at: usize, meaning| gave_way.contains(&at) || there.contains(meaning);
        let base = &self.into.meanings;
        let number = base.len() + self.added.len() + listed - gave_way.len();
        parts.is_whole()
            && parts.card.version() == self.into.card.version()
            && parts.meanings.len() == number
            && parts.loose_text().eq(self.into.loose_text())
            && base.iter().enumerate().all(|(at, meaning)| stays(at, meaning))
            && self.added.iter().all(|meaning| there.contains(meaning))
    }
}
