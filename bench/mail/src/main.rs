//! The benchmark of mail in one process; `bench/T05-mail.sh` calls it.
//!
//! * `queries STORE [PART]`: the queries of the list below on the index of a data directory; only
//!   those with a part in their texts, if one is named. Prints for each its name, the number of
//!   hits, the least CPU time of five runs and the goal, in milliseconds. Behind that, for a list,
//!   is the time in which SQLite alone reads the same rows by their numbers. The exit code is 1 if
//!   a goal is missed.
//! * `sync STORE MAILDIR [READERS [BATCH]]`: indexes a maildir. Prints the wall time, and the CPU
//!   time of the process, in seconds.
//! * `single STORE MAILDIR COUNT`: indexes the first messages of a maildir, each in a batch of its
//!   own. Prints the mean, the 99th percentile and the maximum of the CPU time of one, in
//!   milliseconds.
//! * `tuning FIGURES PAGE PICTURE`: replaces the table of the study of the `--tune-` options in a
//!   Markdown page, and writes its charts; `bench/mail/tuning.sh` makes the figures.
//!
//! The program is no part of Larder.

#![allow(clippy::print_stdout, reason = "a program for scripts")]

mod queries;
mod single_messages;
mod tuning;

use larder_store::{DataDirectory, Store, StoreFile, StoreOptions};
use larder_sync::{MailSyncOptions, sync_maildir};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["queries", store, ref part @ ..] => {
            let part = part.first().copied().unwrap_or_default();
            let is_met = queries::time_queries(&index_directory(store), part)?;
            return Ok(if is_met { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ["sync", store, maildir, ref numbers @ ..] => {
            let mut options = MailSyncOptions::default();
            if let Some(readers) = numbers.first() {
                options.readers = readers.parse()?;
            }
            if let Some(batch) = numbers.get(1) {
                options.batch_messages = batch.parse()?;
            }
            time_sync(store, Path::new(maildir), &options)?;
        }
        ["single", store, maildir, count] => {
            single_messages::time_batches(store, Path::new(maildir), count.parse()?)?;
        }
        ["tuning", figures, page, picture] => {
            tuning::write_study(Path::new(figures), Path::new(page), Path::new(picture))?;
        }
        _ => return Err("queries, sync, single or tuning, with their arguments".into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn index_directory(store: &str) -> DataDirectory {
    DataDirectory::new(Path::new(store).to_path_buf()).with_store_file(StoreFile::Index)
}

fn open_index(store: &str) -> Result<Store> {
    let options = StoreOptions { create: true, ..StoreOptions::default() };
    Ok(Store::open(index_directory(store), &options)?)
}

fn time_sync(store: &str, maildir: &Path, options: &MailSyncOptions) -> Result<()> {
    let began = Instant::now();
    {
        let mut store = open_index(store)?;
        sync_maildir(&mut store, maildir, "mail", options, &mut |_| {}, &|| false)?;
    }
    let (user, system) = process_times()?;
    println!("wall {:.2} user {user:.2} system {system:.2}", began.elapsed().as_secs_f64());
    Ok(())
}

/// Returns the CPU time of this process in its own code and in the kernel, in seconds.
fn process_times() -> Result<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    // Linux counts in hundredths of a second, whatever the frequency of its clock.
    let ticks = |at: usize| -> Result<f64> {
        Ok(fields.split_ascii_whitespace().nth(at).unwrap_or("0").parse::<f64>()? / 100.0)
    };
    Ok((ticks(11)?, ticks(12)?))
}

/// Returns the CPU time of this thread. A file of `/proc` has it too, but to read it takes longer
/// than one part in fifty of a message.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
