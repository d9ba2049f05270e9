//! The inputs of a merge in the order of their current terms.
//!
//! Few inputs are merged, and an input that advances mostly stays among the first, so they are in a
//! sorted list, beside the first bytes of their terms: most comparisons look at nothing else.
//! Separate from `word_merge_input` and `term_dictionary`, whose inputs are both ordered by it.

use std::cmp::Ordering;

/// An input of a merge, which is read term by term.
pub(crate) trait OrderedInput {
    /// Returns the first bytes of the current term, see [`prefix_key`](crate::term::prefix_key).
    fn term_prefix(&self) -> u64;

    /// Compares what follows the first bytes of equal ones.
    fn compare_rest(&self, other: &Self) -> Ordering;

    fn is_ended(&self) -> bool;
}

/// The inputs that have not ended. Inputs with equal entries are in the order of the inputs.
pub(crate) struct MergeOrder(Vec<PlacedInput>);

#[derive(Debug, Clone, Copy)]
struct PlacedInput {
    term_prefix: u64,
    input: usize,
}

impl MergeOrder {
    pub(crate) fn new<I: OrderedInput>(inputs: &[I]) -> MergeOrder {
        let open = inputs.iter().enumerate().filter(|(_, input)| !input.is_ended());
        let placed = open.map(|(input, one)| PlacedInput { term_prefix: one.term_prefix(), input });
        let mut order: Vec<PlacedInput> = placed.collect();
        order.sort_by(|a, b| compare(inputs, *a, *b));
        MergeOrder(order)
    }

    /// Returns the input with the least entry; `None` if all inputs have ended.
    #[inline]
    pub(crate) fn least_input(&self) -> Option<usize> {
        self.0.first().map(|least| least.input)
    }

    /// Returns the input with the next entry.
    #[inline]
    pub(crate) fn next_input(&self) -> Option<usize> {
        self.0.get(1).map(|second| second.input)
    }

    /// Puts the input that had the least entry at its new place.
    #[inline]
    pub(crate) fn update_least<I: OrderedInput>(&mut self, inputs: &[I]) {
        let Some(least) = self.0.first_mut() else { return };
        match inputs.get(least.input).filter(|input| !input.is_ended()) {
            Some(input) => least.term_prefix = input.term_prefix(),
            None => {
                self.0.remove(0);
                return;
            }
        }
        let moved = *least;
        for place in 1..=self.0.len() {
            let next = self.0.get(place).copied();
            let next = next.filter(|next| compare(inputs, *next, moved).is_lt());
            self.0[place - 1] = next.unwrap_or(moved);
            if next.is_none() {
                break;
            }
        }
    }
}

#[inline]
fn compare<I: OrderedInput>(inputs: &[I], a: PlacedInput, b: PlacedInput) -> Ordering {
    a.term_prefix.cmp(&b.term_prefix).then_with(|| {
        let (one, other) = (inputs.get(a.input), inputs.get(b.input));
        let rest = one.zip(other).map_or(Ordering::Equal, |(one, other)| one.compare_rest(other));
        rest.then(a.input.cmp(&b.input))
    })
}
