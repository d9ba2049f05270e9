//! A grid of 7,796 rules, most of them hostile, compared with the occurrences that a plain
//! evaluator found for them.
//!
//! `data/grid.tsv.gz` holds for each rule: start, rule (`U` stands for the UNTIL that most have),
//! the number of the first fifty occurrences, and the beginning of the SHA-1 of their list. Rules
//! are bare: the start is an occurrence only if it matches.

use flate2::read::GzDecoder;
use larder_time::civil::CivilTime;
use larder_time::rule::Rule;
use larder_time::value::IcalDateTime;
use std::fmt::Write as _;
use std::io::Read as _;

pub(crate) struct Line {
    pub(crate) start: CivilTime,
    pub(crate) rule: Rule,
    pub(crate) text: String,
    count: usize,
    hash: String,
}

pub(crate) fn lines() -> Vec<Line> {
    let mut text = String::new();
    let packed = include_bytes!("data/grid.tsv.gz");
    GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("packed text");
    let line = |line: &str| {
        let [start, rule, count, hash] =
            line.split('\t').collect::<Vec<_>>().try_into().expect("four columns");
        let text = match rule.strip_suffix(";U") {
            Some(rule) => format!("{rule};UNTIL=20401231T235959Z"),
            None => rule.to_string(),
        };
        Line {
            start: IcalDateTime::parse(start).expect("a start").civil,
            rule: Rule::parse(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong}")),
            text,
            count: count.parse().expect("a number"),
            hash: hash.to_string(),
        }
    };
    text.lines().map(line).collect()
}

#[test]
fn every_rule_of_the_grid_matches() {
    let lines = lines();
    assert_eq!(lines.len(), 7_796);
    let mut wrong = Vec::new();
    for line in &lines {
        let found: Vec<String> = line
            .rule
            .occurrences_from(line.start, line.start)
            .take(50)
            .map(|at| at.to_string())
            .collect();
        let list = found.join(",");
        if found.len() != line.count || !sha1(list.as_bytes()).starts_with(&line.hash) {
            wrong.push(format!("{} from {}: {list}", line.text, line.start));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        lines.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[test]
fn canonical_text_is_the_same_rule() {
    for line in lines() {
        let text = line.rule.to_string();
        assert_eq!(Rule::parse(&text).expect("a rule"), line.rule, "{} as {text}", line.text);
    }
}

/// The occurrences from any point equal those from the start without the earlier ones.
#[test]
fn seeking_equals_enumeration() {
    for (number, line) in lines().into_iter().enumerate().step_by(7) {
        let all: Vec<CivilTime> = line.rule.occurrences_from(line.start, line.start).collect();
        for part in 1..5 {
            let place = (all.len() * part / 5 + number % 3).min(all.len().saturating_sub(1));
            let Some(member) = all.get(place) else { continue };
            for at in [
                member.saturating_add(-1),
                *member,
                member.saturating_add(1),
                member.saturating_add(40_000_000),
            ] {
                let expected: Vec<CivilTime> =
                    all.iter().filter(|civil| **civil >= at).copied().take(20).collect();
                let found: Vec<CivilTime> =
                    line.rule.occurrences_from(line.start, at).take(20).collect();
                assert_eq!(found, expected, "{} from {} at {at}", line.text, line.start);
            }
        }
    }
}

fn sha1(bytes: &[u8]) -> String {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - bytes.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let end = padded.len() - 8;
    padded[end..].copy_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut words = [0u32; 80];
        for (word, four) in words.iter_mut().zip(block.chunks(4)) {
            *word = u32::from_be_bytes(four.try_into().expect("four bytes"));
        }
        for n in 16..80 {
            words[n] = (words[n - 3] ^ words[n - 8] ^ words[n - 14] ^ words[n - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (n, word) in words.iter().enumerate() {
            let (f, k) = match n {
                0..20 => (b & c | !b & d, 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let sum = [a.rotate_left(5), f, e, k, *word].into_iter().fold(0, u32::wrapping_add);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, sum);
        }
        for (part, sum) in state.iter_mut().zip([a, b, c, d, e]) {
            *part = part.wrapping_add(sum);
        }
    }
    state.iter().fold(String::new(), |mut text, part| {
        write!(text, "{part:08x}").expect("a string takes everything");
        text
    })
}
