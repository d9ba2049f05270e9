//! The times of calls, as far as a log knows them: the collector notes the time when it reads
//! calls, but at most once in [`NOTE_INTERVAL_US`], and calls between two notes have the time of
//! the first.

/// The most notes that are kept; of more, every second one is dropped, so that lifetimes are known
/// to about a four-thousandth of the run.
const MAX_NOTES: usize = 8192;
/// The logarithm of the number of equal parts of the clock for which the place in the notes is
/// known: at most so many.
const MAX_PARTS_LOG2: u32 = 13;
/// The least time between two notes, so that they take little of the log.
pub(super) const NOTE_INTERVAL_US: u64 = 5_000;
/// The least time between two calls that can be told from none.
pub(super) const TIME_STEP_US: u64 = 2 * NOTE_INTERVAL_US;

/// The times of the calls of a process.
#[derive(Debug)]
pub(super) struct CallTimes {
    /// The clock, as of ages, and the time, in order of both.
    notes: Vec<(u64, u64)>,
    /// The number of notes before each part of the clock, of `1 << part_log2`: each release looks
    /// for the note of a birth, and a search among all of them took a tenth of an analysis.
    notes_before: Vec<u32>,
    part_log2: u32,
    /// The least time between two of them.
    spacing_us: u64,
    /// The last note.
    clock: u64,
    time_us: u64,
}

impl CallTimes {
    /// Begins with the start of a process.
    pub(super) fn new(start_us: u64) -> CallTimes {
        CallTimes {
            notes: vec![(0, start_us)],
            notes_before: vec![0],
            part_log2: 0,
            spacing_us: 0,
            clock: 0,
            time_us: start_us,
        }
    }

    /// Takes a note: the time up to which the calls that the clock counts had been made.
    pub(super) fn note(&mut self, clock: u64, time_us: u64) {
        // The times of a log that somebody made up may go back.
        self.time_us = self.time_us.max(time_us);
        self.clock = clock;
        let Some(last) = self.notes.last_mut() else { return };
        if last.0 == clock {
            last.1 = self.time_us;
        } else if self.time_us - last.1 >= self.spacing_us.max(1) {
            if self.notes.len() >= MAX_NOTES {
                let mut number = 0;
                self.notes.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                let (first, last) = (self.notes.first(), self.notes.last());
                let run = last.zip(first).map_or(0, |(last, first)| last.1 - first.1);
                self.spacing_us = run / (MAX_NOTES as u64 / 2);
                self.divide_clock();
            }
            self.notes.push((clock, self.time_us));
            if clock >> self.part_log2 >= 1 << MAX_PARTS_LOG2 {
                self.part_log2 = clock.ilog2() + 2 - MAX_PARTS_LOG2;
                self.divide_clock();
            } else {
                self.add_parts(self.notes.len() - 1);
            }
        }
    }

    /// Finds the place of each part of the clock in the notes.
    fn divide_clock(&mut self) {
        self.notes_before.clear();
        (0..self.notes.len()).for_each(|index| self.add_parts(index));
    }

    /// Adds the parts of the clock up to that of a note.
    fn add_parts(&mut self, index: usize) {
        let parts = (self.notes[index].0 >> self.part_log2) as usize + 1;
        if parts > self.notes_before.len() {
            self.notes_before.resize(parts, index as u32);
        }
    }

    /// Returns the least time that a lifetime can be told from none.
    pub(super) fn step_us(&self) -> u64 {
        self.spacing_us.max(TIME_STEP_US)
    }

    /// Returns the time of the last note.
    pub(super) fn time_us(&self) -> u64 {
        self.time_us
    }

    /// Returns how long ago an object was allocated, by the clock after its allocation; 0: since
    /// the last note.
    #[inline(always)]
    pub(super) fn age_us(&self, birth: u64) -> u64 {
        if birth > self.clock { 0 } else { self.known_age_us(birth) }
    }

    fn known_age_us(&self, birth: u64) -> u64 {
        let part = (birth >> self.part_log2) as usize;
        let place =
            |part: usize| self.notes_before.get(part).map_or(self.notes.len(), |it| *it as usize);
        let (first, end) = (place(part), place(part + 1));
        let after = first + self.notes[first..end].partition_point(|(clock, _)| *clock < birth);
        let note = after.checked_sub(1).and_then(|index| self.notes.get(index));
        let born_us = note.or(self.notes.first()).map_or(0, |(_, time_us)| *time_us);
        self.time_us.saturating_sub(born_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_age_is_the_time_between_two_notes() {
        let mut times = CallTimes::new(100);
        // Objects 1 to 10, then 11 to 20.
        assert_eq!(times.age_us(1), 0);
        times.note(10, 5_100);
        assert_eq!((times.age_us(1), times.age_us(10), times.age_us(11)), (5_000, 5_000, 0));
        times.note(10, 9_100);
        times.note(20, 12_100);
        assert_eq!((times.age_us(10), times.age_us(11), times.age_us(20)), (12_000, 3_000, 3_000));
        // Times that go back.
        times.note(30, 7);
        assert_eq!((times.age_us(20), times.age_us(21), times.time_us()), (3_000, 0, 12_100));
    }

    proptest! {
        /// The note of a birth is the last one before it, however the calls are spread.
        #[test]
        fn a_birth_is_found_among_all_notes(
            steps in prop::collection::vec((0_u64..40, 0_u32..14, 0_u64..9_000), 1..300),
            births in prop::collection::vec(0..u64::MAX, 20),
        ) {
            let mut times = CallTimes::new(0);
            let mut clock = 0;
            let mut time_us = 0;
            for (step, scale, pause_us) in steps {
                clock += step << scale;
                time_us += pause_us;
                times.note(clock, time_us);
                let known = births.iter().filter_map(|birth| birth.checked_rem(clock));
                for birth in known.map(|birth| birth + 1) {
                    let last = times.notes.iter().rev().find(|(clock, _)| *clock < birth);
                    let born_us = last.map(|(_, time_us)| *time_us);
                    prop_assert_eq!(Some(times.age_us(birth)), born_us.map(|it| time_us - it));
                }
            }
        }
    }

    #[test]
    fn the_notes_of_a_long_run_are_thinned() {
        let mut times = CallTimes::new(0);
        let notes = 1_000_000;
        (1..=notes).for_each(|number| times.note(number * 10, number * 5_000));
        assert!(times.notes.len() <= MAX_NOTES, "{}", times.notes.len());
        let run = notes * 5_000;
        for tenth in 0..10 {
            let (birth, exact) = (notes * tenth + 1, run - run / 10 * tenth);
            let age = times.age_us(birth);
            assert!(age >= exact && age - exact <= run / 1000, "{age} for {exact}");
        }
    }
}
