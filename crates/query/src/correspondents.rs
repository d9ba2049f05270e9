//! The people of the mail: each address that messages name, with its name, and how often and when
//! it was met.
//!
//! They are terms of the index of words, so no table has to be kept in step with the messages: a
//! message that is gone is left out by its date, like any stale posting. One walk over the terms
//! finds the addresses that match, and another one reads the postings of these.
//!
//! Separate from `mail_search`, whose results are messages.

use crate::error::{Error, SyntaxError};
use crate::execution::find;
use crate::mail_query::{MailQuery, TextMatch, is_mail_field};
use crate::mail_search::MailSearch;
use crate::pattern::RegexPattern;
use crate::query::{FieldSelector, FieldTest, MatchOp, Query};
use crate::search_request::SearchRequest;
use larder_format::collection_type::find_any_field;
use larder_format::field::find_contact_field;
use larder_format::fold::{fold, is_cjk};
use larder_store::message_flags::{MessageFlag, MessageFlags};
use larder_store::{
    BLOCK_ROWS, CorrespondentName, Handle, MailColumn, MailReader, MessageTermField, OpenMailWords,
    Reader, TermChoice,
};
use std::collections::HashMap;

/// A correspondent who was met less than this long ago is ranked by the time, not by the count.
const RECENT_SECONDS: i64 = 15 * 24 * 3600;

/// With more addresses than these, all contacts with an address are read.
const MAX_ADDRESS_TESTS: usize = 50;

/// A contact who has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressOwner {
    /// The handle.
    pub handle: Handle,
    /// The full name.
    pub name: String,
}

/// An address that was met in mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correspondent {
    /// The address, in lower case.
    pub address: String,
    /// The name of the newest message that has one; empty: none has.
    pub name: String,
    /// The number of messages with the address.
    pub message_count: u32,
    /// The date of the newest one, in seconds since 1970.
    pub last_seen: u32,
    /// Whether one of them is from or to the user.
    pub is_personal: bool,
}

/// A search for correspondents.
#[derive(Debug, Clone, Default)]
pub struct CorrespondentQuery {
    /// The test of names and addresses.
    pub text: CorrespondentText,
    /// Whether only those of personal messages are wanted.
    pub is_personal: bool,
    /// Only correspondents in messages of this time or later are wanted.
    pub after: Option<i64>,
    /// The most results.
    pub limit: Option<usize>,
    /// Messages with one of these labels do not count.
    pub excluded_labels: Vec<String>,
}

/// The test of the name and the address of a correspondent. All names that an address ever had are
/// tested.
#[derive(Debug, Clone, Default)]
pub enum CorrespondentText {
    /// Everyone.
    #[default]
    All,
    /// Each of these folded words is at the beginning of a word of the name or the address.
    WordBeginnings(Vec<String>),
    /// The pattern matches the folded name or the address.
    Pattern(CorrespondentPattern),
}

/// A regular expression for folded texts.
#[derive(Debug, Clone)]
pub struct CorrespondentPattern(RegexPattern);

impl CorrespondentText {
    /// Parses the words of a query: beginnings of words, or one regular expression between slashes.
    ///
    /// # Errors
    /// The regular expression cannot be compiled, or a word has the name of a field.
    pub fn parse(text: &str) -> Result<CorrespondentText, SyntaxError> {
        let text = text.trim();
        let pattern = text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        if let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty()) {
            let compiled = RegexPattern::compile_folded(pattern).map_err(|reason| SyntaxError {
                message: format!("the pattern /{pattern}/ cannot be used: {reason}"),
                at: 1,
                hint: None,
            })?;
            return Ok(CorrespondentText::Pattern(CorrespondentPattern(compiled)));
        }
        text.split_whitespace().try_for_each(|word| check_field(text, word))?;
        let words =
            text.split_whitespace().map(|word| word.trim_matches(['"', '\'', '*', '<', '>', ',']));
        let words: Vec<String> =
            words.map(|word| fold(word).into_owned()).filter(|word| !word.is_empty()).collect();
        Ok(match words.is_empty() {
            true => CorrespondentText::All,
            false => CorrespondentText::WordBeginnings(words),
        })
    }

    fn is_match(&self, one: &CorrespondentName<'_>) -> bool {
        match self {
            CorrespondentText::All => true,
            CorrespondentText::WordBeginnings(words) => {
                let name = fold(one.name);
                let has_word = |word: &String| {
                    has_word_beginning(&name, word) || has_word_beginning(one.address, word)
                };
                words.iter().all(has_word)
            }
            CorrespondentText::Pattern(CorrespondentPattern(pattern)) => {
                pattern.is_match(one.address) || pattern.is_match(&fold(one.name))
            }
        }
    }
}

/// Returns whether a word stands at the beginning of a word of a folded text. A word that begins
/// with a sign, as `@tusk.example`, stands anywhere.
fn has_word_beginning(text: &str, word: &str) -> bool {
    if word.starts_with(|c: char| !c.is_alphanumeric()) {
        return text.contains(word);
    }
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        // Scripts without spaces have no beginnings of words.
        before.is_none_or(|before| !before.is_alphanumeric() || is_cjk(before))
    })
}

/// Returns the correspondents that match, the most likely ones first, as mu ranks them: personal
/// ones first, then those who were met in the last fifteen days by that time, then by the number of
/// messages, then by address. `now` is the current time.
///
/// # Errors
/// The store cannot be read.
pub fn find_correspondents(
    mail: &MailReader<'_>,
    query: &CorrespondentQuery,
    now: i64,
) -> Result<Vec<Correspondent>, Error> {
    let words = mail.words();
    let mut dates = MessageDates::read(mail)?;
    let search = MailSearch::open(mail, &words)?;
    search.for_each_left_out(&mut |row| dates.remove(row))?;
    if !query.excluded_labels.is_empty() {
        let labels = query.excluded_labels.iter().cloned().map(TextMatch::Words);
        let hidden = MailQuery::Or(labels.map(MailQuery::Label).collect());
        search.for_each_match(&hidden, &mut |row| dates.remove(row))?;
    }
    let words = words.open()?;
    let addresses = match query.text {
        CorrespondentText::All => None,
        _ => Some(matching_addresses(&words, &query.text)?),
    };
    if addresses.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let mut filter = AddressFilter { addresses, next: 0 };
    let mut sightings = SightingCollector::new(dates);
    words.for_each_posting_list(
        &[MessageTermField::Correspondent as u8],
        &mut |term| filter.choose(term),
        &mut |term, rows| sightings.add_rows(term, rows),
    )?;
    let mut found = sightings.into_correspondents();
    found.retain(|one| {
        (one.is_personal || !query.is_personal)
            && query.after.is_none_or(|after| i64::from(one.last_seen) >= after)
    });
    let rank = |one: &Correspondent| {
        let last_seen = i64::from(one.last_seen);
        let recent = if last_seen > now - RECENT_SECONDS { last_seen } else { 0 };
        std::cmp::Reverse((one.is_personal, recent, one.message_count))
    };
    let by_rank = |a: &Correspondent, b: &Correspondent| {
        rank(a).cmp(&rank(b)).then_with(|| a.address.cmp(&b.address))
    };
    if let Some(limit) = query.limit.filter(|limit| *limit < found.len()) {
        if limit > 0 {
            found.select_nth_unstable_by(limit - 1, by_rank);
        }
        found.truncate(limit);
    }
    found.sort_unstable_by(by_rank);
    Ok(found)
}

/// Refuses a word with the name of a field in front, which no name or address begins with.
fn check_field(text: &str, word: &str) -> Result<(), SyntaxError> {
    let Some((name, value)) = word.trim_start_matches('-').split_once(':') else { return Ok(()) };
    let is_field = is_mail_field(name) || find_any_field(name).is_some();
    if value.is_empty() || !is_field {
        return Ok(());
    }
    let at = text.find(word).unwrap_or_default();
    let message = format!("unknown field {name:?} of correspondents");
    let hint = match name.to_ascii_lowercase().as_str() {
        "date" => "correspondents since a date: --after DATE".to_string(),
        _ => format!(
            "they are found by words of their names and addresses: {value}; the messages: \
             larder find --kind message {word}"
        ),
    };
    Err(SyntaxError::new(text, at, message).with_hint(hint))
}

/// Returns the addresses that match, sorted.
fn matching_addresses(
    words: &OpenMailWords<'_>,
    text: &CorrespondentText,
) -> Result<Vec<String>, Error> {
    let mut addresses: Vec<String> = Vec::new();
    let field = MessageTermField::Correspondent as u8;
    words.for_each_term(&[field], &mut |term, _| {
        if let Some(one) = CorrespondentName::from_term(term)
            && addresses.last().is_none_or(|last| last != one.address)
            && text.is_match(&one)
        {
            addresses.push(one.address.to_string());
        }
        term.first() == Some(&field)
    })?;
    // Each segment has its terms.
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

/// The dates of all messages, and whether they are personal.
struct MessageDates {
    /// By row; 0: the row has no message.
    dates: Vec<u32>,
    flags: Vec<u32>,
}

impl MessageDates {
    fn read(mail: &MailReader<'_>) -> Result<MessageDates, Error> {
        let (mut dates, mut flags) = (Vec::new(), Vec::new());
        for block in 0..mail.end_row()?.div_ceil(BLOCK_ROWS) {
            dates.extend_from_slice(&mail.values(MailColumn::Date, block)?);
            flags.extend_from_slice(&mail.values(MailColumn::Flags, block)?);
        }
        Ok(MessageDates { dates, flags })
    }

    /// Removes a message, whose correspondents then do not count.
    fn remove(&mut self, row: u32) {
        if let Some(date) = self.dates.get_mut(row as usize) {
            *date = 0;
        }
    }

    /// Returns the date of a message; `None`: the row has none.
    fn date(&self, row: u32) -> Option<u32> {
        self.dates.get(row as usize).and_then(|date| date.checked_sub(1))
    }

    fn is_personal(&self, row: u32) -> bool {
        let bits = self.flags.get(row as usize).copied().unwrap_or_default();
        let bits = u16::try_from(bits).unwrap_or_default();
        MessageFlags::from_bits(bits).contains(MessageFlag::Personal)
    }
}

/// The occurrences of an address in mail.
#[derive(Debug, Default)]
struct Sightings {
    message_count: u32,
    last_seen: u32,
    is_personal: bool,
    name: String,
    /// The date and the row of the newest message with a name.
    named_at: (u32, u32),
}

/// Chooses the terms of the wanted addresses. Their order in a segment is that of the addresses.
struct AddressFilter {
    /// Sorted; `None`: all.
    addresses: Option<Vec<String>>,
    /// The first wanted address that is not less than the last one of the walk.
    next: usize,
}

impl AddressFilter {
    /// Returns whether the postings of a term are needed.
    fn choose(&mut self, term: &[u8]) -> TermChoice {
        if term.first() != Some(&(MessageTermField::Correspondent as u8)) {
            return TermChoice::End;
        }
        let Some(one) = CorrespondentName::from_term(term) else { return TermChoice::Skip };
        let Some(addresses) = &self.addresses else { return TermChoice::Read };
        let before = self.next.checked_sub(1).and_then(|before| addresses.get(before));
        if before.is_some_and(|before| before.as_str() >= one.address) {
            // The next segment begins with its first address.
            self.next = 0;
        }
        while let Some(wanted) = addresses.get(self.next)
            && wanted.as_str() < one.address
        {
            self.next += 1;
        }
        match addresses.get(self.next) {
            Some(wanted) if wanted == one.address => TermChoice::Read,
            _ => TermChoice::Skip,
        }
    }
}

/// Collects the sightings of addresses. The terms of one address follow each other in a segment,
/// and a row is in one segment only.
struct SightingCollector {
    dates: MessageDates,
    found: HashMap<String, Sightings>,
    /// The address of the last term, and the rows of its terms.
    address: String,
    rows: Vec<u32>,
}

impl SightingCollector {
    fn new(dates: MessageDates) -> SightingCollector {
        SightingCollector { dates, found: HashMap::new(), address: String::new(), rows: Vec::new() }
    }

    /// Adds the messages in which an address has a name.
    fn add_rows(&mut self, term: &[u8], rows: &[u32]) {
        let Some(one) = CorrespondentName::from_term(term) else { return };
        if one.address != self.address {
            self.count_messages();
            self.address.clear();
            self.address.push_str(one.address);
        }
        let live = rows.iter().filter_map(|row| Some((self.dates.date(*row)?, *row)));
        let newest = live.max().filter(|_| !one.name.is_empty());
        self.rows.extend_from_slice(rows);
        let Some(newest) = newest else { return };
        let known = self.found.entry(one.address.to_string()).or_default();
        if known.name.is_empty() || newest > known.named_at {
            known.name.clear();
            known.name.push_str(one.name);
            known.named_at = newest;
        }
    }

    /// Counts the messages with the last address. One that has two names in a message is met once.
    fn count_messages(&mut self) {
        self.rows.sort_unstable();
        self.rows.dedup();
        self.rows.retain(|row| self.dates.date(*row).is_some());
        if self.rows.is_empty() {
            return;
        }
        let known = self.found.entry(self.address.clone()).or_default();
        for row in self.rows.drain(..) {
            known.message_count += 1;
            known.last_seen = known.last_seen.max(self.dates.date(row).unwrap_or_default());
            known.is_personal |= self.dates.is_personal(row);
        }
    }

    fn into_correspondents(mut self) -> Vec<Correspondent> {
        self.count_messages();
        let correspondents = self.found.into_iter().map(|(address, one)| Correspondent {
            address,
            name: one.name,
            message_count: one.message_count,
            last_seen: one.last_seen,
            is_personal: one.is_personal,
        });
        correspondents.collect()
    }
}

/// Reads the contacts with these addresses: handle and name by folded address. Of several contacts
/// with an address, the one that was added first.
///
/// # Errors
/// The store cannot be read.
pub fn find_contacts_by_address<'a>(
    reader: &Reader,
    addresses: impl Iterator<Item = &'a str>,
) -> Result<HashMap<String, AddressOwner>, Error> {
    let Some(email) = find_contact_field("email") else { return Ok(HashMap::new()) };
    let Some(name) = find_contact_field("full_name") else { return Ok(HashMap::new()) };
    let test = |op, text: &str| Query::Test(FieldTest::new(FieldSelector::Field(email), op, text));
    let tests: Vec<Query> =
        addresses.take(MAX_ADDRESS_TESTS + 1).map(|one| test(MatchOp::Is, one)).collect();
    let query = match tests.len() {
        0 => return Ok(HashMap::new()),
        count if count > MAX_ADDRESS_TESTS => test(MatchOp::Exists, ""),
        _ => Query::Or(tests),
    };
    let request = SearchRequest { query, ..SearchRequest::default() };
    let mut owners = HashMap::new();
    find(reader, &request)?.for_each_projected(reader, &[email, name], &mut |meta, item| {
        let owner = AddressOwner {
            handle: meta.handle,
            name: item.first(name).unwrap_or_default().into_owned(),
        };
        for address in item.values(email) {
            owners.entry(fold(&address).into_owned()).or_insert_with(|| owner.clone());
        }
        true
    })?;
    Ok(owners)
}
