//! Other components of a calendar (VFREEBUSY, VPOLL, ...): stored and exported, but not searched.

use crate::parsed_item::IndexEntry;
use larder_format::component::Component;

/// Extracts the entry of a component: no terms, no sort keys, no schedule.
pub(crate) fn extract(component: &Component<'_>) -> IndexEntry {
    IndexEntry { has_uid: component.uid().is_some(), ..IndexEntry::default() }
}
