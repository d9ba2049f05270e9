//! The states of the metadata: the one that the ref names, and those before it.
//!
//! Two more refs say what a check found: [`CHECKED_REF`] names a state that is sound, and those
//! before it are sound, too; [`BROKEN_REF`] names one that is damaged.

use super::{METADATA_REF, Metadata, MetadataError};
use crate::git::object::commit_parents;
use crate::git::repository::{GitDirectory, RefChange};
use crate::object_id::GitId;
use crate::refs::PRIVATE_PREFIX;

/// The place of the state before among the parents of a commit of the metadata.
const STATE_BEFORE: usize = 1;

/// The ref of the newest state that a check found sound.
pub const CHECKED_REF: &str = "refs/larder/hg/checked";
/// The ref of a state that a check found damaged.
pub const BROKEN_REF: &str = "refs/larder/hg/broken";
/// The folder of refs that say which tags of git were made from Mercurial's: the name and the
/// commit of each. They stay when the metadata goes back to an earlier state.
pub(crate) const WRITTEN_TAGS_FOLDER: &str = "refs/larder/hg/tags/";
/// The folder of refs that say which branches of git a conversion of a whole repository made.
pub(crate) const WRITTEN_BRANCHES_FOLDER: &str = "refs/larder/hg/branches/";

/// The results of checks, as a walk to older states carries them along.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StateMark {
    Unknown,
    Checked,
    Broken,
}

/// Returns the current state; `None` if nothing was converted. A ref to a commit that is lost is
/// damage: without it, all would seem to be new, and git would not write the ref.
pub(crate) fn current_state(repository: &mut GitDirectory) -> Result<Option<GitId>, MetadataError> {
    if let Some(commit) = repository.resolve(METADATA_REF)? {
        return Ok(Some(commit));
    }
    let Some(commit) = repository.read_ref(METADATA_REF)? else { return Ok(None) };
    // Another process may have written both meanwhile.
    match repository.read_object(&commit.to_string())? {
        Some(_) => Ok(Some(commit)),
        None => Err(MetadataError::Damaged(commit)),
    }
}

/// Returns the states, the current one first; none if nothing was converted.
pub fn metadata_states(repository: &mut GitDirectory) -> Result<Vec<GitId>, MetadataError> {
    let mut states = Vec::new();
    let mut next = current_state(repository)?;
    while let Some(state) = next {
        states.push(state);
        let content = repository.read_content(&state)?;
        next = commit_parents(&content).nth(STATE_BEFORE);
    }
    Ok(states)
}

/// Goes back to the state before the last conversion. Returns false if there is none. Commits and
/// branches stay: those of changesets that are unknown now are converted again by the next fetch,
/// to the same ids.
pub fn rollback(repository: &mut GitDirectory) -> Result<bool, MetadataError> {
    let Some(state) = current_state(repository)? else { return Ok(false) };
    let before = commit_parents(&repository.read_content(&state)?).nth(STATE_BEFORE);
    set_metadata_state(repository, before, StateChoice::Earlier)?;
    Ok(true)
}

/// The states that can be made the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChoice {
    /// Those that came before the current one.
    Earlier,
    /// All that are metadata.
    Any,
}

/// Makes a state the current one; `None` forgets all metadata, and removes all of its refs but the
/// notes of tags, so that those that were made from Mercurial's are known later.
pub fn set_metadata_state(
    repository: &mut GitDirectory,
    state: Option<GitId>,
    choice: StateChoice,
) -> Result<(), MetadataError> {
    let refs = repository.refs(PRIVATE_PREFIX)?;
    let find = |name: &str| refs.iter().find(|(own, _)| own == name.as_bytes()).map(|(_, id)| *id);
    let update = |name: &str, new| RefChange {
        name: name.as_bytes().to_vec(),
        new: Some(new),
        old: Some(find(name).unwrap_or(GitId::NULL)),
    };
    let kept: &[&str] = match state {
        Some(_) => {
            &[METADATA_REF, CHECKED_REF, BROKEN_REF, WRITTEN_TAGS_FOLDER, WRITTEN_BRANCHES_FOLDER]
        }
        None => &[WRITTEN_TAGS_FOLDER],
    };
    let is_kept = |name: &[u8]| {
        let is_below = |kept: &str| kept.ends_with('/') && name.starts_with(kept.as_bytes());
        kept.iter().any(|kept| kept.as_bytes() == name || is_below(kept))
    };
    // Those of the last import go, so that git cannot take them for those of the next one.
    let removed = refs.iter().filter(|(name, _)| !is_kept(name));
    let mut changes: Vec<RefChange> = removed
        .map(|(name, id)| RefChange { name: name.clone(), new: None, old: Some(*id) })
        .collect();
    if let Some(state) = state {
        let (checked, broken) = (find(CHECKED_REF), find(BROKEN_REF));
        let mark = match choice {
            StateChoice::Any => StateMark::Unknown,
            StateChoice::Earlier => {
                find_mark(&metadata_states(repository)?, &state, checked, broken)?
            }
        };
        Metadata::open_state(repository, Some(state))
            .map_err(|_| MetadataError::InvalidState(state))?;
        changes.push(update(METADATA_REF, state));
        match mark {
            StateMark::Checked => changes.push(update(CHECKED_REF, state)),
            StateMark::Broken => changes.push(update(BROKEN_REF, state)),
            StateMark::Unknown => {}
        }
    }
    Ok(repository.change_refs(&changes)?)
}

/// Notes what a check found of a state.
pub fn mark_state(
    repository: &mut GitDirectory,
    state: GitId,
    is_sound: bool,
) -> Result<(), MetadataError> {
    let (name, other) = match is_sound {
        true => (CHECKED_REF, BROKEN_REF),
        false => (BROKEN_REF, CHECKED_REF),
    };
    let name = name.as_bytes().to_vec();
    let mut changes = vec![RefChange { name, new: Some(state), old: None }];
    if repository.resolve(other)? == Some(state) {
        changes.push(RefChange { name: other.as_bytes().to_vec(), new: None, old: Some(state) });
    }
    Ok(repository.change_refs(&changes)?)
}

/// Returns what is known of a state before the current one.
fn find_mark(
    states: &[GitId],
    wanted: &GitId,
    checked: Option<GitId>,
    broken: Option<GitId>,
) -> Result<StateMark, MetadataError> {
    let mut mark = StateMark::Unknown;
    for state in states {
        if Some(*state) == broken {
            mark = StateMark::Broken;
        } else if Some(*state) == checked {
            mark = StateMark::Checked;
        } else if mark == StateMark::Broken {
            // The damage may have come later.
            mark = StateMark::Unknown;
        }
        if state == wanted {
            return Ok(mark);
        }
    }
    Err(MetadataError::OtherState(*wanted))
}
