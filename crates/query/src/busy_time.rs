//! Busy periods: the merged times at which a calendar has no free time (RFC 5545, 3.6.4; RFC 4791,
//! 7.10).
//!
//! Events count as busy time unless they are transparent or cancelled. Where a tentative event
//! overlaps a confirmed event, the time is busy, not tentative. A period reveals nothing else about
//! its events. Separate from `agenda`, which keeps the events.

use crate::agenda::AgendaEntry;
use larder_store::TimeRange;
use larder_time::civil::Instant;

/// A busy period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPeriod {
    /// The start.
    pub from: Instant,
    /// The end.
    pub to: Instant,
    /// Whether all events in the period are tentative.
    pub tentative: bool,
}

/// Returns the busy periods of a time range, in order. Adjacent periods differ in certainty.
#[must_use]
pub fn busy_periods(entries: &[AgendaEntry], time_range: &TimeRange) -> Vec<BusyPeriod> {
    let busy_entries = entries.iter().filter(|entry| entry.item.is_busy_time());
    let periods = busy_entries.map(|entry| {
        let occurrence = &entry.occurrence.occurrence;
        BusyPeriod {
            from: occurrence.start.max(time_range.from),
            to: occurrence.end.min(time_range.to),
            tentative: entry.item.status == "TENTATIVE",
        }
    });
    combine_by_certainty(&periods.collect::<Vec<_>>())
}

fn combine_by_certainty(periods: &[BusyPeriod]) -> Vec<BusyPeriod> {
    let spans = |tentative: bool| {
        let spans =
            periods.iter().filter(|busy| busy.from < busy.to && busy.tentative == tentative);
        merge_spans(spans.map(|busy| (busy.from, busy.to)).collect())
    };
    let (certain, tentative) = (spans(false), spans(true));
    let as_busy = |tentative| move |(from, to)| BusyPeriod { from, to, tentative };
    let mut all: Vec<BusyPeriod> =
        subtract_spans(&tentative, &certain).into_iter().map(as_busy(true)).collect();
    all.extend(certain.into_iter().map(as_busy(false)));
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

/// Returns the parts of these spans that no span of the other list covers. Both lists are merged.
fn subtract_spans(
    spans: &[(Instant, Instant)],
    others: &[(Instant, Instant)],
) -> Vec<(Instant, Instant)> {
    let mut remaining = Vec::new();
    let mut others = others.iter().peekable();
    for &(mut from, to) in spans {
        while others.next_if(|(_, end)| *end <= from).is_some() {}
        while let Some(&&(begin, end)) = others.peek().filter(|(begin, _)| *begin < to) {
            if from < begin {
                remaining.push((from, begin));
            }
            from = end.max(from);
            if end >= to {
                break;
            }
            others.next();
        }
        if from < to {
            remaining.push((from, to));
        }
    }
    remaining
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns for each second of a minute whether it is tentative; `None` if it is free.
    fn tentative_seconds(periods: &[BusyPeriod]) -> Vec<Option<bool>> {
        let at = |second: i64| {
            let at = Instant::from_seconds_clamped(second);
            let covering = periods.iter().filter(|busy| busy.from <= at && at < busy.to);
            covering.map(|busy| busy.tentative).min()
        };
        (0..60).map(at).collect()
    }

    proptest! {
        #[test]
        fn merged_periods_cover_the_same_time_and_do_not_overlap(
            spans in prop::collection::vec((0_i64..60, 0_i64..60, any::<bool>()), 0..12)
        ) {
            let instant = Instant::from_seconds_clamped;
            let periods = spans.into_iter().map(|(from, to, tentative)| BusyPeriod {
                from: instant(from),
                to: instant(to),
                tentative,
            });
            let periods: Vec<BusyPeriod> = periods.collect();
            let busy = combine_by_certainty(&periods);
            prop_assert_eq!(tentative_seconds(&busy), tentative_seconds(&periods));
            for pair in busy.windows(2) {
                prop_assert!(pair[0].to <= pair[1].from);
                prop_assert!(pair[0].to < pair[1].from || pair[0].tentative != pair[1].tentative);
            }
        }
    }
}
