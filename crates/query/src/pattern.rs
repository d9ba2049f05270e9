//! Regular expressions in queries: compiled within bounds, and once while a query uses them.
//!
//! A view resolves its query again as the clock moves, under a lock that all views share, and a
//! query is prepared for each type of collection. The compilation of a pattern takes milliseconds,
//! so equal patterns share their program. Separate from `value_matcher`, which tests values.

use crate::step_counter::StepCounter;
use larder_format::fold::fold;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The limit of the program of a pattern, and of the states that are cached while it runs.
const MAX_REGEX_PROGRAM_BYTES: usize = 1 << 20;
/// The smallest size of a program that is told apart.
const MIN_REGEX_PROGRAM_BYTES: usize = 1 << 12;
/// The bytes of one state of a compiled pattern, at least.
const REGEX_STATE_BYTES: u64 = 16;
/// A pattern is not run on a longer value if the worst case exceeds the budget: one run cannot be
/// interrupted.
const MAX_UNPRICED_VALUE_BYTES: usize = 1 << 16;
/// The longest pattern.
const MAX_REGEX_BYTES: usize = 4096;
/// The most patterns of one query: each may take as much memory as the limit of its program.
pub(crate) const MAX_PATTERNS: usize = 64;
/// The deepest nesting of a pattern.
const MAX_REGEX_DEPTH: u32 = 64;

/// The programs of the patterns that queries use.
static PROGRAMS: Mutex<ProgramTable> =
    Mutex::new(ProgramTable { programs: BTreeMap::new(), max_count: MAX_PATTERNS });

/// A compiled regular expression. Clones, and other patterns of the same text, share the program.
#[derive(Debug, Clone)]
pub(crate) struct RegexPattern(Arc<PatternProgram>);

#[derive(Debug)]
struct PatternProgram {
    regex: Regex,
    /// An upper bound of the states.
    max_states: u64,
}

struct ProgramTable {
    /// By the text of the pattern.
    programs: BTreeMap<Box<str>, Weak<PatternProgram>>,
    /// With more programs, those that no query uses any more are removed.
    max_count: usize,
}

impl RegexPattern {
    /// Compiles a pattern, within bounds, unless a query uses the same pattern.
    ///
    /// The syntax is the syntax of the `regex` crate, a subset of PCRE: no pattern of libebook has
    /// look-around or backreferences, and without them a match takes time linear in the text. The
    /// backtracking of PCRE would have to be stopped by a budget, and a live view would miss
    /// contacts.
    pub(crate) fn compile(text: &str) -> Result<RegexPattern, String> {
        if text.len() > MAX_REGEX_BYTES {
            return Err(format!("it has more than {MAX_REGEX_BYTES} bytes"));
        }
        let table = || PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table().programs.get(text).and_then(Weak::upgrade);
        if let Some(program) = known {
            return Ok(RegexPattern(program));
        }
        let program = Arc::new(PatternProgram::compile(text)?);
        table().insert(text, &program);
        Ok(RegexPattern(program))
    }

    /// Compiles a pattern for folded texts. It matches in any case and without accents, too.
    pub(crate) fn compile_folded(text: &str) -> Result<RegexPattern, String> {
        RegexPattern::compile(&fold_pattern(text))
    }

    pub(crate) fn is_match(&self, value: &str) -> bool {
        self.0.regex.is_match(value)
    }

    /// Returns whether a run on a value stays within the budget in the worst case, where each state
    /// is visited for each byte. A short value is always affordable.
    pub(crate) fn is_affordable(&self, value: &str, steps: &StepCounter) -> bool {
        value.len() <= MAX_UNPRICED_VALUE_BYTES || {
            let worst = self.0.max_states.saturating_mul(value.len() as u64);
            worst <= steps.count_remaining()
        }
    }
}

/// Returns a pattern that matches folded texts in any case and without accents, too.
pub(crate) fn fold_pattern(text: &str) -> String {
    let mut folded = String::from("(?i)");
    for c in text.chars() {
        match c.is_ascii() {
            true => folded.push(c),
            false => folded.push_str(&fold(c.encode_utf8(&mut [0; 4]))),
        }
    }
    folded
}

impl PatternProgram {
    fn compile(text: &str) -> Result<PatternProgram, String> {
        let regex = build_regex(text, MAX_REGEX_PROGRAM_BYTES).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large when compiled".into(),
            // The message is a drawing of the pattern; its last line has the reason.
            error => {
                let message = error.to_string();
                let last = message.lines().last().unwrap_or_default();
                last.strip_prefix("error: ").unwrap_or(last).to_string()
            }
        })?;
        // The size of a compiled pattern is known only as the limit under which it compiles.
        let mut bytes = MIN_REGEX_PROGRAM_BYTES;
        while bytes < MAX_REGEX_PROGRAM_BYTES && build_regex(text, bytes).is_err() {
            bytes *= 4;
        }
        Ok(PatternProgram { regex, max_states: bytes as u64 / REGEX_STATE_BYTES })
    }
}

fn build_regex(text: &str, max_bytes: usize) -> Result<Regex, regex::Error> {
    #[cfg(test)]
    tests::COMPILATIONS.set(tests::COMPILATIONS.get() + 1);
    regex::RegexBuilder::new(text)
        .size_limit(max_bytes)
        .dfa_size_limit(MAX_REGEX_PROGRAM_BYTES)
        .nest_limit(MAX_REGEX_DEPTH)
        .build()
}

impl ProgramTable {
    fn insert(&mut self, text: &str, program: &Arc<PatternProgram>) {
        self.programs.insert(text.into(), Arc::downgrade(program));
        if self.programs.len() > self.max_count {
            self.programs.retain(|_, program| program.strong_count() > 0);
            self.max_count = MAX_PATTERNS.max(self.programs.len() * 2);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        /// The number of compilations by this thread.
        pub(super) static COMPILATIONS: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn count_compilations() -> usize {
        COMPILATIONS.get()
    }

    #[test]
    fn a_pattern_in_use_is_compiled_once() {
        let first = RegexPattern::compile("compiled-onc[e]").unwrap();
        let compiled = count_compilations();
        let second = RegexPattern::compile("compiled-onc[e]").unwrap();
        assert_eq!(count_compilations(), compiled);
        assert!(second.is_match("it is compiled-once") && Arc::ptr_eq(&first.0, &second.0));
        drop((first, second));
        RegexPattern::compile("compiled-onc[e]").unwrap();
        assert!(count_compilations() > compiled, "nothing used it any more");
    }

    #[test]
    fn programs_that_nothing_uses_are_forgotten() {
        let mut table = ProgramTable { programs: BTreeMap::new(), max_count: 2 };
        let used = Arc::new(PatternProgram::compile("used").unwrap());
        table.insert("used", &used);
        for text in ["a", "b", "c"] {
            table.insert(text, &Arc::new(PatternProgram::compile(text).unwrap()));
        }
        assert!(table.programs.contains_key("used") && !table.programs.contains_key("a"));
    }
}
