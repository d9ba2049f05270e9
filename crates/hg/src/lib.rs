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
//! | `base_texts` | texts of converted changesets, for bundles that build on them |
//! | `branch_heads` | the heads of a branch among changesets with numbers |
//! | `object_id` | ids of Mercurial and of git: 20 bytes, 40 hexadecimal digits |
//! | `revision` | a revision as a delta, and the interface of sources |
//! | `delta` | Mercurial's deltas |
//! | `changeset` | the text of a changeset |
//! | `commit` | the commit of a changeset |
//! | `tree` | the trees of manifests |
//! | `file_conversion` | the blobs of file revisions |
//! | `metadata` | what a conversion leaves for later ones |
//! | `conversion` | the phases of a conversion |
//! | `cinnabar` | metadata of git-cinnabar, taken over |
//! | `check` | what conversions left, checked |
//! | `manifest` | manifests as changes of lines |
//! | `id_index` | finding ids in a list |
//! | `varint` | numbers with seven bits in each byte |
//! | `fetch_error`, `fetch_options` | the error of fetches, and how they are made |
//! | `first_fetch` | the start of a first fetch: shared metadata, bundles |
//! | `git` | git's objects, packs and repositories |
//! | `url_authority` | the login, the machine and the port of a URL |
//! | `location` | the forms of URLs, and the peer for each |
//! | `fuzz_checks` | entrances of the fuzz targets, with the feature `fuzz-checks` |
//! | `fetch` | from refs to missing changes, and to commits, branches and tags |
//! | `refs` | the refs of a Mercurial repository |
//! | `import_refs` | the refs from which git takes an import, for each remote |
//! | `remote_helper` | the dialogue with git |
//! | `oddity` | what is unusual in a history |
//! | `peer` | the interface of repositories |
//! | `bundle` | bundles: changegroups in an envelope, as files and as answers of servers |
//! | `bundle_peer` | a bundle as a repository |
//! | `byte_reader` | bytes and numbers of a stream, whose sizes are not believed |
//! | `changegroup` | changegroups: revisions as servers and bundles send them |
//! | `changeset_scan` | the branches and heads of a changelog |
//! | `mutex` | locking what threads share |
//! | `path_text` | paths in messages |
//! | `percent` | percent-encoding as in the protocol |
//! | `present_heads` | the heads of branches that earlier conversions made |
//! | `line_delta` | deltas of whole lines, computed |
//! | `local` | repositories on this machine |
//! | `received_bytes` | how many bytes have arrived |
//! | `revision_fetch` | fetching revisions by names |
//! | `revision_set` | sets of revision numbers |
//! | `repository_tags` | the tags of a converted repository |
//! | `revlog` | the files in which Mercurial keeps revisions |
//! | `scratch_folder` | temporary folders |
//! | `sha1_pair` | two SHA-1 hashes at once |
//! | `shared_metadata` | metadata that another conversion left, taken from git |
//! | `store_stream` | the files of a store, sent as they are |
//! | `unpacked_store` | the files of a store as a repository |
//! | `tags` | the tags of all heads, merged |
//! | `wire` | the wire protocol over HTTP, ssh and pipes |

mod base_texts;
mod branch_heads;
mod bundle;
mod bundle_peer;
mod byte_reader;
mod changegroup;
mod changeset;
mod changeset_scan;
mod check;
mod cinnabar;
mod commit;
mod conversion;
mod delta;
mod fetch;
mod fetch_error;
mod fetch_options;
mod file_conversion;
mod first_fetch;
#[cfg(feature = "fuzz-checks")]
pub mod fuzz_checks;
mod git;
mod id_index;
mod import_refs;
mod line_delta;
mod local;
mod location;
mod manifest;
mod metadata;
mod mutex;
mod object_id;
mod oddity;
mod path_text;
mod peer;
mod percent;
mod present_heads;
mod received_bytes;
mod refs;
mod remote_helper;
mod repository_tags;
mod revision;
mod revision_fetch;
mod revision_set;
mod revlog;
mod scratch_folder;
mod sha1_pair;
mod shared_metadata;
mod store_stream;
mod tags;
mod tree;
mod unpacked_store;
mod url_authority;
mod varint;
mod wire;

pub use crate::base_texts::stored_texts;
pub use crate::bundle::{
    BundleContent, ByteStream, PartParameter, StorePart, open_bundle, open_bundle_content,
};
pub use crate::bundle_peer::BundlePeer;
pub use crate::check::{CheckDepth, ConversionCheck, check_conversion};
pub use crate::cinnabar::{CINNABAR_REF, CinnabarError, CinnabarImport, import_cinnabar};
pub use crate::conversion::{
    ConversionError, ConversionOptions, ConversionSummary, FetchNotice, Phase, Progress, convert,
};
pub use crate::delta::{DeltaError, apply_delta};
pub use crate::fetch::{convert_all, convert_bundle, convert_clone_bundle, fetch};
pub use crate::fetch_error::FetchError;
pub use crate::fetch_options::{CloneSource, FetchOptions};
pub use crate::git::credentials::GitCredentials;
pub use crate::git::environment::ignore_repository_variables;
pub use crate::git::repository::{GitDirectory, GitDirectoryError};
pub use crate::git::settings::GitSettings;
pub use crate::local::{LocalError, LocalPeer};
pub use crate::location::{ServerSettings, SettingsResult, open_peer, relative_path};
pub use crate::metadata::{
    BROKEN_REF, CHECKED_REF, HeadChangeset, METADATA_REF, Metadata, MetadataError, StateChoice,
    WholeRevision, mark_state, metadata_states, rollback, set_metadata_state,
};
pub use crate::object_id::{GitId, Node};
pub use crate::oddity::{Oddity, OddityCount, OddityReport};
pub use crate::peer::{BaseTexts, BranchHeads, Peer, PeerRefs};
pub use crate::received_bytes::ReceivedBytes;
pub use crate::refs::{PRIVATE_PREFIX, RefStyle, RemoteRefs, remote_refs, tag_refs};
pub use crate::remote_helper::{
    END_OF_IMPORT, HelperError, HelperSettings, run_remote_helper, run_tags_helper,
};
pub use crate::repository_tags::{RepositoryTag, TagUpdate, repository_tags, update_tags};
pub use crate::revision::{ChangeError, ChangeSource, Revision};
pub use crate::revision_fetch::{FetchedRevision, RevisionFetchError, fetch_revisions};
pub use crate::revlog::{ChunkDecoder, ChunkError, Revlog, RevlogEntry, RevlogError};
pub use crate::shared_metadata::SharedMetadataError;
pub use crate::store_stream::unpack_store;
pub use crate::tags::TagMerge;
pub use crate::url_authority::strip_login;
pub use crate::wire::{
    CredentialSource, HttpSettings, Login, PipeServer, ServerOutput, SpeedLimit, SshCommand,
    SshLocation, StreamUse, WirePeer, connect_http, connect_pipe,
};
