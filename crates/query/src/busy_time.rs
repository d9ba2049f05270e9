//! Busy time: when somebody has no time, merged, as RFC 5545 (3.6.4) and RFC 4791 (7.10) have it.
//!
//! Events take time unless they are transparent or cancelled; what is tentative may take it. Where
//! both overlap it is taken. Nothing else is told of an event.

use crate::agenda::AgendaEntry;
use larder_store::{Kind, TimeRange};
use larder_time::civil::Instant;

/// Time that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPeriod {
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// Perhaps it is not.
    pub tentative: bool,
}

/// A stretch of time, and whether it is tentative.
type BusySpan = (Instant, Instant, bool);

/// The time that these occurrences take in a window, in order; no two of one sort touch each other.
#[must_use]
pub fn busy_periods(entries: &[AgendaEntry], window: &TimeRange) -> Vec<BusyPeriod> {
    let taking = entries.iter().filter(|entry| {
        let item = &entry.item;
        item.head.kind == Kind::Event && !item.transparent && !item.is_cancelled()
    });
    let taken = taking.map(|entry| {
        let of = &entry.occurrence.occurrence;
        let tentative = entry.item.status == "TENTATIVE";
        (of.start.max(window.from), of.end.min(window.to), tentative)
    });
    combine_by_certainty(&taken.collect::<Vec<_>>())
}

fn combine_by_certainty(taken: &[BusySpan]) -> Vec<BusyPeriod> {
    let spans = |tentative: bool| {
        let spans = taken.iter().filter(|(from, to, of)| from < to && *of == tentative);
        merge_spans(spans.map(|(from, to, _)| (*from, *to)).collect())
    };
    let (sure, perhaps) = (spans(false), spans(true));
    let as_busy = |tentative| move |(from, to)| BusyPeriod { from, to, tentative };
    let mut all: Vec<BusyPeriod> =
        subtract_spans(&perhaps, &sure).into_iter().map(as_busy(true)).collect();
    all.extend(sure.into_iter().map(as_busy(false)));
    all.sort_unstable_by_key(|busy| busy.from);
    all
}

fn merge_spans(mut spans: Vec<(Instant, Instant)>) -> Vec<(Instant, Instant)> {
    spans.sort_unstable();
    let mut merged: Vec<(Instant, Instant)> = Vec::new();
    for (from, to) in spans {
        match merged.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => merged.push((from, to)),
        }
    }
    merged
}

/// What of these spans no other covers; both are merged.
fn subtract_spans(
    spans: &[(Instant, Instant)],
    others: &[(Instant, Instant)],
) -> Vec<(Instant, Instant)> {
    let mut left = Vec::new();
    let mut others = others.iter().peekable();
    for &(mut from, to) in spans {
        while others.next_if(|(_, end)| *end <= from).is_some() {}
        while let Some(&&(begin, end)) = others.peek().filter(|(begin, _)| *begin < to) {
            if from < begin {
                left.push((from, begin));
            }
            from = end.max(from);
            if end >= to {
                break;
            }
            others.next();
        }
        if from < to {
            left.push((from, to));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is so at each second of a minute: sure, tentative or free.
    fn seconds(spans: &[BusySpan]) -> Vec<Option<bool>> {
        let at = |second: i64| {
            let at = Instant::from_seconds_clamped(second);
            let here = spans.iter().filter(|(from, to, _)| *from <= at && at < *to);
            here.map(|(.., tentative)| *tentative).min()
        };
        (0..60).map(at).collect()
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_overlaps(
            spans in prop::collection::vec((0_i64..60, 0_i64..60, any::<bool>()), 0..12)
        ) {
            let instant = Instant::from_seconds_clamped;
            let taken: Vec<BusySpan> =
                spans.iter().map(|(from, to, of)| (instant(*from), instant(*to), *of)).collect();
            let busy = combine_by_certainty(&taken);
            let told = busy.iter().map(|busy| (busy.from, busy.to, busy.tentative));
            let told: Vec<BusySpan> = told.collect();
            prop_assert_eq!(seconds(&told), seconds(&taken));
            for pair in busy.windows(2) {
                prop_assert!(pair[0].to <= pair[1].from);
                prop_assert!(pair[0].to < pair[1].from || pair[0].tentative != pair[1].tentative);
            }
        }
    }
}
