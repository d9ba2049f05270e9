//! The tips of the refs at the last synchronisation, in the form in which the store keeps them.
//!
//! Separate from `commit_sync`, because the form outlives a run, and `sources` reads it.

/// The tips that the store knows, as the state of the directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KnownTips {
    /// The store has all commits that can be reached from these.
    pub(crate) complete: Vec<String>,
    /// The store may have commits that can be reached from these.
    pub(crate) partial: Vec<String>,
    /// The commits at which the shallow clone ended.
    pub(crate) shallow: Vec<String>,
    /// One commit of those whose paths could not be read, if these are so many that the next
    /// synchronisation does not try them again before this one can be read.
    pub(crate) pathless: Vec<String>,
    /// One commit of those whose paths were left out, because they took too much. Only a comparison
    /// of all commits tries them again.
    pub(crate) expensive: Vec<String>,
}

impl KnownTips {
    /// Reads the stored form.
    pub(crate) fn from_bytes(bytes: &[u8]) -> KnownTips {
        let mut tips = KnownTips::default();
        for line in String::from_utf8_lossy(bytes).lines() {
            let Some((name, hash)) = line.split_once(' ') else { continue };
            let list = match name {
                "complete" => &mut tips.complete,
                "partial" => &mut tips.partial,
                "shallow" => &mut tips.shallow,
                "pathless" => &mut tips.pathless,
                "expensive" => &mut tips.expensive,
                _ => continue,
            };
            list.push(hash.to_string());
        }
        tips
    }

    /// Returns the stored form.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let lists = [
            ("complete", &self.complete),
            ("partial", &self.partial),
            ("shallow", &self.shallow),
            ("pathless", &self.pathless),
            ("expensive", &self.expensive),
        ];
        let lines = lists
            .into_iter()
            .flat_map(|(name, list)| list.iter().map(move |hash| format!("{name} {hash}\n")));
        lines.collect::<String>().into_bytes()
    }

    /// Returns whether the commits were read to the end. A comparison of all commits that is
    /// running or was interrupted counts as a first reading.
    pub(crate) fn is_complete(&self) -> bool {
        !self.complete.is_empty() || self.partial.is_empty()
    }

    /// Returns all tips whose commits may be in the store.
    pub(crate) fn all(&self) -> Vec<String> {
        let mut all = [self.complete.as_slice(), self.partial.as_slice()].concat();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A hash of an object, with zeros at its end if it is of SHA-1.
pub(crate) type ObjectHash = [u8; 32];

/// Reads a hash of hexadecimal digits.
pub(crate) fn parse_hash(text: &[u8]) -> Option<ObjectHash> {
    let (pairs, rest) = text.as_chunks::<2>();
    let mut hash = [0; 32];
    if !rest.is_empty() || pairs.len() > hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

/// Returns so many digits of a hash.
pub(crate) fn format_hash(hash: &ObjectHash, digits: usize) -> String {
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.get(..digits).unwrap_or(&hex).to_string()
}
