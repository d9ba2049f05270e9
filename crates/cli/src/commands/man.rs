//! `larder man`.

mod git_pages;
mod markdown;
mod pages;

use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::output_path::OutputFolder;
use larder_store::FilePrivacy;

/// Print the manual page; with --out, write one for each subcommand
///
///   larder man --out ~/.local/share/man/man1
///   larder man --page query | man -l -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ManArgs {
    /// Write larder.1, larder-import.1, ..., git-cinnabar.1, git-remote-hg.1 and larder-query.7
    /// into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<OutputFolder>,
    /// Print the page of this subcommand; `query` prints larder-query(7), `git-remote-hg` and
    /// `git-cinnabar` print theirs
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    page: Option<String>,
}

impl ManArgs {
    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let mut pages = pages::render_pages(super::clap_command());
        pages.push(git_pages::render_helper_page());
        pages.push(git_pages::render_cinnabar_page(crate::git_cinnabar::clap_command()));
        match self.out {
            None => {
                let name = match self.page.as_deref() {
                    None => "larder".to_string(),
                    Some(name) if name.starts_with("git-") => name.to_string(),
                    Some(name) => format!("larder-{name}"),
                };
                let page = pages.iter().find(|page| page.name == name);
                let page = page.ok_or_else(|| {
                    CommandFailure::new(
                        crate::failure::FailureKind::Usage,
                        format!("no manual page {name}"),
                    )
                    .with_hint("`larder help` lists the commands; `query` describes queries")
                })?;
                context.out.print_bytes(page.text.as_bytes())?;
            }
            Some(folder) => {
                let files = pages.into_iter();
                let files =
                    files.map(|page| (format!("{}.{}", page.name, page.section), page.text));
                folder.write_files(
                    &context.dir,
                    FilePrivacy::Public,
                    &files.collect::<Vec<_>>(),
                )?;
            }
        }
        Ok(CommandStatus::Done)
    }
}
