//! The edges: protocols that other programs speak, one module each.
//!
//! An edge translates: a call becomes a batch or a question, and what changed becomes a signal. It
//! keeps nothing that is not in the store but what clients asked to be told, and that ends with the
//! client. It is no place for rules: what an item is, what a question means and what a change does
//! are the store's and the query's.
//!
//! It is apart because it is the one place that names D-Bus and an asynchronous runtime. Calls are
//! answered one after the other on one thread: the work behind them is reading mapped pages and one
//! commit, and so the order of replies and signals is the order in which they were written down.

pub mod eds;
