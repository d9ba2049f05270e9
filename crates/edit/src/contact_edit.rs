//! Changes of single fields of a contact, and new contacts from fields.
//!
//! The functions are pure: a card and the changes give a card. Each change is one edit of
//! [`card_edit`](larder_format::contact::card_edit), so all other bytes stay. Separate from
//! `contact`, which merges whole cards, and from `event`, whose fields depend on each other and on
//! occurrences.

mod card_name;
mod contact_field;
mod value_edits;

use card_name::{CardName, FILE_AS_PROPERTY, NameForm};
use contact_field::{FieldForm, FieldTarget};
use larder_format::contact::card_edit::{
    CardProperty, CardValue, add_card_value, add_only_card_value, card_properties,
    escape_component, is_same_label, remove_card_values, replace_card_value,
};
use larder_format::contact::{Contact, VcardVersion};
use larder_format::decoding::{split_raw, split_structured};
use larder_format::writer::ComponentBuilder;

/// The reason why a contact cannot be changed. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContactEditError {
    /// There is no such field.
    #[error("unknown field {name:?}")]
    UnknownField {
        /// The name.
        name: String,
        /// The nearest field.
        suggestion: Option<&'static str>,
    },
    /// The field cannot be set.
    #[error("field {name:?} of a contact cannot be set")]
    NotEditable {
        /// The name.
        name: String,
    },
    /// A label without a field.
    #[error("{label:?} is a label of several fields")]
    LabelWithoutField {
        /// The label.
        label: String,
    },
    /// The change fits several values.
    #[error("the contact has {count} values of {name}: choose one")]
    SeveralValues {
        /// The field, with the label if one was given.
        name: String,
        /// The number of values.
        count: usize,
        /// A name for each of them, as in [`ContactEdit::set_field`], and its value.
        choices: Vec<(String, String)>,
    },
    /// There is no value with this number.
    #[error(
        "the contact has {count} {} of {name}, so there is no number {number}",
        if *count == 1 { "value" } else { "values" }
    )]
    NoSuchValue {
        /// The field, with the label if one was given.
        name: String,
        /// The number of values.
        count: usize,
        /// The number that was given.
        number: usize,
    },
    /// A number or `+` after the name of a field that a contact has once.
    #[error("a contact has one {name}: leave out {mark:?}")]
    OnlyOnce {
        /// The field.
        name: &'static str,
        /// The number, with the dot before it, or `+`.
        mark: String,
    },
    /// Two texts for one value.
    #[error("{name} is set twice: leave out one of the values")]
    SetTwice {
        /// The field, with the number if one was given.
        name: String,
    },
    /// The field does not take the value.
    #[error("{text:?} is not a valid {name}: use {expected}")]
    InvalidValue {
        /// The field.
        name: &'static str,
        /// The value.
        text: String,
        /// A description of valid values.
        expected: &'static str,
    },
    /// A contact needs a name.
    #[error("a contact needs a name: full_name cannot be empty")]
    EmptyName,
    /// The card cannot be changed with certainty.
    #[error("the card is damaged or has no END:VCARD line, so single fields cannot be changed")]
    DamagedCard,
}

/// A change of one value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ValueChange {
    target: FieldTarget,
    /// The value is added, even if there are values already.
    is_added: bool,
    text: String,
}

/// Changes of a contact, made together: labels and numbers name values that the card had before.
/// Texts for one name, such as two numbers with the label `mobile`, are several values: the first
/// one replaces the value of the card, the next ones are added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContactEdit {
    changes: Vec<ValueChange>,
}

impl ContactEdit {
    /// Adds a change. The name is a field (`phone`), a label and a field (`work.phone`, or
    /// `mobile`, which only numbers have), or one of these and the number of a value (`phone.2`);
    /// with `+` at its end, the value is added. An empty text removes the value.
    ///
    /// # Errors
    /// Unknown fields and invalid values.
    pub fn set_field(&mut self, name: &str, text: &str) -> Result<(), ContactEditError> {
        let (name, is_added) = match name.trim().strip_suffix('+') {
            Some(name) => (name, true),
            None => (name, false),
        };
        self.add_change(FieldTarget::parse(name)?, is_added, text)
    }

    /// Adds a change of a field from `TEXT` or `LABEL=TEXT`.
    ///
    /// # Errors
    /// Unknown fields and invalid values.
    pub fn set_labelled(&mut self, field: &str, text: &str) -> Result<(), ContactEditError> {
        let mut target = FieldTarget::parse(field)?;
        let labelled = text.split_once('=').filter(|(label, _)| {
            target.field.is_labelled() && !label.contains([':', '/', '?', '@', '.'])
        });
        let text = match labelled {
            Some((label, text)) if !label.trim().is_empty() => {
                target.label = Some(label.trim().to_string());
                text
            }
            _ => text,
        };
        self.add_change(target, false, text)
    }

    /// Adds a change of a list from its members, which may contain commas.
    ///
    /// # Errors
    /// Unknown fields.
    pub fn set_members(&mut self, field: &str, members: &[String]) -> Result<(), ContactEditError> {
        let escape = |member: &String| member.replace('\\', "\\\\").replace(',', "\\,");
        let members: Vec<String> = members.iter().map(escape).collect();
        self.set_field(field, &members.join(","))
    }

    fn add_change(
        &mut self,
        target: FieldTarget,
        is_added: bool,
        text: &str,
    ) -> Result<(), ContactEditError> {
        target.check_mark(is_added)?;
        let mut earlier = self.changes.iter();
        let is_repeated = !is_added && earlier.any(|one| !one.is_added && one.target == target);
        if is_repeated && (target.is_only_once() || text.trim().is_empty()) {
            return Err(target.set_twice());
        }
        // The members of all texts for a list are in the list.
        let is_added = is_added || (is_repeated && target.field.form == FieldForm::List);
        let text = target.field.normalise(text)?;
        if text.is_empty() && target.field.property == "FN" {
            return Err(ContactEditError::EmptyName);
        }
        self.changes.push(ValueChange { target, is_added, text });
        Ok(())
    }

    /// Returns whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The names of the fields that change, each once.
    #[must_use]
    pub fn field_names(&self) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for change in &self.changes {
            if !names.contains(&change.target.field.name) {
                names.push(change.target.field.name);
            }
        }
        names
    }

    /// Returns the card with all changes.
    ///
    /// # Errors
    /// [`ContactEditError`]
    pub fn apply(&self, card: &[u8]) -> Result<Vec<u8>, ContactEditError> {
        let (values, others): (Vec<_>, Vec<_>) =
            self.changes.iter().partition(|change| change.target.field.is_whole_value());
        let (removals, others): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|change| change.text.is_empty() && change.target.number.is_some());
        let before = card;
        let mut card = value_edits::apply_value_changes(&values, before)?;
        for change in others {
            card = change.apply(&card)?;
        }
        // A removal changes the numbers of the values after it.
        let mut removals = removals;
        removals.sort_by_key(|change| std::cmp::Reverse(change.target.number));
        for change in removals {
            card = change.apply(&card)?;
        }
        self.update_file_as(before, card)
    }

    /// Returns the changed card with a FILE-AS that follows the name, unless a change sets it.
    fn update_file_as(&self, before: &[u8], card: Vec<u8>) -> Result<Vec<u8>, ContactEditError> {
        let mut properties = self.changes.iter().map(|change| change.target.field.property);
        let is_set = properties.any(|name| name == FILE_AS_PROPERTY);
        let known = card_properties(&card, &[FILE_AS_PROPERTY]);
        let Some(old) = known.first().filter(|_| !is_set) else { return Ok(card) };
        match CardName::from_card(before).file_as_after(&card) {
            Some(text) => replace_card_value(&card, old.position, CardValue::Text(&text))
                .ok_or(ContactEditError::DamagedCard),
            None => Ok(card),
        }
    }

    /// Returns a new card with these values, of version 3.0, which more programs read than 4.0.
    ///
    /// # Errors
    /// [`ContactEditError::EmptyName`] without a name.
    pub fn to_card(&self, uid: &str) -> Result<Vec<u8>, ContactEditError> {
        let is_name = |change: &&ValueChange| {
            matches!(change.target.field.property, "FN" | "N" | "ORG" | "NICKNAME" | "EMAIL")
        };
        let mut ordered: Vec<&ValueChange> = self.changes.iter().collect();
        // The name decides which other properties follow it.
        ordered.sort_by_key(|change| change.target.field.property != "FN");
        let name = ordered.iter().copied().find(is_name).ok_or(ContactEditError::EmptyName)?;
        let head = ComponentBuilder::new("VCARD")
            .add_property("VERSION", &[], VcardVersion::V3_0.name())
            .add_text("UID", uid)
            .add_text("FN", &name.text);
        let mut card = head.finish().into_bytes();
        for change in ordered {
            let change = ValueChange { is_added: true, ..change.clone() };
            card = match change.target.field.form {
                FieldForm::Labelled | FieldForm::Uri | FieldForm::List => change.apply(&card)?,
                _ => ValueChange { is_added: false, ..change }.apply(&card)?,
            };
        }
        Ok(card)
    }
}

impl ValueChange {
    fn apply(&self, card: &[u8]) -> Result<Vec<u8>, ContactEditError> {
        match self.target.field.form {
            FieldForm::Component(place) => self.set_component(card, place),
            FieldForm::List => self.set_list(card),
            FieldForm::FullName => self.set_full_name(card),
            _ if self.target.field.is_whole_value() => {
                value_edits::apply_value_changes(&[self], card)
            }
            _ => self.set_only_value(card),
        }
    }

    /// The new value, of a property of this name.
    fn card_value<'v>(&'v self, parts: &'v [String]) -> CardValue<'v> {
        match self.target.field.form {
            _ if self.target.field.property == "ADR" => CardValue::Components(parts),
            FieldForm::List => CardValue::List(parts),
            FieldForm::Date => CardValue::Date(&self.text),
            _ if self.target.field.property == "URL" => CardValue::Uri(&self.text),
            FieldForm::Uri => CardValue::Uri(&self.text),
            _ => CardValue::Text(&self.text),
        }
    }

    /// The components of an address, or the members of a list.
    fn value_parts(&self, card: &[u8]) -> Vec<String> {
        match self.target.field.form {
            FieldForm::List => {
                let members = split_structured(&self.text, ',').into_iter();
                let members = members.map(|one| one.trim().to_string());
                members.filter(|one| !one.is_empty()).collect()
            }
            _ if self.target.field.property == "ADR" => {
                address_components(&self.text, Contact::parse(card).version())
            }
            _ => Vec::new(),
        }
    }

    /// Chooses the value that changes; `None`: a new one.
    fn choose<'p>(
        &self,
        values: &'p [CardProperty],
    ) -> Result<Option<&'p CardProperty>, ContactEditError> {
        let target = &self.target;
        match target.number {
            _ if self.is_added => Ok(None),
            Some(number) => {
                let chosen = number.checked_sub(1).and_then(|at| values.get(at));
                chosen.map(Some).ok_or_else(|| ContactEditError::NoSuchValue {
                    name: target.name_without_number(),
                    count: values.len(),
                    number,
                })
            }
            // A contact has one N, whose first line counts.
            None if values.len() > 1 && target.field.property != "N" => {
                Err(target.several_values(values))
            }
            None => Ok(values.first()),
        }
    }

    /// Adds a value to those of the card.
    fn add_value(&self, card: &[u8], property: &str, value: CardValue<'_>) -> Option<Vec<u8>> {
        match self.is_added || self.target.field.is_labelled() {
            true => add_card_value(card, property, self.target.label.as_deref(), value),
            false => add_only_card_value(card, property, value),
        }
    }

    /// Sets the value of a property that a card has once, under one of several names.
    fn set_only_value(&self, card: &[u8]) -> Result<Vec<u8>, ContactEditError> {
        let known = card_properties(card, &self.target.field.properties());
        let result = match (known.first(), self.text.is_empty()) {
            (None, true) => return Ok(card.to_vec()),
            (_, true) => {
                let all: Vec<usize> = known.iter().map(|one| one.position).collect();
                remove_card_values(card, &all)
            }
            (Some(old), false) => {
                let rest: Vec<usize> = known.iter().skip(1).map(|one| one.position).collect();
                let card = replace_card_value(card, old.position, self.card_value(&[]));
                match rest.is_empty() {
                    true => card,
                    false => card.and_then(|card| remove_card_values(&card, &rest)),
                }
            }
            (None, false) => {
                let name = self.target.field.property_in(Contact::parse(card).version());
                self.add_value(card, name, self.card_value(&[]))
            }
        };
        result.ok_or(ContactEditError::DamagedCard)
    }

    /// Replaces the members of a list: the first property has them all, the others are removed.
    fn set_list(&self, card: &[u8]) -> Result<Vec<u8>, ContactEditError> {
        let mut members = self.value_parts(card);
        let known = card_properties(card, &self.target.field.properties());
        if self.is_added {
            let there = known.iter().flat_map(|one| split_structured(&one.text, ','));
            let mut all: Vec<String> = there.map(|one| one.trim().to_string()).collect();
            members.retain(|one| !all.contains(one));
            all.append(&mut members);
            members = all;
        }
        let kept = known.first().filter(|_| !members.is_empty());
        let value = CardValue::List(&members);
        let result = match kept {
            Some(old) => replace_card_value(card, old.position, value),
            None if members.is_empty() => Some(card.to_vec()),
            None => self.add_value(card, self.target.field.property, value),
        };
        // The new members come first: a removal can move the property that gets them.
        let rest = known.iter().skip(usize::from(kept.is_some()));
        let rest: Vec<usize> = rest.map(|one| one.position).collect();
        let result = match rest.is_empty() {
            true => result,
            false => result.and_then(|card| remove_card_values(&card, &rest)),
        };
        result.ok_or(ContactEditError::DamagedCard)
    }

    /// Sets a component of N or ORG. FN follows N if it was made of N.
    fn set_component(&self, card: &[u8], place: usize) -> Result<Vec<u8>, ContactEditError> {
        let name = self.target.field.property;
        let known = self.target.select(card_properties(card, &[name]));
        let old = self.choose(&known)?;
        if old.is_none() && self.text.is_empty() {
            return Ok(card.to_vec());
        }
        let version = Contact::parse(card).version();
        let mut components: Vec<String> = old
            .map(|old| split_raw(&old.text, ';').map(str::to_string).collect())
            .unwrap_or_default();
        let length = if name == "N" { 5 } else { place + 1 };
        components.resize(length.max(components.len()), String::new());
        if let Some(component) = components.get_mut(place) {
            *component = escape_component(&self.text, version);
        }
        let before = CardName::from_card(card);
        let is_empty = components.iter().all(|one| one.trim().is_empty());
        let value = CardValue::Components(&components);
        let result = match old {
            Some(old) if is_empty => remove_card_values(card, &[old.position]),
            Some(old) => replace_card_value(card, old.position, value),
            None => self.add_value(card, name, value),
        };
        let card = result.ok_or(ContactEditError::DamagedCard)?;
        if name != "N" {
            return Ok(card);
        }
        let full = card_properties(&card, &["FN"]);
        match (full.first(), before.full_name_after(&card)) {
            (Some(full), Some(text)) => {
                replace_card_value(&card, full.position, CardValue::Text(&text))
                    .ok_or(ContactEditError::DamagedCard)
            }
            _ => Ok(card),
        }
    }

    /// Sets FN. N follows if FN was made of N, or if a person has none. Parts that FN left out
    /// stay.
    fn set_full_name(&self, card: &[u8]) -> Result<Vec<u8>, ContactEditError> {
        let before = CardName::from_card(card);
        let card = value_edits::apply_value_changes(&[self], card)?;
        if self.target.number.is_some_and(|number| number > 1) {
            return Ok(card);
        }
        let form = before.full_name_form();
        if form.is_none() && (before.has_parts || before.is_group) {
            return Ok(card);
        }
        let version = Contact::parse(&card).version();
        let [family, given] =
            before.split_full_name(&self.text).map(|part| escape_component(&part, version));
        let known = card_properties(&card, &["N"]);
        let former = known.first().filter(|_| form != Some(NameForm::AllParts));
        let former = former.into_iter().flat_map(|old| split_raw(&old.text, ';').skip(2));
        let mut components = vec![family, given];
        components.extend(former.map(str::to_string));
        components.resize(components.len().max(5), String::new());
        let value = CardValue::Components(&components);
        let result = match known.first() {
            Some(old) => replace_card_value(&card, old.position, value),
            None => self.add_value(&card, "N", value),
        };
        result.ok_or(ContactEditError::DamagedCard)
    }
}

/// Returns the components of an address: those between semicolons, or else the whole text as the
/// street, because a guess at its parts would be wrong in some countries.
fn address_components(text: &str, version: VcardVersion) -> Vec<String> {
    const STREET: usize = 2;
    const NUMBER: usize = 7;
    let mut components = vec![String::new(); NUMBER];
    let parts: Vec<&str> = text.split(';').collect();
    if let [street] = *parts.as_slice() {
        components[STREET] = escape_component(street, version);
        return components;
    }
    let first = if parts.len() > NUMBER - STREET { 0 } else { STREET };
    for (component, part) in components.iter_mut().skip(first).zip(parts) {
        *component = escape_component(part.trim(), version);
    }
    components
}

impl FieldTarget {
    /// Keeps the values with the label.
    fn select(&self, mut values: Vec<CardProperty>) -> Vec<CardProperty> {
        if let Some(label) = &self.label {
            let has_label = |one: &CardProperty| {
                one.label.as_ref().is_some_and(|known| is_same_label(known, label))
            };
            values.retain(has_label);
        }
        values
    }

    /// Whether a second text for the name has no place of its own.
    fn is_only_once(&self) -> bool {
        self.number.is_some()
            || !matches!(self.field.form, FieldForm::Labelled | FieldForm::Uri | FieldForm::List)
    }

    fn set_twice(&self) -> ContactEditError {
        let number = self.number.map(|number| format!(".{number}")).unwrap_or_default();
        ContactEditError::SetTwice { name: self.name_without_number() + &number }
    }

    /// Refuses a number or `+` if a contact has the field once.
    fn check_mark(&self, is_added: bool) -> Result<(), ContactEditError> {
        let only_once =
            |mark: String| Err(ContactEditError::OnlyOnce { name: self.field.name, mark });
        let has_one_value = self.field.property == "N" || self.field.is_single_valued();
        match (self.field.form, self.number) {
            (form, Some(number)) if has_one_value || form == FieldForm::List => {
                only_once(format!(".{number}"))
            }
            (form, _) if is_added && (has_one_value || form == FieldForm::FullName) => {
                only_once("+".into())
            }
            _ => Ok(()),
        }
    }

    /// The error for a change that fits several values.
    fn several_values(&self, values: &[CardProperty]) -> ContactEditError {
        let label_of = |one: &CardProperty| one.label.clone().unwrap_or_default().to_lowercase();
        let name = self.name_without_number();
        let choices = values.iter().enumerate().map(|(at, one)| {
            let is_only = values.iter().filter(|other| label_of(other) == label_of(one)).count();
            let choice = match &one.label {
                Some(label) if is_only == 1 => format!("{label}.{}", self.field.name),
                _ => format!("{name}.{}", at + 1),
            };
            (choice, one.text.clone())
        });
        ContactEditError::SeveralValues {
            name: name.clone(),
            count: values.len(),
            choices: choices.collect(),
        }
    }
}
