//! Changes of properties that a card may have several times, such as numbers and addresses.
//!
//! Each change chooses its value in the card as it was before all of them, so a number or a label
//! does not name a value that an earlier change of the same command wrote or moved. Separate from
//! the changes of names, lists and dates, which read the card that the earlier ones left.

use super::contact_field::FieldForm;
use super::{ContactEditError, ValueChange};
use larder_format::contact::card_edit::{card_properties, remove_card_values, replace_card_value};

/// Returns the card with these changes.
pub(super) fn apply_value_changes(
    changes: &[&ValueChange],
    card: &[u8],
) -> Result<Vec<u8>, ContactEditError> {
    let positions = choose_positions(changes, card)?;
    let mut result = card.to_vec();
    let mut removed = Vec::new();
    // A replaced value keeps its position, and an added one comes last or in place of an empty
    // one, so the positions hold.
    for (change, position) in changes.iter().zip(positions) {
        let parts = change.value_parts(&result);
        let value = change.card_value(&parts);
        let changed = match (position, change.text.is_empty()) {
            (None, true) => continue,
            (Some(position), true) => {
                removed.push(position);
                continue;
            }
            (Some(position), false) => replace_card_value(&result, position, value),
            (None, false) => change.add_value(&result, change.target.field.property, value),
        };
        result = changed.ok_or(ContactEditError::DamagedCard)?;
    }
    if !removed.is_empty() {
        result = remove_card_values(&result, &removed).ok_or(ContactEditError::DamagedCard)?;
    }
    Ok(result)
}

/// Returns the position of the value that each change replaces or removes; `None`: a new value.
fn choose_positions(
    changes: &[&ValueChange],
    card: &[u8],
) -> Result<Vec<Option<usize>>, ContactEditError> {
    let mut positions: Vec<Option<usize>> = Vec::new();
    for change in changes {
        let target = &change.target;
        let values = target.select(card_properties(card, &target.field.properties()));
        let position = change.choose(&values)?.map(|value| value.position);
        let earlier = positions.iter().position(|one| position.is_some() && *one == position);
        let earlier = earlier.and_then(|earlier| changes.get(earlier));
        let can_be_added = |earlier: &&ValueChange| {
            target.number.is_none()
                && target.field.form != FieldForm::Text
                && !change.text.is_empty()
                && !earlier.text.is_empty()
        };
        positions.push(match earlier {
            None => position,
            Some(earlier) if can_be_added(earlier) => None,
            Some(_) => return Err(target.set_twice()),
        });
    }
    Ok(positions)
}
