//! Messages that come one by one: each is a batch of its own, as `larder sync --watch` writes it.

use crate::{Result, open_index, thread_time};
use larder_format::maildir_name::MaildirName;
use larder_store::{BatchChange, MailBatch, MailBatchBuilder, MailChange, MailFile, Operation};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Indexes the first messages of `INBOX/cur`, under names and Message-IDs of their own.
pub(crate) fn time_batches(store: &str, maildir: &Path, count: usize) -> Result<()> {
    let mut files = Vec::new();
    for directory in std::fs::read_dir(maildir)? {
        let current = directory?.path().join("cur");
        if let Ok(entries) = std::fs::read_dir(current) {
            files.extend(entries.collect::<std::io::Result<Vec<_>>>()?);
        }
    }
    files.sort_by_key(std::fs::DirEntry::path);
    let mut store = open_index(store)?;
    let mut builder = MailBatchBuilder::new(&[]);
    let put = MailChange::PutDirectory {
        path: b"single/cur".to_vec(),
        folder: b"single".to_vec(),
        is_new: false,
        state: Vec::new(),
    };
    let first_row = store.next_mail_row(&store.lock_mail_sync()?)?;
    let mut times = Vec::with_capacity(count);
    let entries = files.iter().cycle().take(count).enumerate();
    for (row, (number, entry)) in (first_row..).zip(entries) {
        let name = format!("{number}.{}", String::from_utf8_lossy(entry.file_name().as_bytes()));
        let bytes = std::fs::read(entry.path())?;
        let id = format!("Message-ID: <single-{number}@example.org>\n");
        let text = [id.as_bytes(), &without_message_id(&bytes)].concat();
        let before = thread_time();
        let (message, _) = builder.prepare(row, &text, 0);
        let flags = MaildirName::parse(name.as_bytes()).flags(false);
        let file = MailFile {
            directory: b"single/cur".to_vec(),
            name: name.into_bytes(),
            inode: number as u64,
            flags,
            state: larder_store::MailFileState::default(),
        };
        let add = MailChange::AddFile { file, message: Box::new(message) };
        let batch = MailBatch {
            collection: "mail".into(),
            changes: vec![put.clone(), add],
            words: Some(builder.encode_words()),
            end_row: row + 1,
        };
        let mut operation = Operation::new("sync", "mail", 0);
        store.apply(&mut operation, vec![BatchChange::Mail(Box::new(batch))])?;
        times.push((thread_time() - before).as_secs_f64() * 1000.0);
    }
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    times.sort_by(f64::total_cmp);
    let quantile = |share: f64| times.get((times.len() as f64 * share) as usize).or(times.last());
    let (p99, max) = (quantile(0.99).unwrap_or(&0.0), times.last().unwrap_or(&0.0));
    println!("one message, CPU ms: mean {mean:.3}, 99 % {p99:.3}, maximum {max:.3}");
    Ok(())
}

/// Renames the Message-ID of a message, so that it is no copy of another one.
fn without_message_id(bytes: &[u8]) -> Vec<u8> {
    let lower = bytes.to_ascii_lowercase();
    let place = lower.windows(11).position(|part| part == b"message-id:");
    let mut changed = bytes.to_vec();
    if let Some(name) = place.and_then(|place| changed.get_mut(place..place + 2)) {
        name.copy_from_slice(b"x-");
    }
    changed
}
