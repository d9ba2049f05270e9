//! `larder check --full`: the files of messages are compared with the index.
//!
//! Separate from `derived_store`, which reads no file outside of the data directory.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::mail_store::{follow_committed_labels, list_sources, mail_directory, open_mail_reader};
use crate::output::{format_count, format_grouped, print_message, sanitize_line};
use crate::progress::count_progress;
use larder_store::Store;
use larder_sync::{MailDisagreement, MailFinding, MailSyncOptions, verify_mail};
use serde_json::json;

/// The files of each kind that are named.
const MAX_PRINTED_FINDINGS: usize = 1000;

/// Compares all files with the index and prints the result. `Damaged`: the index differs from a
/// file. `SourceMissing` and `Rejected`: sources are missing, or files were not compared.
pub(super) fn compare_files(
    context: &mut CommandContext,
    is_stopped: &dyn Fn() -> bool,
) -> Result<CommandStatus, CommandFailure> {
    let Some(reader) = open_mail_reader(context)? else { return Ok(CommandStatus::Done) };
    let sources = list_sources(context)?;
    // No synchronisation writes meanwhile, unless the disk cannot be written at all.
    let store = Store::open_to_copy(mail_directory(context), &context.index_options(false))?;
    let lock = match store.is_writable() {
        true => Some(store.lock_mail_sync()?),
        false => None,
    };
    let options = MailSyncOptions {
        personal_addresses: context.mail_addresses.clone(),
        converters: context.converters.clone(),
        ..MailSyncOptions::default()
    };
    let bar = count_progress(context.quiet);
    let total: u64 = reader.collections().list()?.iter().map(|one| one.item_count).sum();
    bar.set_length(total);
    let (mut damaged, mut others, mut damaged_messages) = (0_usize, 0_usize, 0_usize);
    let (mut is_source_missing, mut has_unreadable) = (false, false);
    let mut print = |finding: MailFinding<'_>| {
        is_source_missing |= matches!(finding.disagreement, MailDisagreement::MissingSource);
        has_unreadable |= matches!(finding.disagreement, MailDisagreement::Unreadable(_));
        let is_damage = finding.disagreement.is_damage();
        let count = match finding.disagreement {
            MailDisagreement::DamagedMessage(_) => &mut damaged_messages,
            _ if is_damage => &mut damaged,
            _ => &mut others,
        };
        *count += 1;
        if *count <= MAX_PRINTED_FINDINGS {
            let path = sanitize_line(&finding.path.display().to_string());
            let text = format!("{path}: {}", sanitize_line(&finding.disagreement.to_string()));
            bar.suspend(|| match is_damage {
                true => print_message("error", text),
                false => context.print_warning(text),
            });
        }
    };
    let mut progress = |files: u64| bar.set_position(files);
    let report = verify_mail(&reader, &sources, &options, &mut print, &mut progress, is_stopped)?;
    bar.finish_and_clear();
    if let Some(lock) = lock {
        drop((lock, store));
        follow_committed_labels(context)?;
    }
    for (count, what) in [
        (damaged, "damaged"),
        (others, "missing, changed or unreadable"),
        (damaged_messages, "with damaged messages"),
    ] {
        if count > MAX_PRINTED_FINDINGS {
            let further = format_count((count - MAX_PRINTED_FINDINGS) as u64, "further file");
            context.print_note(format!("{further} {what}"));
        }
    }
    if others > 0 {
        context.print_note("to bring the index up to date: larder sync --full");
    }
    if report.is_interrupted {
        let (read, all) = (format_grouped(report.files), format_count(total, "message"));
        context.print_note(format!(
            "interrupted: {read} files of {all} were compared; run the command again to compare all"
        ));
    } else if report.is_outdated || report.expired > 0 {
        let which = match report.is_outdated {
            true => "no file was compared".to_string(),
            false => format!("{} not compared", format_count(report.expired, "file")),
        };
        context.print_note(format!("the index of mail is out of date ({which}); run: larder sync"));
    }
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({
            "store": "index.db", "files": report.files, "damaged_files": report.damaged,
            "not_compared_files": report.not_compared + report.expired,
            "damaged_messages": report.damaged_messages,
            "is_interrupted": report.is_interrupted,
        }))?;
    } else {
        let files = format_count(report.files, "file");
        let damage = match report.damaged_messages {
            0 => String::new(),
            count => format!(", {} with damage", format_grouped(count)),
        };
        context.out.print_line(format!("files of messages  {files} read and compared{damage}"))?;
    }
    context.out.flush()?;
    let has_left_out = has_unreadable || report.is_outdated || report.expired > 0;
    Ok(match () {
        () if report.is_interrupted => CommandStatus::Interrupted,
        () if report.damaged > 0 => CommandStatus::Damaged,
        () if is_source_missing => CommandStatus::SourceMissing,
        () if has_left_out => CommandStatus::Rejected,
        () => CommandStatus::Done,
    })
}
