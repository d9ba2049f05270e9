//! The term dictionary, compared with a set of words.

use crate::memory_pages::MemoryPages;
use larder_index::{
    CorruptBlock, DictionaryRebuild, IndexId, SegmentWords, TermDictionary, WordBuffer, WordPart,
    merge_dictionary_step,
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
        let mut found = BTreeSet::new();
        let dictionary = TermDictionary::open(&self.pages, DICTIONARY)?;
        dictionary.for_each_word(part, &mut |word| {
            found.insert(word.to_vec());
        })?;
        Ok(found)
    }

    fn check(&self, part: &str) {
        let part = part.as_bytes();
        assert_eq!(self.read(WordPart::Any).unwrap(), self.words);
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
    dictionary.for_each_word(WordPart::Any, &mut |word| words.push(word.to_vec())).unwrap();
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
