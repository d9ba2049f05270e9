//! The scanned directories of a source of mail, each with the known one of the same path.
//!
//! Separate from `directory_listing`, which reads them: it looks up no paths, so that the work
//! grows with the number of directories, and not with its square.

use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// Returns the known directory with the path of each scanned one, and the known directories that
/// were not scanned, in their order.
pub(super) fn pair_directories<'k, P: Eq + Hash + 'k, K>(
    scanned: &[P],
    known: &'k [K],
    path_of: impl Fn(&'k K) -> &'k P,
) -> (Vec<Option<&'k K>>, Vec<&'k K>) {
    let records: FxHashMap<&P, &K> = known.iter().map(|one| (path_of(one), one)).collect();
    let pairs = scanned.iter().map(|path| records.get(path).copied()).collect();
    let paths: FxHashSet<&P> = scanned.iter().collect();
    let gone = known.iter().filter(|one| !paths.contains(path_of(one))).collect();
    (pairs, gone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::hash::Hasher;

    thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    /// A path whose comparisons are counted.
    #[derive(Debug, Eq)]
    struct CountedPath(String);

    impl PartialEq for CountedPath {
        fn eq(&self, other: &CountedPath) -> bool {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0 == other.0
        }
    }

    impl Hash for CountedPath {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }

    fn paths(numbers: impl Iterator<Item = usize>) -> Vec<CountedPath> {
        numbers.map(|number| CountedPath(format!("folder/{number}/cur"))).collect()
    }

    #[test]
    fn each_directory_gets_the_known_one_of_its_path() {
        let known = ["a", "b", "c", "d"];
        let (pairs, gone) = pair_directories(&["c", "x", "a", "c"], &known, |path| path);
        assert_eq!(pairs, [Some(&"c"), None, Some(&"a"), Some(&"c")]);
        assert_eq!(gone, [&"b", &"d"]);
    }

    #[test]
    fn many_directories_are_not_compared_with_each_other() {
        const DIRECTORIES: usize = 10_000;
        let known = paths(0..DIRECTORIES);
        let scanned = paths((0..DIRECTORIES).rev().filter(|number| number % 10 != 0));
        COMPARISONS.set(0);
        let (pairs, gone) = pair_directories(&scanned, &known, |path| path);
        let comparisons = COMPARISONS.get();
        assert!(pairs.iter().all(Option::is_some));
        assert_eq!(gone.len(), DIRECTORIES / 10);
        assert!(comparisons < 4 * DIRECTORIES, "{comparisons} comparisons");
    }
}
