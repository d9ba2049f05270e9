//! Progress and notices as git and git-cinnabar show them.

use crate::output::sanitize_line;
use larder_hg::{FetchNotice, Phase, Progress, ReceivedBytes, strip_login};
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

/// The time between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Progress as git shows it: one line, written over and over.
pub(crate) struct GitProgress {
    is_shown: bool,
    has_notices: bool,
    unpruned_remote: Option<String>,
    has_cinnabar: bool,
    phase: Option<Phase>,
    done: u64,
    total: Option<u64>,
    last: Instant,
    /// The characters of the line on the screen.
    shown_len: usize,
    received: ReceivedBytes,
    /// The bytes of this phase.
    rate: ArrivalRate,
    /// Whether the files of a store have arrived, which are read in the phases after that.
    has_store: bool,
}

impl GitProgress {
    pub(crate) fn new(is_shown: bool) -> GitProgress {
        GitProgress {
            is_shown,
            has_notices: true,
            unpruned_remote: None,
            has_cinnabar: false,
            phase: None,
            done: 0,
            total: None,
            last: Instant::now(),
            shown_len: 0,
            received: ReceivedBytes::default(),
            rate: ArrivalRate::new(0, Instant::now()),
            has_store: false,
        }
    }

    /// Leaves out notices.
    pub(crate) fn without_notices(self) -> GitProgress {
        GitProgress { has_notices: false, ..self }
    }

    /// Recommends, after an import, a setting for this remote.
    pub(crate) fn with_unpruned_remote(self, remote: Option<&str>) -> GitProgress {
        GitProgress { unpruned_remote: remote.map(str::to_owned), ..self }
    }

    /// Names commands of git-cinnabar, if git finds that program.
    pub(crate) fn with_cinnabar(self, has_cinnabar: bool) -> GitProgress {
        GitProgress { has_cinnabar, ..self }
    }

    fn print(&mut self, phase: Phase, is_ended: bool) {
        let now = Instant::now();
        self.last = now;
        let bytes = self.received.count();
        self.rate.update(bytes, now);
        let arrived = bytes.saturating_sub(self.rate.first);
        let arrival = (has_arrival(phase) && arrived > 0).then(|| {
            let per_second =
                if is_ended { self.rate.average(bytes, now) } else { self.rate.per_second };
            (arrived, per_second)
        });
        let title = title(phase, self.has_store && arrival.is_none());
        let mut line = format_line(title, self.done, self.total, arrival);
        line.push_str(if is_ended { ", done." } else { "" });
        // A shorter line covers the one before.
        let width = self.shown_len;
        self.shown_len = line.len();
        // A terminal that is gone does not stop the work.
        let _written = io::stderr().write_all(format!("\r{line:width$}").as_bytes());
    }

    /// Ends the last line.
    pub(crate) fn finish(&mut self) {
        if self.is_shown
            && let Some(phase) = self.phase.take()
        {
            self.print(phase, true);
            self.shown_len = 0;
            let _written = io::stderr().write_all(b"\n");
        }
    }
}

impl Progress for GitProgress {
    fn set_shown(&mut self, is_shown: bool) {
        self.is_shown = is_shown;
    }

    fn set_received(&mut self, received: ReceivedBytes) {
        self.rate = ArrivalRate::new(received.count(), Instant::now());
        self.received = received;
    }

    fn report(&mut self, notice: &FetchNotice) {
        if !self.has_notices {
            return;
        }
        self.finish();
        if let Some(text) = notice_text(notice, self.unpruned_remote.as_deref(), self.has_cinnabar)
        {
            // A terminal that is gone does not stop the work.
            let _written = io::stderr().write_all(text.as_bytes());
        }
    }

    fn advance(&mut self, phase: Phase, done: u64, total: Option<u64>) {
        if !self.is_shown {
            return;
        }
        let is_new = self.phase != Some(phase);
        if is_new {
            self.finish();
            self.phase = Some(phase);
            self.rate = ArrivalRate::new(self.received.count(), Instant::now());
            self.has_store |= phase == Phase::Store;
        }
        (self.done, self.total) = (done, total);
        if is_new || self.last.elapsed() >= PROGRESS_INTERVAL {
            self.print(phase, false);
        }
    }
}

/// Names a phase. `is_local`: what it reads arrived before.
fn title(phase: Phase, is_local: bool) -> &'static str {
    match phase {
        Phase::Changesets if is_local => "Reading changesets",
        Phase::Manifests if is_local => "Reading manifests",
        Phase::Files if is_local => "Reading file revisions",
        Phase::Store => "Receiving files of the store",
        Phase::Changesets => "Receiving changesets",
        Phase::Manifests => "Receiving manifests",
        Phase::Files => "Receiving file revisions",
        Phase::Trees => "Writing trees",
        Phase::Commits => "Writing commits",
        Phase::CheckedChangesets => "Checking changesets",
        Phase::CheckedManifests => "Checking manifests",
        Phase::CheckedFiles => "Checking file revisions",
    }
}

/// Whether changes arrive in this phase.
fn has_arrival(phase: Phase) -> bool {
    matches!(phase, Phase::Store | Phase::Changesets | Phase::Manifests | Phase::Files)
}

/// Formats a line; `arrival`: the bytes that have arrived, and how many do in a second.
fn format_line(title: &str, done: u64, total: Option<u64>, arrival: Option<(u64, u64)>) -> String {
    let mut line = match total {
        Some(total) => {
            let percent = (done * 100).checked_div(total).unwrap_or(100);
            format!("{title}: {percent:3}% ({done}/{total})")
        }
        None => format!("{title}: {done}"),
    };
    if let Some((bytes, per_second)) = arrival {
        line.push_str(&format!(", {} | {}/s", format_binary(bytes), format_binary(per_second)));
    }
    line
}

/// Formats bytes in the units of git's progress.
fn format_binary(bytes: u64) -> String {
    let mut number = bytes as f64 / 1024.0;
    let mut unit = "KiB";
    for larger in ["MiB", "GiB"] {
        if number < 1024.0 {
            break;
        }
        number /= 1024.0;
        unit = larger;
    }
    format!("{number:.1} {unit}")
}

/// How fast bytes arrive in a phase, over the last seconds.
struct ArrivalRate {
    /// The bytes before the phase.
    first: u64,
    begin: Instant,
    bytes: u64,
    since: Instant,
    per_second: u64,
    /// Whether the first second is over.
    is_steady: bool,
}

impl ArrivalRate {
    const WINDOW: Duration = Duration::from_secs(1);

    fn new(first: u64, now: Instant) -> ArrivalRate {
        ArrivalRate { first, begin: now, bytes: first, since: now, per_second: 0, is_steady: false }
    }

    /// Returns the rate of the whole phase.
    fn average(&self, bytes: u64, now: Instant) -> u64 {
        let millis = now.duration_since(self.begin).as_millis().max(1) as u64;
        bytes.saturating_sub(self.first).saturating_mul(1000) / millis
    }

    fn update(&mut self, bytes: u64, now: Instant) {
        let elapsed = now.duration_since(self.since);
        if elapsed < ArrivalRate::WINDOW && self.is_steady || elapsed.is_zero() {
            return;
        }
        let newest = bytes.saturating_sub(self.bytes) as f64 / elapsed.as_secs_f64();
        let before = if self.is_steady { self.per_second as f64 } else { newest };
        self.per_second = ((before + newest) / 2.0) as u64;
        if elapsed >= ArrivalRate::WINDOW {
            (self.bytes, self.since, self.is_steady) = (bytes, now, true);
        }
    }
}

/// Returns a message of git-cinnabar: a level and a text, over a line of progress.
pub(crate) fn level_line(level: &str, message: &str) -> String {
    format!("\r{level} {}\n", sanitize_line(message))
}

/// Returns a notice, in the words of git-cinnabar if it has one of the kind.
fn notice_text(
    notice: &FetchNotice,
    unpruned_remote: Option<&str>,
    has_cinnabar: bool,
) -> Option<String> {
    let text = match notice {
        FetchNotice::CloneBundle { url } => {
            format!("Getting clone bundle from {}\n", sanitize_line(&strip_login(url)))
        }
        FetchNotice::SharedMetadata { url } => {
            format!("Fetching cinnabar metadata from {}\n", sanitize_line(url))
        }
        FetchNotice::SharedMetadataSkipped { message }
        | FetchNotice::CloneBundleFailed { message } => level_line("WARNING", message),
        FetchNotice::SharedMetadataFailed { message } => level_line("ERROR", message),
        FetchNotice::GitOutput { text } => {
            text.lines().map(|line| format!("{}\n", sanitize_line(line))).collect()
        }
        FetchNotice::CompleteFetch => level_line("WARNING", "Falling back to normal clone."),
        FetchNotice::Imported => {
            let remote = sanitize_line(unpruned_remote?);
            format!(
                "It is recommended that you set \"remote.{remote}.prune\" or \"fetch.prune\" to \
                 \"true\".\n  git config remote.{remote}.prune true\nor\n  \
                 git config fetch.prune true\n"
            )
        }
        FetchNotice::TagsChanged { has_replaced: false, .. } if has_cinnabar => {
            "\nRun the following command to update tags:\n  git cinnabar fetch --tags\n".to_owned()
        }
        FetchNotice::TagsChanged { is_quiet: true, .. } if !has_cinnabar => return None,
        FetchNotice::TagsChanged { .. } => {
            "note: tags of Mercurial are new or changed; to set them in git: larder hg tags\n"
                .to_owned()
        }
        FetchNotice::Pointers { oddity, count } => {
            format!("note: {} ({count})\n", oddity.description())
        }
        FetchNotice::ClosedTip { name } => {
            let name = name.strip_prefix("refs/heads/").unwrap_or(name);
            format!(
                "note: {} is a closed head, which is known only now; to go to the newest open \
                 head: git fetch && git reset --hard @{{upstream}}\n",
                sanitize_line(name)
            )
        }
    };
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_git() {
        let line = |done, total, arrival| format_line("Title", done, total, arrival);
        assert_eq!(line(7, None, None), "Title: 7");
        assert_eq!(line(7, Some(9), None), "Title:  77% (7/9)");
        assert_eq!(line(0, Some(0), None), "Title: 100% (0/0)");
        let arrival = Some((12_900_000, 4_720_000));
        assert_eq!(line(7, None, arrival), "Title: 7, 12.3 MiB | 4.5 MiB/s");
        assert_eq!(format_binary(0), "0.0 KiB");
        assert_eq!(format_binary(5 << 30), "5.0 GiB");
    }

    #[test]
    fn the_rate_follows_what_arrives() {
        let begin = Instant::now();
        let mut rate = ArrivalRate::new(0, begin);
        rate.update(500, begin + Duration::from_millis(500));
        assert_eq!(rate.per_second, 1000);
        rate.update(2000, begin + Duration::from_secs(1));
        assert_eq!(rate.per_second, 2000);
        rate.update(9000, begin + Duration::from_millis(1600));
        assert_eq!(rate.per_second, 2000, "too early");
        rate.update(2000, begin + Duration::from_secs(2));
        assert_eq!(rate.per_second, 1000);
        assert_eq!(rate.average(2000, begin + Duration::from_secs(4)), 500);
    }

    /// Bytes of a phase do not count for the rate of the next one.
    #[test]
    fn each_phase_has_its_own_rate() {
        let begin = Instant::now();
        let mut rate = ArrivalRate::new(7000, begin);
        rate.update(7000, begin + Duration::from_secs(1));
        assert_eq!((rate.per_second, rate.average(7000, begin)), (0, 0));
        rate.update(8000, begin + Duration::from_secs(2));
        assert_eq!(rate.per_second, 500);
        assert_eq!(rate.average(9000, begin + Duration::from_secs(4)), 500);
        assert_eq!(title(Phase::Files, true), "Reading file revisions");
        assert_eq!(title(Phase::Store, true), "Receiving files of the store");
    }
}
