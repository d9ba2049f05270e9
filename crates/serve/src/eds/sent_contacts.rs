//! The contacts that a view sent to its client.
//!
//! The protocol has no signal for a reset, after which a view gets its whole answer again: the view
//! reports how that answer differs from these contacts.

use std::collections::BTreeSet;
use std::mem;

/// The UIDs of the contacts that a client has from a view. A tree of them has less spare room than
/// a hash table.
#[derive(Debug, Default)]
pub(super) struct SentContacts {
    uids: BTreeSet<Box<str>>,
    /// Those sent before a reset that the new answer has not named yet.
    before_reset: BTreeSet<Box<str>>,
}

impl SentContacts {
    /// Adds a contact. Returns whether the client had it.
    pub(super) fn insert(&mut self, uid: &str) -> bool {
        let sent_before = self.before_reset.take(uid);
        let is_known = sent_before.is_some() || self.uids.contains(uid);
        self.uids.insert(sent_before.unwrap_or_else(|| uid.into()));
        is_known
    }

    pub(super) fn remove(&mut self, uid: &str) {
        self.before_reset.remove(uid);
        self.uids.remove(uid);
    }

    /// Notes that the whole answer follows.
    pub(super) fn begin_reset(&mut self) {
        self.before_reset.append(&mut self.uids);
    }

    /// Takes the contacts that the answer after a reset did not have.
    pub(super) fn take_missing(&mut self) -> BTreeSet<Box<str>> {
        mem::take(&mut self.before_reset)
    }
}

#[cfg(test)]
mod tests {
    use super::SentContacts;

    #[test]
    fn a_reset_compares_the_answers() {
        let mut sent = SentContacts::default();
        let insert = |sent: &mut SentContacts, uids: &[&str]| -> Vec<bool> {
            uids.iter().map(|uid| sent.insert(uid)).collect()
        };
        assert_eq!(
            insert(&mut sent, &["a", "b", "c", "d", "a"]),
            [false, false, false, false, true]
        );
        sent.remove("d");
        assert!(sent.take_missing().is_empty(), "there was no reset");
        sent.begin_reset();
        assert_eq!(insert(&mut sent, &["c", "d"]), [true, false]);
        // The next reset comes before the answer is complete.
        sent.begin_reset();
        assert_eq!(insert(&mut sent, &["d", "e"]), [true, false]);
        sent.remove("b");
        let missing = sent.take_missing();
        assert_eq!(missing.iter().map(|uid| &**uid).collect::<Vec<_>>(), ["a", "c"]);
        assert!(sent.take_missing().is_empty());
        assert_eq!(insert(&mut sent, &["a", "d", "e"]), [false, true, true]);
    }
}
