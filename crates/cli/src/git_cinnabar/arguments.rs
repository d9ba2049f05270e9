//! The arguments of git-cinnabar.

use std::ffi::OsString;

/// The version of git-cinnabar whose commands are followed, and this program's own.
const VERSION: &str = concat!("0.7.5 (larder ", env!("CARGO_PKG_VERSION"), ")");

/// Larder, under the name of git-cinnabar: fetch changesets of Mercurial, and look them up
#[derive(clap::Parser)]
#[command(name = "git-cinnabar", version = VERSION, arg_required_else_help = true)]
pub(super) struct CinnabarArgs {
    #[command(subcommand)]
    pub(super) command: CinnabarCommand,
}

#[derive(clap::Subcommand)]
pub(super) enum CinnabarCommand {
    /// Print the commit of each changeset
    Hg2git(ConversionArgs),
    /// Print the changeset of each commit
    Git2hg(ConversionArgs),
    /// Fetch changesets of a remote repository, or update tags
    Fetch(FetchArgs),
    /// Import a bundle of Mercurial
    Unbundle {
        /// Take the bundle that the repository of the URL recommends for clones
        #[arg(long)]
        clonebundle: bool,
        /// The URL or the path
        url: OsString,
    },
    /// Go back to an earlier state of the metadata
    Rollback(RollbackArgs),
    /// Forget all metadata
    Clear,
    /// Check what was converted
    Fsck(FsckArgs),
    /// Print the text of a changeset, a manifest or a file revision, as Mercurial hashes it
    Data(DataArgs),
    /// List the tags of Mercurial
    Tag(TagArgs),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(clap::Args)]
pub(super) struct ConversionArgs {
    /// Print so many digits of an id (without a number: 12)
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "12",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=40)
    )]
    pub(super) abbrev: Option<usize>,
    /// Read further names from standard input
    #[arg(long)]
    pub(super) batch: bool,
    /// The names
    #[arg(required_unless_present = "batch", value_name = "NAME")]
    pub(super) names: Vec<String>,
}

#[derive(clap::Args)]
pub(super) struct FetchArgs {
    /// Update tags
    #[arg(long)]
    pub(super) tags: bool,
    /// The name or the URL of the remote repository
    #[arg(required_unless_present = "tags")]
    pub(super) remote: Option<String>,
    /// The revisions, by any name that Mercurial takes
    #[arg(required_unless_present = "tags", value_name = "REVISION")]
    pub(super) revisions: Vec<String>,
}

#[derive(clap::Args)]
pub(super) struct RollbackArgs {
    /// List the states that a rollback can go to
    #[arg(long, conflicts_with_all = ["fsck", "force", "commit"])]
    pub(super) candidates: bool,
    /// Go to the newest state that fsck found sound
    #[arg(long, conflicts_with_all = ["force", "commit"])]
    pub(super) fsck: bool,
    /// Go to a state that is not before the current one
    #[arg(long, requires = "commit")]
    pub(super) force: bool,
    /// The state to go to; without it, the one before the current one
    pub(super) commit: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct FsckArgs {
    /// Make the texts of all manifests again, and read all files, too
    #[arg(long)]
    pub(super) full: bool,
    /// Check a state that was found sound, too (always done)
    #[arg(long)]
    pub(super) force: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
pub(super) struct DataArgs {
    /// The changeset
    #[arg(short = 'c', value_name = "NODE")]
    pub(super) changeset: Option<String>,
    /// The manifest
    #[arg(short = 'm', value_name = "NODE")]
    pub(super) manifest: Option<String>,
    /// The file revision
    #[arg(value_name = "NODE")]
    pub(super) file: Option<String>,
}

#[derive(clap::Args)]
pub(super) struct TagArgs {
    /// List tags
    #[arg(short = 'l', long = "list")]
    pub(super) is_list: bool,
    /// The fields of a line, of %(tagname), %(objectname) and %(hg::objectname)
    #[arg(long)]
    pub(super) format: Option<String>,
    /// Arguments that make a tag, which is not supported
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) other: Vec<OsString>,
}
