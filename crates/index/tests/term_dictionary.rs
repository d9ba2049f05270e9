//! The term dictionary, compared with a set of words.

use crate::memory_pages::MemoryPages;
use larder_index::{
    CorruptBlock, DictionaryRebuild, IndexId, ReadSegments as _, SegmentWords, TermDictionary,
    WordBuffer, WordPart, delete_all, index_trigrams_step, merge_dictionary_step, verify_trigrams,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const DICTIONARY: IndexId = IndexId(9);
const WORDS: IndexId = IndexId(10);

#[derive(Default)]
struct DictionaryTester {
    pages: MemoryPages,
    words: BTreeSet<Vec<u8>>,
    row: u32,
}

impl DictionaryTester {
    /// Writes a batch with these words, and with terms that are not in the dictionary.
    fn write(&mut self, words: &[String]) {
        let mut buffer = WordBuffer::default();
        for word in words {
            self.row += 1;
            buffer.add(self.row, b'w', word.as_bytes(), Some(1));
            buffer.add(self.row, b'x', word.as_bytes(), None);
            self.words.insert(word.clone().into_bytes());
        }
        let mut words = SegmentWords::new(Some(b'w'));
        words.add(buffer.take_batch());
        let encoded = words.encode();
        encoded.write(&self.pages, WORDS, None).unwrap();
        encoded.write_dictionary(&self.pages, DICTIONARY, None).unwrap();
        self.pages.check();
    }

    fn read(&self, part: WordPart<'_>) -> Result<BTreeSet<Vec<u8>>, CorruptBlock> {
        self.read_any(&[part])
    }

    fn read_any(&self, parts: &[WordPart<'_>]) -> Result<BTreeSet<Vec<u8>>, CorruptBlock> {
        let mut found = BTreeSet::new();
        let dictionary = TermDictionary::open(&self.pages, DICTIONARY)?;
        dictionary.for_each_word(parts, &mut |word| {
            found.insert(word.to_vec());
        })?;
        Ok(found)
    }

    /// Checks that the trigrams are those of the words, and of segments of the dictionary only.
    fn check_trigrams(&self) {
        self.pages.check();
        assert_eq!(verify_trigrams(&self.pages, DICTIONARY), Ok(0));
        let segments = self.pages.segments(DICTIONARY).unwrap();
        for index in self.pages.indexes().into_iter().filter(|index| index.0 < 0) {
            assert!(segments.iter().any(|segment| segment.id.0 == -index.0), "{index:?}");
        }
    }

    /// Returns the number of indexes of trigrams.
    fn count_trigram_indexes(&self) -> usize {
        self.pages.indexes().into_iter().filter(|index| index.0 < 0).count()
    }

    fn check(&self, part: &str) {
        assert_eq!(self.read(WordPart::Any).unwrap(), self.words);
        self.check_part(part);
    }

    fn check_part(&self, part: &str) {
        let part = part.as_bytes();
        let is_inside = |word: &Vec<u8>| word.windows(part.len().max(1)).any(|one| one == part);
        let with_part = self.words.iter().filter(|word| part.is_empty() || is_inside(word));
        assert_eq!(self.read(WordPart::Inside(part)).unwrap(), with_part.cloned().collect());
        let ending = self.words.iter().filter(|word| word.ends_with(part));
        assert_eq!(self.read(WordPart::End(part)).unwrap(), ending.cloned().collect());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn merged_dictionaries_have_the_words_that_were_added(
        batches in proptest::collection::vec(
            proptest::collection::vec("[ab]{1,3}|[a-e]{4,60}|é[a-c]{90}", 0..150), 8..12,
        ),
        budgets in proptest::collection::vec(prop_oneof![Just(1_i64), 100..8000_i64], 12),
        part in "[a-e]{0,3}",
    ) {
        let mut tester = DictionaryTester::default();
        for batch in &batches {
            tester.write(batch);
        }
        tester.check(&part);
        for budget in budgets {
            let has_more = merge_dictionary_step(&tester.pages, DICTIONARY, 8, budget).unwrap();
            tester.pages.check();
            tester.check(&part);
            if !has_more {
                break;
            }
        }
        while merge_dictionary_step(&tester.pages, DICTIONARY, 8, i64::MAX).unwrap() {}
        tester.pages.check();
        tester.check(&part);
        // All steps read the same words, whatever their size.
        for budget in [40, 4000, usize::MAX] {
            let mut rebuild = DictionaryRebuild::new(b'w');
            let mut steps = 0;
            while rebuild.step(&tester.pages, WORDS, DICTIONARY, budget).unwrap() {
                steps += 1;
                if steps % 64 == 1 {
                    tester.check(&part);
                }
            }
            tester.pages.check();
            tester.check(&part);
        }
    }
}

#[test]
fn a_word_of_all_batches_is_written_once() {
    let mut tester = DictionaryTester::default();
    for number in 0..10 {
        tester.write(&["same".into(), format!("word{number}")]);
    }
    while merge_dictionary_step(&tester.pages, DICTIONARY, 8, 1).unwrap() {}
    let mut words = Vec::new();
    let dictionary = TermDictionary::open(&tester.pages, DICTIONARY).unwrap();
    dictionary.for_each_word(&[WordPart::Any], &mut |word| words.push(word.to_vec())).unwrap();
    assert_eq!(words.len(), 11);
}

#[test]
fn damaged_dictionaries_are_errors_and_never_panic() {
    for seed in 0..12_usize {
        let mut tester = DictionaryTester::default();
        for number in 0..9 {
            let words: Vec<String> = (0..500).map(|n| format!("word{number}{n}")).collect();
            tester.write(&words);
        }
        tester.pages.damage(|block| {
            let place = seed.wrapping_mul(0x9e37_79b9) % block.len();
            match seed % 3 {
                0 => block.truncate(place),
                1 => block[place] ^= 1 << (seed / 3 % 8),
                _ => block.iter_mut().skip(place).for_each(|byte| *byte = byte.wrapping_mul(37)),
            }
        });
        let _read = tester.read(WordPart::Inside(b"d1"));
        let _merged = merge_dictionary_step(&tester.pages, DICTIONARY, 8, 5000);
        let _read = tester.read(WordPart::Any);
        tester.pages.remove_blocks();
        assert_eq!(tester.read(WordPart::Any), Err(CorruptBlock));
        assert!(merge_dictionary_step(&tester.pages, DICTIONARY, 8, 1).is_err());
    }
}

/// The texts of which random words are made: letters, joiners, accents that folding keeps, another
/// script, and a script without spaces.
const SYLLABLES: [&str; 24] = [
    "a",
    "b",
    "c",
    "be",
    "ce",
    "fro",
    "ob",
    "nit",
    "zel",
    "_",
    "-",
    "'",
    ".",
    "@",
    ":",
    "7",
    "\u{df}",
    "\u{f8}",
    "\u{436}\u{443}",
    "\u{43a}",
    "\u{6771}",
    "\u{4eac}",
    "\u{90fd}",
    "\u{20000}",
];

/// A sequence of numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % below
    }

    fn word(&mut self) -> String {
        // A word of one syllable in ten, a pair in ten, else longer ones.
        let count = match self.next(10) {
            0 => 1,
            1 => 2,
            _ => 3 + self.next(20),
        };
        (0..count).map(|_| SYLLABLES[self.next(SYLLABLES.len())]).collect()
    }

    fn words(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.word()).collect()
    }

    /// Returns a part of a word, or a text that few words have.
    fn part(&mut self, words: &BTreeSet<Vec<u8>>) -> String {
        let word = match words.iter().nth(self.next(words.len().max(1))) {
            Some(word) if self.next(4) > 0 => String::from_utf8(word.clone()).unwrap(),
            _ => self.word(),
        };
        let letters: Vec<char> = word.chars().collect();
        let from = self.next(letters.len());
        letters.iter().skip(from).take(1 + self.next(8)).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    /// A search by trigrams finds the words that a reading of all words finds, between any steps.
    #[test]
    fn trigrams_find_the_words_that_have_a_part(seed in 1_u64.., budget in 1_i64..400_000) {
        let mut numbers = Numbers(seed);
        let mut tester = DictionaryTester::default();
        for count in [9000, 20, 9000] {
            tester.write(&numbers.words(count));
            tester.check_part(&numbers.part(&tester.words));
            while index_trigrams_step(&tester.pages, DICTIONARY, budget).unwrap() {
                tester.check_part(&numbers.part(&tester.words));
            }
            tester.check_trigrams();
            (0..3).for_each(|_| tester.check_part(&numbers.part(&tester.words)));
        }
        assert_eq!(tester.count_trigram_indexes(), 2);
        // A merge, between whose steps others write trigrams.
        let mut has_more = true;
        while has_more {
            has_more = merge_dictionary_step(&tester.pages, DICTIONARY, 1, 70_000).unwrap();
            index_trigrams_step(&tester.pages, DICTIONARY, budget).unwrap();
            tester.check_part(&numbers.part(&tester.words));
        }
        while index_trigrams_step(&tester.pages, DICTIONARY, budget).unwrap() {}
        assert_eq!(tester.count_trigram_indexes(), 1);
        tester.check_trigrams();
        (0..6).for_each(|_| tester.check_part(&numbers.part(&tester.words)));
        let mut rebuild = DictionaryRebuild::new(b'w');
        while rebuild.step(&tester.pages, WORDS, DICTIONARY, 100_000).unwrap() {}
        tester.check_trigrams();
        assert_eq!(tester.count_trigram_indexes(), 0);
    }
}

/// The trigrams of a merged segment are several times as large as a step.
#[test]
fn segments_with_trigrams_are_deleted_in_steps() {
    const STEP_BLOCKS: usize = 24;
    let mut numbers = Numbers(3);
    let mut tester = DictionaryTester::default();
    for count in [9000, 9000] {
        tester.write(&numbers.words(count));
    }
    while index_trigrams_step(&tester.pages, DICTIONARY, 1 << 20).unwrap() {}
    let budget = STEP_BLOCKS * 4096;
    let mut most = 0;
    let mut check = |tester: &DictionaryTester, before: usize| {
        tester.check_trigrams();
        most = most.max(before.saturating_sub(tester.pages.block_count()));
    };
    let (mut has_more, mut steps) = (true, 0);
    while has_more {
        let before = tester.pages.block_count();
        has_more = merge_dictionary_step(&tester.pages, DICTIONARY, 1, budget as i64).unwrap();
        check(&tester, before);
        tester.check_part(&numbers.part(&tester.words));
        steps += 1;
    }
    assert_eq!(tester.pages.segments(DICTIONARY).unwrap().len(), 1);
    while index_trigrams_step(&tester.pages, DICTIONARY, 1 << 20).unwrap() {}
    let mut rebuild = DictionaryRebuild::new(b'w');
    has_more = true;
    while has_more {
        let before = tester.pages.block_count();
        has_more = rebuild.step(&tester.pages, WORDS, DICTIONARY, budget).unwrap();
        check(&tester, before);
        tester.check_part(&numbers.part(&tester.words));
        steps += 1;
    }
    assert_eq!(tester.pages.segments(DICTIONARY).unwrap().len(), 1);
    // A step may read some blocks of each of two inputs beyond its budget.
    assert!(most <= STEP_BLOCKS + 2 * 16, "{most} blocks in one of {steps} steps");
}

/// A rebuild that ends while it deletes leaves a segment whose words are all in another one.
#[test]
fn a_merge_after_an_interrupted_rebuild_reads_no_moved_words() {
    let mut tester = index_many_words();
    let mut rebuild = DictionaryRebuild::new(b'w');
    let count_blocks = |tester: &DictionaryTester| {
        let segments = tester.pages.segments(DICTIONARY).unwrap();
        segments.first().map_or(0, |first| first.blocks.end - first.blocks.start)
    };
    let all = count_blocks(&tester);
    while count_blocks(&tester) == all {
        assert!(rebuild.step(&tester.pages, WORDS, DICTIONARY, 4096).unwrap());
    }
    let rest = count_blocks(&tester);
    assert!(rest > 20, "{rest} blocks");
    tester.write(&["walrus".into()]);
    let before = tester.pages.blocks_read();
    assert!(merge_dictionary_step(&tester.pages, DICTIONARY, 1, 1).unwrap());
    let read = tester.pages.blocks_read() - before;
    assert!(read <= 6, "{read} of {rest} blocks in one step");
    tester.check_trigrams();
    while merge_dictionary_step(&tester.pages, DICTIONARY, 1, 1 << 20).unwrap() {}
    tester.check_trigrams();
    tester.check_part("walrus");
    assert_eq!(tester.pages.segments(DICTIONARY).unwrap().len(), 1);
    assert_eq!(tester.read(WordPart::Any).unwrap(), tester.words);
}

fn index_many_words() -> DictionaryTester {
    let mut tester = DictionaryTester::default();
    let mut words: Vec<String> = (0..20_000).map(|n| format!("{:x}", n * 7_919_773_u64)).collect();
    words.push("quixotic".into());
    tester.write(&words);
    while index_trigrams_step(&tester.pages, DICTIONARY, 1 << 20).unwrap() {}
    tester
}

#[test]
fn few_blocks_are_read_for_a_rare_part() {
    let tester = index_many_words();
    let blocks: i64 = tester.pages.segments(DICTIONARY).unwrap()[0].blocks.end;
    assert!(blocks > 40, "{blocks}");
    for (part, most) in [("uixot", 6), ("tuix", 6), ("qui", 6), ("ui", blocks)] {
        for part in [WordPart::Inside(part.as_bytes()), WordPart::End(part.as_bytes())] {
            let before = tester.pages.blocks_read();
            tester.read(part).unwrap();
            let read = (tester.pages.blocks_read() - before) as i64;
            assert!(read <= most, "{part:?}: {read} blocks");
        }
    }
}

/// Several parts, of which some may be too short for trigrams, take one reading of the blocks.
#[test]
fn a_block_is_read_once_for_all_parts() {
    let tester = index_many_words();
    let inside = |texts: &[&'static str]| -> Vec<WordPart<'static>> {
        texts.iter().map(|text| WordPart::Inside(text.as_bytes())).collect()
    };
    let count_read = |texts: &[&'static str]| {
        let before = tester.pages.blocks_read();
        tester.read_any(&inside(texts)).unwrap();
        tester.pages.blocks_read() - before
    };
    for texts in [&["ab", "c1", "7"][..], &["uixo", "quix", "1f2e", "zzz"], &["uixo", "e7"], &[]] {
        let each = inside(texts).into_iter().flat_map(|part| tester.read(part).unwrap());
        assert_eq!(tester.read_any(&inside(texts)).unwrap(), each.collect(), "{texts:?}");
    }
    assert_eq!(count_read(&["ab", "c1", "7", "uixot"]), count_read(&["ab"]));
    // A word with several of them comes once.
    let dictionary = TermDictionary::open(&tester.pages, DICTIONARY).unwrap();
    let parts = [&inside(&["ab", "b1", "7", "ab1"])[..], &[WordPart::End(b"7")]].concat();
    let mut visited = Vec::new();
    dictionary.for_each_word(&parts, &mut |word| visited.push(word.to_vec())).unwrap();
    assert_eq!(visited.len(), tester.read_any(&parts).unwrap().len());
    assert!(count_read(&["uixo", "uixot", "tuixo"]) <= 18);
}

#[test]
fn damaged_trigrams_are_found_and_never_panic() {
    for seed in 0..8_usize {
        let tester = index_many_words();
        let segment = tester.pages.segments(DICTIONARY).unwrap()[0].id;
        let trigrams = IndexId(-segment.0);
        tester.pages.damage_index(trigrams, |block| {
            let place = seed.wrapping_mul(0x9e37_79b9) % block.len();
            match seed % 2 {
                0 => block.truncate(place),
                _ => block[place] ^= 1 << seed,
            }
        });
        assert_ne!(verify_trigrams(&tester.pages, DICTIONARY), Ok(0), "{seed}");
        let _read = tester.read(WordPart::Inside(b"abc"));
        delete_all(&tester.pages, trigrams).unwrap();
        assert_eq!(tester.read(WordPart::Inside(b"uixot")).unwrap().len(), 1);
    }
}
