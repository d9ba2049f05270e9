//! The values of a number that a program names, reduced so that they can be drawn: when there are
//! many, neighbours become one point with their lowest and their highest value, so no extreme is
//! lost.

/// The most points of all numbers together.
const MAX_POINTS: usize = 50_000;
/// The most numbers, each with a name of its own.
const MAX_NUMBERS: usize = 100;

/// Values of a number, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberPoint {
    /// The number of calls before the first of them.
    pub calls: u64,
    /// The lowest value.
    pub lowest: u64,
    /// The highest value.
    pub highest: u64,
}

/// A number that a program named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberSeries {
    /// Its name.
    pub name: String,
    /// The number of its values.
    pub count: u64,
    /// The first value.
    pub first: u64,
    /// The last value.
    pub last: u64,
    /// The number of values of each point but the last.
    pub values_per_point: u64,
    /// The values, in order.
    pub points: Vec<NumberPoint>,
}

impl NumberSeries {
    fn new(name: &str, first: u64) -> NumberSeries {
        let points = Vec::new();
        NumberSeries {
            name: name.into(),
            count: 0,
            first,
            last: first,
            values_per_point: 1,
            points,
        }
    }

    /// Returns the highest value.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.points.iter().map(|point| point.highest).max().unwrap_or(0)
    }

    fn add(&mut self, calls: u64, value: u64) {
        if self.count.is_multiple_of(self.values_per_point) {
            self.points.push(NumberPoint { calls, lowest: value, highest: value });
        } else if let Some(point) = self.points.last_mut() {
            point.lowest = point.lowest.min(value);
            point.highest = point.highest.max(value);
        }
        self.count += 1;
        self.last = value;
    }

    /// Joins each two points.
    fn halve(&mut self) {
        let pairs = self.points.chunks(2).filter_map(|pair| {
            let (first, last) = (pair.first()?, pair.last()?);
            let lowest = first.lowest.min(last.lowest);
            Some(NumberPoint {
                calls: first.calls,
                lowest,
                highest: first.highest.max(last.highest),
            })
        });
        self.points = pairs.collect();
        self.values_per_point *= 2;
    }
}

/// Collects the numbers of a program.
#[derive(Debug, Default)]
pub(super) struct NumberCollector {
    numbers: Vec<NumberSeries>,
    /// The points of all numbers.
    points: usize,
    /// The number of values with further names.
    omitted: u64,
}

impl NumberCollector {
    /// Adds a value, with the number of calls before it.
    pub(super) fn add(&mut self, name: &str, calls: u64, value: u64) {
        let known = self.numbers.iter().position(|series| series.name == name);
        if known.is_none() && self.numbers.len() >= MAX_NUMBERS {
            self.omitted += 1;
            return;
        }
        let number = known.unwrap_or_else(|| {
            self.numbers.push(NumberSeries::new(name, value));
            self.numbers.len() - 1
        });
        let series = &mut self.numbers[number];
        let before = series.points.len();
        series.add(calls, value);
        self.points += series.points.len() - before;
        if self.points > MAX_POINTS {
            self.halve_longest();
        }
    }

    /// Joins each two points of the number that has the most.
    fn halve_longest(&mut self) {
        if let Some(series) = self.numbers.iter_mut().max_by_key(|series| series.points.len()) {
            self.points -= series.points.len();
            series.halve();
            self.points += series.points.len();
        }
    }

    /// Returns the numbers, in the order in which they were named, and the number of values with
    /// further names.
    pub(super) fn finish(self) -> (Vec<NumberSeries>, u64) {
        (self.numbers, self.omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_extreme_of_many_values_is_lost() {
        let mut numbers = NumberCollector::default();
        let count = 1_000_003;
        for call in 0..count {
            let value = match call {
                123_456 => 9_000,
                999_999 => 1,
                _ => 500 + call % 7,
            };
            numbers.add("rows", call * 3, value);
        }
        numbers.add("other", 7, 8);
        let [rows, other] = &numbers.finish().0[..] else { panic!("two numbers") };
        assert_eq!((rows.count, rows.first, rows.last), (count, 500, 500 + (count - 1) % 7));
        assert_eq!((rows.highest(), rows.values_per_point), (9_000, 32));
        assert_eq!(rows.points.iter().map(|point| point.lowest).min(), Some(1));
        assert_eq!(rows.points.len() as u64, count.div_ceil(32));
        let with_highest = rows.points.iter().find(|point| point.highest == 9_000).unwrap();
        assert_eq!(with_highest.calls, 123_456 / 32 * 32 * 3);
        let point = NumberPoint { calls: 7, lowest: 8, highest: 8 };
        assert_eq!((other.values_per_point, &other.points[..]), (1, &[point][..]));
    }

    #[test]
    fn values_that_fit_are_kept_one_by_one() {
        let mut numbers = NumberCollector::default();
        (0..MAX_POINTS as u64).for_each(|call| numbers.add("rows", call, call));
        assert_eq!(numbers.numbers[0].values_per_point, 1);
        numbers.add("rows", MAX_POINTS as u64, 5);
        assert_eq!(numbers.numbers[0].values_per_point, 2);
        assert_eq!(numbers.numbers[0].points.len(), MAX_POINTS / 2 + 1);
        assert_eq!(numbers.numbers[0].points.last().unwrap().lowest, 5);
    }

    /// The points of all numbers are bounded, and a number with few values keeps each of them.
    #[test]
    fn many_numbers_take_bounded_memory() {
        let mut numbers = NumberCollector::default();
        for call in 0..1_000_000 {
            if call % 1_000 == 0 {
                numbers.add("rare", call, call);
            }
            numbers.add(&format!("row {}", call % 50), call, call);
            assert!(numbers.points <= MAX_POINTS);
        }
        let points = numbers.numbers.iter().map(|series| series.points.len());
        assert_eq!(points.sum::<usize>(), numbers.points);
        let rare = numbers.numbers.iter().find(|series| series.name == "rare").unwrap();
        assert_eq!((rare.count, rare.points.len()), (1_000, 1_000));
        for series in numbers.numbers.iter().filter(|series| series.name != "rare") {
            assert_eq!(series.count, 20_000);
            assert_eq!(series.points.len() as u64, 20_000_u64.div_ceil(series.values_per_point));
        }
    }

    #[test]
    fn values_of_too_many_names_are_counted() {
        let mut numbers = NumberCollector::default();
        for call in 0..1000 {
            numbers.add(&format!("row {}", call % 500), call, call);
        }
        let (numbers, omitted) = numbers.finish();
        assert_eq!((numbers.len(), omitted), (MAX_NUMBERS, 2 * (500 - MAX_NUMBERS as u64)));
        assert_eq!((numbers[99].count, numbers[99].last), (2, 599));
    }
}
