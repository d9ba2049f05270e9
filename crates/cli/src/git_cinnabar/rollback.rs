//! `git cinnabar rollback` and `git cinnabar clear`.

use super::CommandEnd;
use super::arguments::RollbackArgs;
use larder_hg::{
    BROKEN_REF, CHECKED_REF, GitDirectory, GitId, MetadataError, StateChoice, metadata_states,
    set_metadata_state,
};
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Forgets all metadata.
pub(super) fn clear(mut repository: GitDirectory) -> CommandEnd {
    set_metadata_state(&mut repository, None, StateChoice::Earlier)?;
    Ok(ExitCode::SUCCESS)
}

/// Goes back to an earlier state, or lists these.
pub(super) fn roll_back(mut repository: GitDirectory, args: &RollbackArgs) -> CommandEnd {
    if args.candidates {
        return list_states(&mut repository);
    }
    let states = metadata_states(&mut repository)?;
    let state = if args.fsck {
        let checked = repository.resolve(CHECKED_REF)?;
        Some(checked.ok_or("No successful fsck has been recorded. Cannot rollback.")?)
    } else if let Some(name) = &args.commit {
        let is_none = GitId::from_hex(name.as_bytes()).is_some_and(|id| id.is_null());
        match repository.resolve(&format!("{name}^{{commit}}"))? {
            _ if is_none => None,
            Some(commit) => Some(commit),
            None => return Err(format!("Invalid revision: {name}").into()),
        }
    } else if states.is_empty() {
        return Err("Nothing to rollback.".into());
    } else {
        states.get(1).copied()
    };
    let choice = if args.force { StateChoice::Any } else { StateChoice::Earlier };
    set_metadata_state(&mut repository, state, choice).map_err(|error| match error {
        MetadataError::OtherState(state) => {
            format!("Cannot rollback to {state}, it is not in the ancestry of current metadata.")
        }
        MetadataError::InvalidState(state) => format!("Invalid cinnabar metadata: {state}"),
        error => error.to_string(),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list_states(repository: &mut GitDirectory) -> CommandEnd {
    let checked = repository.resolve(CHECKED_REF)?;
    let broken = repository.resolve(BROKEN_REF)?;
    let states = metadata_states(repository)?;
    let labelled = [("current", states.first().copied()), ("checked", checked), ("broken", broken)];
    let mut lines = String::new();
    for state in states {
        let labels = labelled.iter().filter(|(_, own)| *own == Some(state)).map(|(name, _)| *name);
        let labels: Vec<&str> = labels.collect();
        lines.push_str(&state.to_string());
        if !labels.is_empty() {
            lines.push_str(&format!(" ({})", labels.join(", ")));
        }
        lines.push('\n');
    }
    io::stdout().write_all(lines.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
