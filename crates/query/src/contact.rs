//! Contacts that are in no store: their values, and the test of one.
//!
//! Separate from `item`, whose items are read from a store.

use crate::item::ItemFields;
use crate::matcher::Matcher;
use crate::time_test::DateProperty;
use larder_format::contact::Contact;
use larder_format::field::Field;
use larder_format::property::Property;
use larder_store::{Kind, Schedule};
use larder_time::civil::Instant;
use larder_time::zone::Zone;
use std::borrow::Cow;

impl Matcher {
    /// Returns whether a contact that is stored under this UID matches. A test of UIDs matches by
    /// the UID in the store and the UID in the source bytes.
    #[must_use]
    pub fn matches(&self, uid: &str, card: &Contact<'_>) -> bool {
        self.matches_values(uid, card)
    }
}

impl ItemFields for Contact<'_> {
    fn any_value(&self, field: &Field, pass: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
        let values = self.values(field);
        (!values.is_empty()).then(|| values.iter().any(|value| pass(value)))
    }

    fn properties(&self) -> &[Property<'_>] {
        Contact::properties(self)
    }

    fn uid(&self) -> Option<String> {
        Contact::uid(self)
    }

    fn kind(&self) -> Kind {
        Kind::Contact
    }

    fn schedule(&self) -> Option<Cow<'_, Schedule>> {
        None
    }

    fn property_instant(&self, _: DateProperty, _: &Zone) -> Option<Instant> {
        None
    }
}
