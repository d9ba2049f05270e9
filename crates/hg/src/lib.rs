//! Mercurial repositories as git objects.
//!
//! A changeset becomes a git commit with the id that git-cinnabar 0.7 gives it; docs/hg.md has the
//! rules. Data flows in one direction:
//!
//! ```text
//! server, bundle or local store -> revisions -> conversion -> pack, index and metadata -> refs
//! ```
//!
//! A source delivers [`Revision`]s through [`ChangeSource`], in the order of a changegroup:
//! changesets, manifests, then the revisions of each file. Nothing downstream knows which source it
//! is. This crate runs git and ssh, reads the network and the files of repositories; it reads no
//! environment and prints nothing.
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | `object_id` | ids of Mercurial and of git: 20 bytes, 40 hexadecimal digits |
//! | `revision` | a revision as a delta, and the interface of sources |
//! | `delta` | Mercurial's deltas |
//! | `changeset` | the text of a changeset |
//! | `commit` | the commit of a changeset |
//! | `tree` | the trees of manifests |
//! | `file_conversion` | the blobs of file revisions |
//! | `metadata` | what a conversion leaves for later ones |
//! | `conversion` | the phases of a conversion |
//! | `manifest` | manifests as changes of lines |
//! | `id_index` | finding ids in a list |
//! | `varint` | numbers with seven bits in each byte |
//! | `git` | git's objects, packs and repositories |
//! | `location` | the forms of URLs, and the peer for each |
//! | `fetch` | from refs to missing changes, and to commits, branches and tags |
//! | `refs` | the refs of a Mercurial repository |
//! | `remote_helper` | the dialogue with git |
//! | `peer` | the interface of repositories |
//! | `bundle` | bundles: changegroups in an envelope, as files and as answers of servers |
//! | `bundle_peer` | a bundle as a repository |
//! | `byte_reader` | bytes and numbers of a stream, whose sizes are not believed |
//! | `changegroup` | changegroups: revisions as servers and bundles send them |
//! | `changeset_scan` | the branches and heads of a changelog |
//! | `percent` | percent-encoding as in the protocol |
//! | `line_delta` | deltas of whole lines, computed |
//! | `local` | repositories on this machine |
//! | `revision_set` | sets of revision numbers |
//! | `revlog` | the files in which Mercurial keeps revisions |
//! | `store_stream` | the files of a store, sent as they are |
//! | `tags` | the tags of all heads, merged |
//! | `wire` | the wire protocol over HTTP, ssh and pipes |

mod bundle;
mod bundle_peer;
mod byte_reader;
mod changegroup;
mod changeset;
mod changeset_scan;
mod commit;
mod conversion;
mod delta;
mod fetch;
mod file_conversion;
mod git;
mod id_index;
mod line_delta;
mod local;
mod location;
mod manifest;
mod metadata;
mod object_id;
mod peer;
mod percent;
mod refs;
mod remote_helper;
mod revision;
mod revision_set;
mod revlog;
mod store_stream;
mod tags;
mod tree;
mod varint;
mod wire;

pub use crate::bundle::{
    BundleContent, ByteStream, PartParameter, StorePart, open_bundle, open_bundle_content,
};
pub use crate::bundle_peer::BundlePeer;
pub use crate::changegroup::{Changegroup, ChangegroupVersion};
pub use crate::conversion::{ConversionError, ConversionSummary, Phase, Progress, convert};
pub use crate::delta::{DeltaError, Hunk, apply_delta, hunks};
pub use crate::fetch::{FetchError, convert_all, convert_bundle, fetch, update_tags};
pub use crate::git::credentials::GitCredentials;
pub use crate::git::repository::{GitDirectory, GitDirectoryError};
pub use crate::local::{LocalError, LocalPeer};
pub use crate::location::{ServerSettings, open_peer};
pub use crate::metadata::{HeadChangeset, METADATA_REF, Metadata, MetadataError, rollback};
pub use crate::object_id::{GitId, IdMap, Node};
pub use crate::peer::{BranchHeads, Peer, PeerRefs, RecommendedBundle};
pub use crate::refs::{RefStyle, RemoteRefs, remote_refs, tag_refs};
pub use crate::remote_helper::{HelperError, HelperSettings, run_remote_helper};
pub use crate::revision::{ChangeError, ChangeSource, Revision};
pub use crate::revlog::{ChunkDecoder, ChunkError, Revlog, RevlogEntry, RevlogError};
pub use crate::store_stream::unpack_store;
pub use crate::tags::TagMerge;
pub use crate::wire::{
    CredentialSource, HttpSettings, Login, PipeServer, ServerOutput, SshCommand, SshLocation,
    WirePeer, connect_http, connect_pipe,
};
