//! The protocols through which other programs use Larder, one module each.
//!
//! A protocol module translates: a call becomes a batch or a query, and a change becomes a signal.
//! Its only state besides the store is the subscriptions of its clients, and that state ends with
//! the client. Rules about items, queries and changes belong to the store and to the query crate.
//!
//! The crate is separate because it is the only one that depends on D-Bus and on an asynchronous
//! runtime. Calls are answered one after the other on one thread: each reads mapped pages and makes
//! at most one commit, and replies and signals are sent in the order of the batches. Only queries,
//! which may take long, are answered by other threads; their replies are sent by the first one.
//!
//! | module | responsibility |
//! |---|---|
//! | `eds` | the D-Bus interfaces of evolution-data-server's registry and address books |

pub mod eds;
