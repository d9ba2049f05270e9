use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::{resolve_all, shown_name};
use crate::output::{complain, count, plain};
use larder_query::{Find, Query};
use larder_store::{Change, Expect, Handle, Operation, Outcome, Seq};
use serde_json::json;

/// Take items away; `larder undo` brings them back
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    /// Which items
    #[arg(value_name = "ID", required_unless_present = "query")]
    ids: Vec<String>,
    /// All items that this search line finds
    #[arg(long, value_name = "QUERY", conflicts_with = "ids", allow_hyphen_values = true)]
    query: Option<String>,
    /// With --query: only in this collection
    #[arg(long = "in", value_name = "NAME", requires = "query")]
    collection: Option<String>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
}

/// Removals in one batch: short enough to let others in between.
const BATCH: usize = 500;

impl Remove {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let found = self.items(context)?;
        if found.is_empty() {
            return Err(Failure::new(Kind::NotFound, "nothing was found to remove")
                .hint("larder find shows what a query finds"));
        }
        if self.dry_run {
            let reader = context.reader()?;
            for (handle, _, name) in &found {
                let letters = reader.letters(*handle)?;
                context.out.line(format!("{handle:.letters$}  {name}"))?;
            }
            return Ok(Code::Done);
        }
        let mut store = context.store()?;
        let mut operation =
            Operation::new("remove", self.collection.as_deref().unwrap_or(""), now());
        let mut removed = 0;
        for batch in found.chunks(BATCH) {
            let changes =
                batch.iter().map(|(handle, seq, _)| Change::Remove(*handle, Expect::At(*seq)));
            let applied = store.apply(&mut operation, changes.collect())?;
            let gone = |outcome: &&Outcome| matches!(outcome, Outcome::Removed(_));
            removed += applied.outcomes.iter().filter(gone).count() as u64;
        }
        // Looked up before it was our turn to write: others may have come first.
        let left = found.len() as u64 - removed;
        let late =
            format!("{} changed or removed by somebody else in the meantime", count(left, "item"));
        let Some(id) = operation.id().filter(|_| removed > 0) else {
            return Err(Failure::new(Kind::Input, format!("nothing was removed: {late}"))
                .hint("run the same command again to remove what is still there"));
        };
        if context.format == Format::Json {
            context.out.json(&json!({ "removed": removed, "operation": id }))?;
        } else if let [(handle, _, name)] = found.as_slice() {
            let line = format!("{handle:.8}  {name} removed; larder undo {id} brings it back");
            context.out.line(line)?;
        } else {
            let what = count(removed, "item");
            context.out.line(format!("{what} removed; larder undo {id} brings them back"))?;
        }
        if left > 0 {
            complain("left out", late);
            complain("hint", "run the same command again to remove what is still there");
            return Ok(Code::LeftOut);
        }
        Ok(Code::Done)
    }

    /// What is to be removed, the batch that changed it last, and its name.
    fn items(&self, context: &Context) -> Result<Vec<(Handle, Seq, String)>, Failure> {
        let reader = context.reader()?;
        let Some(line) = &self.query else {
            let heads = resolve_all(context, &self.ids)?;
            let named =
                heads.iter().map(|head| Ok((head.handle, head.seq, shown_name(&reader, head)?)));
            return named.collect();
        };
        if line.trim().is_empty() {
            return Err(Failure::new(Kind::Usage, "an empty query would remove everything").hint(
                "larder collections remove NAME removes a collection; --query 'has:uid or -has:uid' everything",
            ));
        }
        let find = Find {
            query: Query::parse(line)?,
            collection: self.collection.clone(),
            sort: None,
            limit: None,
        };
        let mut found = Vec::new();
        larder_query::find(&reader, &find)?.each(&reader, &mut |head, bytes| {
            let name = if found.len() < 2 || self.dry_run {
                crate::ids::name_in(bytes)
            } else {
                String::new()
            };
            found.push((head.handle, head.seq, plain(&name)));
            true
        })?;
        Ok(found)
    }
}
