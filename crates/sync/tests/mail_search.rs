//! Searches for messages give the same answers as a naive evaluation of each message.

use crate::mailbox::create_index;
use larder_extract::MessageExtractor;
use larder_format::fold::{fold, is_cjk};
use larder_format::maildir_name::MaildirName;
use larder_index::WordBuffer;
use larder_query::{
    FolderTest, MailFlag, MailQuery, MailSearch, MailTextFields, TextMatch, TextTest,
};
use larder_store::tokenizer::Tokenizer;
use larder_store::{
    BatchChange, EncodedSegment, MailBatch, MailBatchBuilder, MailChange, MailFile,
    MessageTermField, Operation, SegmentWords, StepSize, Store,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;

/// The words of messages and queries.
const WORDS: [&str; 16] = [
    "of",
    "The",
    "the",
    "of-the",
    "walrus",
    "seal",
    "foo",
    "bar",
    "foo_bar",
    "Töne",
    "tone",
    "東京都",
    "京都",
    "it's",
    "x-ray.bar",
    "sealion",
];
/// Beginnings of words.
const PREFIXES: &[&str] =
    &["wal", "seal", "fo", "foo_b", "東", "東京", "京都", "to", "it", "-", "tö", "x-r"];
/// What is between two words.
const GAPS: [&str; 4] = [" ", ", ", ". ", " -- "];
const SENDERS: [(&str, &str); 3] = [
    ("Anna Seal", "anna@example.org"),
    ("", "foo_bar@example.org"),
    ("Töne 京都", "bar@sea.example"),
];
/// Dates, some of them beyond the range of the index, and some twice.
const DATES: [i64; 8] =
    [-5, 0, 1, 1_500_000_000, 1_500_000_000, 1_500_000_001, 1_600_000_000, 5_000_000_000];
const FOLDERS: [(&str, &str, bool); 3] =
    [("", "cur", false), ("", "new", true), ("a/b", "a/b/cur", false)];
const LETTERS: [&str; 5] = ["", "S", "FS", "R", "DPT"];

/// A message of the corpus.
#[derive(Debug, Clone)]
struct TestMessage {
    sender: usize,
    recipient: Option<usize>,
    subject: Vec<&'static str>,
    body: Vec<(&'static str, &'static str)>,
    date: i64,
    folder: usize,
    letters: &'static str,
    is_removed: bool,
}

fn arb_message() -> impl Strategy<Value = TestMessage> {
    let word = || select(&WORDS[..]);
    (
        (0..SENDERS.len(), prop::option::of(0..SENDERS.len())),
        vec(word(), 0..4),
        vec((word(), select(&GAPS[..])), 0..8),
        select(&DATES[..]),
        0..FOLDERS.len(),
        select(&LETTERS[..]),
        prop::bool::weighted(0.1),
    )
        .prop_map(|((sender, recipient), subject, body, date, folder, letters, is_removed)| {
            TestMessage { sender, recipient, subject, body, date, folder, letters, is_removed }
        })
}

impl TestMessage {
    fn body(&self) -> String {
        self.body.iter().flat_map(|(word, gap)| [*word, *gap]).collect()
    }

    fn bytes(&self, number: usize) -> String {
        let address = |place: usize| match SENDERS[place] {
            ("", address) => address.to_string(),
            (name, address) => format!("{name} <{address}>"),
        };
        let recipient = self.recipient.map(|place| format!("To: {}\n", address(place)));
        format!(
            "Message-ID: <m{number}>\nFrom: {}\n{}Subject: {}\n\
             Content-Type: text/plain; charset=utf-8\n\n{}\n",
            address(self.sender),
            recipient.unwrap_or_default(),
            self.subject.join(" "),
            self.body()
        )
    }

    fn name(&self, number: usize) -> String {
        format!("{number}:2,{}", self.letters)
    }

    /// The texts of these fields.
    fn texts(&self, fields: MailTextFields) -> Vec<String> {
        let mut texts = Vec::new();
        if fields.contains(MailTextFields::BODY) {
            texts.push(self.body());
        }
        if fields.contains(MailTextFields::SUBJECT) {
            texts.push(self.subject.join(" "));
        }
        let people =
            [(MailTextFields::FROM, Some(self.sender)), (MailTextFields::TO, self.recipient)];
        for (field, place) in people {
            if let Some(place) = place.filter(|_| fields.contains(field)) {
                texts.extend([SENDERS[place].0, SENDERS[place].1].map(str::to_string));
            }
        }
        texts
    }

    fn has_flag(&self, flag: MailFlag) -> bool {
        let is_new = FOLDERS[self.folder].2;
        let letter = match flag {
            MailFlag::New => return is_new,
            MailFlag::Unread => return !self.letters.contains('S'),
            MailFlag::Draft => 'D',
            MailFlag::Flagged => 'F',
            MailFlag::Passed => 'P',
            MailFlag::Replied => 'R',
            MailFlag::Seen => 'S',
            MailFlag::Trashed => 'T',
            _ => return false,
        };
        self.letters.contains(letter)
    }

    /// Evaluates a query without an index.
    fn is_match(&self, query: &MailQuery, number: usize) -> bool {
        match query {
            MailQuery::All => true,
            MailQuery::Nothing => false,
            MailQuery::And(all) => all.iter().all(|query| self.is_match(query, number)),
            MailQuery::Or(any) => any.iter().any(|query| self.is_match(query, number)),
            MailQuery::Xor(left, right) => {
                self.is_match(left, number) != self.is_match(right, number)
            }
            MailQuery::Not(query) => !self.is_match(query, number),
            MailQuery::Text(test) => {
                self.texts(test.fields).iter().any(|text| is_text_match(text, &test.text))
            }
            MailQuery::Flag(flag) => self.has_flag(*flag),
            MailQuery::Date(range) => {
                let [date, start, end] = [self.date, *range.start(), *range.end()].map(clamp_date);
                range.start() <= range.end() && start <= date && date <= end
            }
            MailQuery::Size(range) => range.contains(&(self.bytes(number).len() as u64)),
            MailQuery::MessageId(id) => *id == format!("m{number}"),
            MailQuery::Folder(FolderTest::Is(path)) => {
                *path == format!("/{}", FOLDERS[self.folder].0)
            }
            MailQuery::Folder(FolderTest::Within(path)) => {
                path == "/" || FOLDERS[self.folder].0.starts_with("a")
            }
            other => panic!("{other} is not generated"),
        }
    }
}

/// The date as the index has it.
fn clamp_date(date: i64) -> u32 {
    u32::try_from(date.clamp(0, i64::from(u32::MAX) - 1)).unwrap()
}

/// Returns the folded parts of the words of a text. A word of a script without spaces is one part.
fn parts(text: &str) -> Vec<String> {
    let folded = fold(text);
    folded
        .split(|c: char| !c.is_alphanumeric())
        .filter(|part| !part.is_empty())
        .map(str::to_string)
        .collect()
}

fn is_cjk_text(text: &str) -> bool {
    text.chars().next().is_some_and(is_cjk)
}

/// Returns whether parts are in a text, one after the other. A text without spaces may begin before
/// the first one and end after the last one; with `is_prefix`, other words may end after it, too.
fn has_parts(text: &[String], wanted: &[String], is_prefix: bool) -> bool {
    let is_same = |(place, (found, wanted)): (usize, (&String, &String)), last: usize| {
        let (is_first, is_last) = (place == 0, place == last);
        match (is_cjk_text(wanted), is_first, is_last) {
            (true, true, true) => found.contains(wanted.as_str()),
            (true, true, false) => found.ends_with(wanted.as_str()),
            (true, false, true) => found.starts_with(wanted.as_str()),
            (false, _, true) if is_prefix => found.starts_with(wanted.as_str()),
            _ => found == wanted,
        }
    };
    !wanted.is_empty()
        && text.windows(wanted.len()).any(|window| {
            let mut pairs = window.iter().zip(wanted).enumerate();
            pairs.all(|pair| is_same(pair, wanted.len() - 1))
        })
}

/// Returns the words of a text with their positions.
fn tokens(text: &str) -> Vec<(String, u32)> {
    let mut words = Vec::new();
    Tokenizer::default()
        .for_each_word(text, 0, |word: &str, position| words.push((word.to_string(), position)));
    words
}

fn is_text_match(text: &str, test: &TextMatch) -> bool {
    match test {
        TextMatch::Words(words) => has_parts(&parts(text), &parts(words), false),
        TextMatch::Prefix(words) => has_parts(&parts(text), &parts(words), true),
        TextMatch::Suffix(end) => tokens(text).iter().any(|(word, _)| word.ends_with(&*fold(end))),
        TextMatch::Infix(part) if part.chars().all(is_cjk) => {
            parts(text).iter().any(|word| word.contains(part.as_str()))
        }
        TextMatch::Infix(part) => tokens(text).iter().any(|(word, _)| word.contains(&*fold(part))),
        TextMatch::Near { left, right, distance, is_ordered } => {
            let words = tokens(text);
            let positions = |word: &str| -> Vec<u32> {
                let word = fold(word);
                let found = words.iter().filter(|(found, _)| *found == *word);
                found.map(|(_, position)| *position).collect()
            };
            positions(left).iter().any(|first| {
                positions(right).iter().any(|second| {
                    first != second
                        && first.abs_diff(*second) <= *distance
                        && (!is_ordered || first < second)
                })
            })
        }
        TextMatch::Exists => !tokens(text).is_empty(),
        TextMatch::Pattern(_) => panic!("patterns are not generated"),
    }
}

fn arb_text_match() -> impl Strategy<Value = TextMatch> {
    let word = || select(&WORDS[..]).prop_map(str::to_string);
    // Pairs of characters are in the index, so longer parts of texts without spaces are in none.
    let near = || word().prop_filter("at most a pair", |word| word != "東京都");
    let phrase = vec(word(), 1..4).prop_map(|words| words.join(" "));
    prop_oneof![
        4 => word().prop_map(TextMatch::Words),
        3 => phrase.clone().prop_map(TextMatch::Words),
        1 => select(&["東", "都", "京", "WALRUS", "s", "anna@example.org", "-", "", "walrus 東", "seal 京"][..])
            .prop_map(|text| TextMatch::Words(text.to_string())),
        2 => select(PREFIXES)
            .prop_map(|text| TextMatch::Prefix(text.to_string())),
        1 => phrase.prop_map(TextMatch::Prefix),
        1 => select(&["us", "bar", "o_bar", "都", "ne", "Ne", "京都", "zz"][..])
            .prop_map(|text| TextMatch::Suffix(text.to_string())),
        1 => select(&["al", "o", "_", "京", "y.b", "öN", "東京", "東京都", "zz"][..])
            .prop_map(|text| TextMatch::Infix(text.to_string())),
        2 => (near(), near(), 1..5_u32, any::<bool>())
            .prop_map(|(left, right, distance, is_ordered)| {
                TextMatch::Near { left, right, distance, is_ordered }
            }),
        1 => Just(TextMatch::Near {
            left: "-".into(), right: "seal".into(), distance: 2, is_ordered: false
        }),
        1 => Just(TextMatch::Exists),
    ]
}

fn arb_test() -> impl Strategy<Value = MailQuery> {
    let fields = [
        MailTextFields::FREE,
        MailTextFields::FREE,
        MailTextFields::SUBJECT,
        MailTextFields::BODY,
        MailTextFields::FROM,
        MailTextFields::TO,
        MailTextFields::CONTACTS,
        MailTextFields::BODY.union(MailTextFields::SUBJECT),
        MailTextFields::FREE.union(MailTextFields::FILE),
    ];
    let flags = MailFlag::ALL.map(|(flag, ..)| flag);
    let ends = || select(&[i64::MIN, -1, 0, 1, 1_500_000_000, 1_500_000_001, i64::MAX][..]);
    prop_oneof![
        10 => (select(fields.to_vec()), arb_text_match())
            .prop_map(|(fields, text)| MailQuery::Text(TextTest { fields, text })),
        2 => select(flags.to_vec()).prop_map(MailQuery::Flag),
        2 => (ends(), ends()).prop_map(|(start, end)| MailQuery::Date(start..=end)),
        1 => (select(&[0, 150, 200][..]), select(&[0, 180, 200, u64::MAX][..]))
            .prop_map(|(start, end)| MailQuery::Size(start..=end)),
        1 => (0..40_usize).prop_map(|number| MailQuery::MessageId(format!("m{number}"))),
        1 => select(&["/", "/a/b", "/a", "/none"][..])
            .prop_map(|path| MailQuery::Folder(FolderTest::Is(path.to_string()))),
        1 => select(&["/", "/a"][..])
            .prop_map(|path| MailQuery::Folder(FolderTest::Within(path.to_string()))),
        1 => Just(MailQuery::All),
        1 => Just(MailQuery::Nothing),
    ]
}

fn arb_query() -> impl Strategy<Value = MailQuery> {
    arb_test().prop_recursive(3, 12, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(MailQuery::And),
            vec(inner.clone(), 0..4).prop_map(MailQuery::Or),
            (boxed(), boxed()).prop_map(|(left, right)| MailQuery::Xor(left, right)),
            boxed().prop_map(MailQuery::Not),
        ]
    })
}

fn apply(store: &mut Store, changes: Vec<MailChange>, words: EncodedSegment, end_row: u32) {
    let words = Some(words);
    let batch = MailBatch { collection: "mail".into(), changes, words, end_row };
    let mut operation = Operation::new("sync", "mail", 0);
    store.apply(&mut operation, vec![BatchChange::Mail(Box::new(batch))]).unwrap();
}

/// Adds the words of a message as they were before there were common pairs.
fn add_former_words(words: &mut WordBuffer, row: u32, message: &[u8]) {
    let mut extractor = MessageExtractor::new(&[]);
    let document = extractor.extract(message, 0);
    extractor.for_each_term(&document, |field, word, position| {
        if field != MessageTermField::CommonPair as u8 {
            words.add(row, field, word, position);
        }
    });
}

/// Indexes messages, whose rows are this far from each other; each second batch as before there
/// were common pairs. Returns the numbers of those that stay, by row.
fn index(
    store: &mut Store,
    messages: &[TestMessage],
    row_step: u32,
    batch_size: usize,
) -> BTreeMap<u32, usize> {
    let mut builder = MailBatchBuilder::new(&[]);
    let put = |(folder, path, is_new): &(&str, &str, bool)| MailChange::PutDirectory {
        path: path.as_bytes().to_vec(),
        folder: folder.as_bytes().to_vec(),
        is_new: *is_new,
        state: Vec::new(),
    };
    apply(store, FOLDERS.iter().map(put).collect(), builder.encode_words(), 0);
    let (mut kept, mut removed, mut row) = (BTreeMap::new(), Vec::new(), 1);
    for (place, batch) in messages.chunks(batch_size).enumerate() {
        let (mut changes, mut former_words) = (Vec::new(), WordBuffer::default());
        for (at, message) in batch.iter().enumerate() {
            let number = place * batch_size + at;
            let (_, directory, is_new) = FOLDERS[message.folder];
            let name = message.name(number);
            let file = MailFile {
                directory: directory.as_bytes().to_vec(),
                name: name.as_bytes().to_vec(),
                inode: number as u64,
                state: larder_store::MailFileState::default(),
                flags: MaildirName::parse(name.as_bytes()).flags(is_new),
            };
            let bytes = message.bytes(number);
            add_former_words(&mut former_words, row, bytes.as_bytes());
            let (prepared, document) = builder.prepare(row, bytes.as_bytes(), message.date);
            assert!(document.problems().is_empty(), "{:?}", document.problems());
            if message.is_removed {
                let (directory, name) = (file.directory.clone(), file.name.clone());
                removed.push(MailChange::RemoveFile { directory, name });
            } else {
                kept.insert(row, number);
            }
            changes.push(MailChange::AddFile { file, message: Box::new(prepared) });
            row += row_step;
        }
        let mut words = SegmentWords::new(Some(MessageTermField::Text as u8));
        let batches = [builder.take_words(), former_words.take_batch()];
        words.add(batches.into_iter().nth(place % 2).unwrap());
        apply(store, changes, words.encode(), row);
        if place % 3 == 2 {
            store.merge_words(8, &mut StepSize::new(1 << 20, 1..=1 << 20)).unwrap();
        }
    }
    apply(store, removed, builder.encode_words(), 0);
    kept
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn answers_are_those_of_a_naive_evaluation(
        messages in vec(arb_message(), 0..40),
        row_step in select(vec![1, 1, 63, 700]),
        batch_size in select(vec![1, 5, 40]),
        queries in vec(arb_query(), 30),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut store = create_index(directory.path().join("index"));
        let kept = index(&mut store, &messages, row_step, batch_size);
        let reader = store.open_reader().unwrap();
        let mail = reader.mail().unwrap();
        let words = mail.words();
        let search = MailSearch::open(&mail, &words).unwrap();
        for query in &queries {
            let is_match =
                |(_, number): &(&u32, &usize)| messages[**number].is_match(query, **number);
            let expected: Vec<u32> = kept.iter().filter(is_match).map(|(row, _)| *row).collect();
            let mut found = Vec::new();
            search.for_each_match(query, &mut |row| found.push(row)).unwrap();
            prop_assert_eq!(&found, &expected, "{}", query);
            prop_assert_eq!(search.count(query).unwrap(), expected.len() as u64, "{}", query);
            let date = |row: u32| clamp_date(messages[kept[&row]].date);
            let mut newest: Vec<(u32, u32)> =
                expected.iter().map(|row| (date(*row), *row)).collect();
            newest.sort_unstable_by(|a, b| b.cmp(a));
            for limit in [0, 1, 3, 10, usize::MAX] {
                let hits = search.find_newest(query, limit).unwrap();
                let hits: Vec<(u32, u32)> = hits.iter().map(|hit| (hit.date, hit.row)).collect();
                prop_assert_eq!(&hits, &newest[..limit.min(newest.len())], "{} {}", limit, query);
            }
        }
    }
}
