//! Git's side: objects, packs, and the repository through git itself.
//!
//! Objects are written by [`pack_writer`], because feeding `git fast-import` or `git index-pack`
//! costs more CPU time than the whole conversion. Everything else that git knows is asked of git:
//! objects are read by `git cat-file`, and refs are changed by `git update-ref`, but for many new
//! ones at once ([`packed_refs`]).

pub(crate) mod credentials;
pub(crate) mod deflate;
pub(crate) mod delta;
pub(crate) mod environment;
pub(crate) mod file_lock;
pub(crate) mod object;
pub(crate) mod object_stream;
pub(crate) mod pack_entries;
pub(crate) mod pack_keep;
pub(crate) mod pack_leftovers;
pub(crate) mod pack_reader;
pub(crate) mod pack_writer;
mod packed_refs;
pub(crate) mod repository;
pub(crate) mod settings;
