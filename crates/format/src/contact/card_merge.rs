//! The lossless merge of two cards.
//!
//! One card is the base: its lines stay unchanged, and additional values of the other card are
//! inserted before its END. The result is parsed again and verified before it is returned.
//! [`version_conversion`] writes a line in the version of the base.
//!
//! | in the other card | result |
//! |---|---|
//! | a value of the base | missing parameters are added to the base's line, types are united |
//! | a parameter that prefers a value | dropped, unless the base has no value of that name |
//! | a different value of a property that may occur once | kept as `X-LARDER-` and its name |
//! | UID | always kept that way: the base keeps its identity |
//! | VERSION, PRODID, REV | dropped: they describe the other card, not the person |
//! | members of a list | those that the base lacks are added |
//! | lines of a group | all are added, under an unused group name, if the base lacks one of them |
//! | a line that is not a property | `X-LARDER-LINES`, as text; a nested card becomes AGENT |

mod card_layout;

use super::version_conversion::{
    self, BinaryValue, ParamValues, PropertyWriter, VcardStyle, add_values, convert_params,
    strip_position_params,
};
use crate::decoding::{clean_text, split_raw, split_structured, unescape_text};
use crate::property::Property;
use crate::splice::{decode_text, splice};
pub(super) use card_layout::CardLayout;
use card_layout::{CanonicalProperty, LARDER_PREFIX, has_content, has_value, original_name};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// At most this many equivalent lines of the base are compared; no real card has more.
const MAX_EQUIVALENT_LINES: usize = 64;
/// Properties that may occur once (RFC 6350, 6; RFC 6474; single-valued extensions).
const SINGLE_VALUE_PROPERTIES: &[&str] = &[
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
/// Further properties that may occur once before version 4.0.
const SINGLE_VALUE_PROPERTIES_BEFORE_V4: &[&str] =
    &["FN", "SORT-STRING", "NAME", "CLASS", "MAILER"];

/// Returns the base with all values of the other card that it lacks, or `None` if the base is not a
/// complete card.
#[must_use]
pub fn merge_cards(base: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let (text, other) = (decode_text(base), decode_text(other));
    let (into, from) = (CardLayout::parse(&text), CardLayout::parse(&other));
    let end = into.end.filter(|_| into.is_complete())?;
    let mut join = CardMerge::new(&into, &from);
    join.decide_actions();
    let edits = join.build_edits(end);
    let result = splice(base, &edits)?;
    join.verify_result(&result).then_some(result)
}

/// The treatment of a property of the other card.
enum MergeAction {
    /// The property has no value, or does not describe the person.
    Ignore,
    /// The base's property with this number has the value, except for these parameters.
    AddParams(usize, ParamValues),
    /// The property replaces the base's property with this number.
    Replace(usize),
    /// The property is added under this name.
    Add(String),
    /// These members are added to the list.
    AddMembers(Vec<String>),
}

/// The state of a merge.
struct CardMerge<'c, 't> {
    base: &'c CardLayout<'t>,
    other: &'c CardLayout<'t>,
    /// The base's properties by canonical value.
    by_canonical: HashMap<&'c CanonicalProperty, Vec<usize>>,
    /// The original names of the properties with a value in the base.
    names_with_value: HashSet<&'c str>,
    /// The parameters to add, by property of the base.
    added_params: HashMap<usize, ParamValues>,
    /// Whether one group contains all of another, by their names.
    group_matches: HashMap<(String, Option<String>), bool>,
    /// The members of the base's lists by name, including added ones.
    list_members: HashMap<String, HashSet<String>>,
    actions: Vec<MergeAction>,
    /// The new names of groups in the base.
    group_names: HashMap<String, String>,
    /// The properties that the result must contain, by canonical value.
    added: Vec<CanonicalProperty>,
}

impl<'c, 't> CardMerge<'c, 't> {
    fn new(base: &'c CardLayout<'t>, other: &'c CardLayout<'t>) -> CardMerge<'c, 't> {
        let mut by_canonical: HashMap<&CanonicalProperty, Vec<usize>> = HashMap::new();
        for (at, meaning) in base.canonical.iter().enumerate() {
            by_canonical.entry(meaning).or_default().push(at);
        }
        CardMerge {
            base,
            other,
            by_canonical,
            names_with_value: base
                .canonical
                .iter()
                .filter(|one| has_value(one))
                .map(|(name, _)| &name[..])
                .collect(),
            added_params: HashMap::new(),
            group_matches: HashMap::new(),
            list_members: HashMap::new(),
            actions: Vec::new(),
            group_names: HashMap::new(),
            added: Vec::new(),
        }
    }

    fn decide_actions(&mut self) {
        let from = self.other;
        for (property, meaning) in from.card.properties().iter().zip(&from.canonical) {
            let fate = self.choose_action(property, meaning);
            self.actions.push(fate);
        }
        self.add_displaced_values();
        self.add_whole_groups();
        self.rename_groups();
    }

    fn choose_action(
        &mut self,
        property: &'c Property<'t>,
        meaning: &CanonicalProperty,
    ) -> MergeAction {
        if !has_content(property, meaning) {
            return MergeAction::Ignore;
        }
        let target = self.target_name(property);
        if let Some((at, missing)) = self.find_equivalent(property, meaning, &target) {
            let united = self.added_params.entry(at).or_default();
            for (name, values) in &missing {
                add_values(united, name, values.clone());
            }
            return MergeAction::AddParams(at, missing);
        }
        if let Some(at) = self.find_subsumed(property, meaning) {
            return MergeAction::Replace(at);
        }
        match self.take_missing_members(property) {
            Some(members) if members.is_empty() => MergeAction::Ignore,
            Some(members) => MergeAction::AddMembers(members),
            None => MergeAction::Add(target),
        }
    }

    /// Returns the name that an added property gets in the base.
    fn target_name(&self, property: &Property<'_>) -> String {
        let name = property.name();
        let has_name = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
        let once = has_name(SINGLE_VALUE_PROPERTIES)
            || (self.base.card.version() < super::VcardVersion::V4_0
                && has_name(SINGLE_VALUE_PROPERTIES_BEFORE_V4));
        if property.has_name("UID") || (once && self.base.has_property(name)) {
            return format!("{LARDER_PREFIX}{}", name.to_ascii_uppercase());
        }
        name.to_string()
    }

    /// Returns the base's equivalent property and the parameters it lacks. A property that lacks
    /// none is preferred.
    fn find_equivalent(
        &mut self,
        property: &'c Property<'t>,
        meaning: &CanonicalProperty,
        target: &str,
    ) -> Option<(usize, ParamValues)> {
        let mut found: Option<(usize, ParamValues)> = None;
        let same = self.by_canonical.get(meaning)?;
        for at in same.iter().take(MAX_EQUIVALENT_LINES).copied().collect::<Vec<_>>() {
            let known = self.base.card.properties().get(at)?;
            // A value kept from a third card can equal a value of the base.
            let named = known.has_name(target)
                || known.has_name(property.name())
                || known.has_name(&original_name(property.name()));
            if !named || !self.match_group(property, known) {
                continue;
            }
            match self.missing_params(property, at, known) {
                Some(missing) if missing.is_empty() => return Some((at, missing)),
                Some(missing) if found.is_none() && known.text_after_name().is_some() => {
                    found = Some((at, missing));
                }
                _ => {}
            }
        }
        found
    }

    fn match_group(&mut self, property: &Property<'_>, known: &Property<'_>) -> bool {
        let Some((name, said)) = self.other.find_group(property) else { return true };
        let there = self.base.find_group(known);
        let key = (name, there.as_ref().map(|(name, _)| name.clone()));
        *self
            .group_matches
            .entry(key)
            .or_insert_with(|| there.is_some_and(|(_, there)| said.is_subset(there)))
    }

    /// Returns the parameters that the base's property lacks, or `None` if they contradict its own
    /// or already added ones.
    fn missing_params(
        &self,
        property: &Property<'_>,
        at: usize,
        known: &Property<'_>,
    ) -> Option<ParamValues> {
        let to = self.base.card.version();
        let there = convert_params(known, to, to);
        let binary = BinaryValue::from_property(known).is_some();
        let (mut new, mut missing) =
            (convert_params(property, self.other.card.version(), to), ParamValues::new());
        strip_position_params(&mut new);
        for (name, values) in new {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("VALUE") || (binary && (is("TYPE") || is("MEDIATYPE"))) {
                continue;
            }
            let united = self.added_params.get(&at).into_iter().flatten();
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

    /// Returns the base's only property of this name if its value is part of this one.
    fn find_subsumed(
        &self,
        property: &Property<'_>,
        (name, value): &CanonicalProperty,
    ) -> Option<usize> {
        if self.target_name(property) == property.name() || property.group().is_some() {
            return None;
        }
        let at = self.base.find_single(name).filter(|_| self.other.find_single(name).is_some())?;
        let known = self.base.card.properties().get(at)?;
        let (_, said) = self.base.canonical.get(at)?;
        let to = self.base.card.version();
        let bare = known.group().is_none() && convert_params(known, to, to).is_empty();
        let mut parts = value.split(|byte| *byte == 0x1f);
        let part_of = name == "N"
            && said.split(|byte| *byte == 0x1f).all(|part| {
                let other = parts.next().unwrap_or_default();
                part.is_empty() || part == other
            });
        (bare && !property.has_name("UID") && (said.is_empty() || part_of)).then_some(at)
    }

    /// Returns the list members that the base lacks, or `None` if the property is not a list or has
    /// parameters.
    fn take_missing_members(&mut self, property: &Property<'_>) -> Option<Vec<String>> {
        let to = self.base.card.version();
        let is_list = property.has_name("CATEGORIES") || property.has_name("NICKNAME");
        if !is_list
            || property.group().is_some()
            || !convert_params(property, self.other.card.version(), to).is_empty()
        {
            return None;
        }
        let there =
            self.list_members.entry(property.name().to_ascii_uppercase()).or_insert_with(|| {
                let of_name = self
                    .base
                    .card
                    .properties()
                    .iter()
                    .filter(|known| known.has_name(property.name()));
                let members = |known: &Property<'_>| -> Vec<String> {
                    split_structured(&known.text(), ',')
                        .iter()
                        .filter_map(|one| clean_text(one))
                        .collect()
                };
                of_name.flat_map(members).collect()
            });
        let text = property.text();
        let is_new = |part: &&str| {
            clean_text(&unescape_text(part)).is_some_and(|member| there.insert(member))
        };
        Some(split_raw(&text, ',').filter(is_new).map(str::to_string).collect())
    }

    /// Adds the values of replaced lines that the replacements do not contain.
    fn add_displaced_values(&mut self) {
        let gave_way = self.displaced_properties();
        for at in 0..self.actions.len() {
            if let Some(MergeAction::AddParams(known, _)) = self.actions.get(at)
                && gave_way.contains(known)
                && let Some(property) = self.other.card.properties().get(at)
            {
                let target = self.target_name(property);
                if let Some(fate) = self.actions.get_mut(at) {
                    *fate = MergeAction::Add(target);
                }
            }
        }
    }

    fn displaced_properties(&self) -> HashSet<usize> {
        let instead =
            |fate: &MergeAction| if let MergeAction::Replace(at) = fate { Some(*at) } else { None };
        self.actions.iter().filter_map(instead).collect()
    }

    /// Adds the remaining lines of each group with an added line, because a number belongs to its
    /// label.
    fn add_whole_groups(&mut self) {
        let from = self.other;
        let group =
            |at: usize| from.find_group(from.card.properties().get(at)?).map(|(name, _)| name);
        let added: HashSet<String> = (self.actions.iter().enumerate())
            .filter(|(_, fate)| matches!(fate, MergeAction::Add(_)))
            .filter_map(|(at, _)| group(at))
            .collect();
        for at in 0..self.actions.len() {
            let is_changed = matches!(self.actions.get(at), Some(MergeAction::AddParams(..)));
            if is_changed
                && group(at).is_some_and(|group| added.contains(&group))
                && let (Some(property), Some(fate)) =
                    (from.card.properties().get(at), self.actions.get_mut(at))
            {
                let name = property.name();
                let once = self.base.has_property(name)
                    && SINGLE_VALUE_PROPERTIES
                        .iter()
                        .chain(SINGLE_VALUE_PROPERTIES_BEFORE_V4)
                        .any(|known| name.eq_ignore_ascii_case(known));
                let kept = format!("{LARDER_PREFIX}{}", name.to_ascii_uppercase());
                *fate = MergeAction::Add(if once { kept } else { name.to_string() });
            }
        }
    }

    /// Renames added groups to names that the base does not use.
    fn rename_groups(&mut self) {
        let names = |parts: &'c CardLayout<'t>| {
            parts.card.properties().iter().filter_map(|property| property.group())
        };
        let used: HashSet<String> = names(self.base).map(str::to_ascii_lowercase).collect();
        let mut taken: HashSet<String> = names(self.other).map(str::to_ascii_lowercase).collect();
        taken.extend(used.iter().cloned());
        let mut number = 0;
        for (property, fate) in self.other.card.properties().iter().zip(&self.actions) {
            let (Some(group), MergeAction::Add(_)) = (property.group(), fate) else { continue };
            let lower = group.to_ascii_lowercase();
            if !used.contains(&lower) || self.group_names.contains_key(&lower) {
                continue;
            }
            let mut name = lower.clone();
            while taken.contains(&name) {
                number += 1;
                name = format!("item{number}");
            }
            taken.insert(name.clone());
            self.group_names.insert(lower, name);
        }
    }

    /// Returns the edits of the base's text, in order.
    fn build_edits(&mut self, end: usize) -> Vec<(Range<usize>, String)> {
        let style = self.base.style();
        let (mut edits, mut lines) = (Vec::new(), String::new());
        let mut missing: HashMap<usize, ParamValues> = HashMap::new();
        for (at, fate) in self.actions.iter().enumerate() {
            let (Some(property), Some(meaning)) =
                (self.other.card.properties().get(at), self.other.canonical.get(at))
            else {
                continue;
            };
            match fate {
                MergeAction::Ignore => {}
                MergeAction::AddParams(known, params) => {
                    let there = missing.entry(*known).or_default();
                    for (name, values) in params.clone() {
                        add_values(there, &name, values);
                    }
                }
                MergeAction::Replace(known) => {
                    let span = self.base.spans.get(*known).cloned().unwrap_or(end..end);
                    edits.push((span, self.format_line(property, property.name(), style)));
                    self.added.push(meaning.clone());
                }
                MergeAction::Add(name) => {
                    lines.push_str(&self.format_line(property, name, style));
                    self.added.push(meaning.clone());
                }
                MergeAction::AddMembers(members) => {
                    let from = self.other.card.version();
                    lines.push_str(&version_conversion::format_list_line(
                        property.name(),
                        members,
                        from,
                        style,
                    ));
                }
            }
        }
        for (known, params) in missing {
            if let (Some(span), Some(property)) =
                (self.base.spans.get(known), self.base.card.properties().get(known))
                && !params.is_empty()
            {
                let place = span.start + property.name_end();
                edits.push((
                    place..place,
                    version_conversion::format_params(&params, style.version),
                ));
            }
        }
        lines.push_str(&self.format_unparsed_lines(style));
        if !lines.is_empty() {
            edits.push((end..end, format!("{}{lines}", self.separator_before_lines())));
        }
        edits.sort_by_key(|(range, _)| range.start);
        edits
    }

    fn format_line(&self, property: &Property<'_>, name: &str, style: VcardStyle) -> String {
        let group = property.group().map(|group| {
            self.group_names.get(&group.to_ascii_lowercase()).map_or(group, String::as_str)
        });
        let from = self.other.card.version();
        let placed = !self.names_with_value.contains(original_name(property.name()).as_str());
        PropertyWriter { property, from_version: from, group, name, keep_position: placed }
            .format_line(style)
    }

    /// An empty line separates added lines from a last line that ends in a soft break.
    fn separator_before_lines(&self) -> &'static str {
        let soft = self.base.card.properties().last().is_some_and(|last| {
            let encoding = last.param("ENCODING").unwrap_or_default();
            encoding.eq_ignore_ascii_case("QUOTED-PRINTABLE")
                && last.raw().trim_ascii_end().ends_with(b"=")
        });
        if soft { self.base.line_end } else { "" }
    }

    /// Formats the lines that are not properties and that the base lacks.
    fn format_unparsed_lines(&mut self, style: VcardStyle) -> String {
        let mut lines = String::new();
        for (name, text) in &self.other.unparsed_lines {
            let meaning = (original_name(name), clean_text(text).unwrap_or_default().into_bytes());
            let there =
                self.base.unparsed_lines.iter().any(|known| known == &(*name, text.clone()));
            if !there && !self.by_canonical.contains_key(&meaning) {
                lines.push_str(&version_conversion::format_unparsed_line(name, text, style));
                self.added.push(meaning);
            }
        }
        lines
    }

    /// Returns whether the result has everything that was added, everything of the base, and
    /// nothing else.
    fn verify_result(&self, result: &[u8]) -> bool {
        let text = decode_text(result);
        let parts = CardLayout::parse(&text);
        let there: HashSet<&CanonicalProperty> = parts.canonical.iter().collect();
        let listed =
            self.actions.iter().filter(|fate| matches!(fate, MergeAction::AddMembers(_))).count();
        let gave_way = self.displaced_properties();
        let stays = |at: usize, meaning| gave_way.contains(&at) || there.contains(meaning);
        let base = &self.base.canonical;
        let number = base.len() + self.added.len() + listed - gave_way.len();
        parts.is_complete()
            && parts.card.version() == self.base.card.version()
            && parts.canonical.len() == number
            && parts.unparsed_text().eq(self.base.unparsed_text())
            && base.iter().enumerate().all(|(at, meaning)| stays(at, meaning))
            && self.added.iter().all(|meaning| there.contains(meaning))
    }
}
