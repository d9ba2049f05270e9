use crate::args::Format;
use crate::context::{Context, now};
use crate::failure::{Code, Failure, Kind};
use crate::ids::{resolve_all, shown, shown_name, title};
use crate::occurrences::{Occurrences, failed, is_of_calendar, late as late_one};
use crate::output::{complain, count};
use larder_format::field::{Field, calendar_field, field};
use larder_query::{Find, Query};
use larder_store::{Handle, ItemHead, Operation, Seq};
use larder_sync::Removed;
use larder_sync::event::{Scope, Which};
use serde_json::json;

/// Take items away; `larder undo` brings them back
///
/// Of an event that recurs, one occurrence is taken away (--scope this), one and all that follow (future), or all. A changed
/// occurrence that is named by its own ID goes alone.
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
    #[command(flatten)]
    occurrences: Occurrences,
}

/// What is to be removed.
struct Found {
    handle: Handle,
    /// The batch that changed it last.
    seq: Seq,
    is_of_calendar: bool,
    name: String,
}

impl Found {
    fn new(head: &ItemHead, name: String) -> Found {
        let is_of_calendar = is_of_calendar(head);
        Found { handle: head.handle, seq: head.seq, is_of_calendar, name }
    }
}

/// Items that the log names, and that a message about those left out does.
const NAMED: usize = 3;

impl Remove {
    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        if self.query.is_some() && !self.occurrences.is_empty() {
            return Err(Failure::new(Kind::Usage, "--query takes items away, not occurrences")
                .hint("name the item whose occurrences are meant"));
        }
        if let Some(code) = self.of_series(context)? {
            return Ok(code);
        }
        let found = self.items(context)?;
        if found.is_empty() {
            return Err(Failure::new(Kind::NotFound, "nothing was found to remove")
                .hint("larder find shows what a query finds"));
        }
        if self.dry_run {
            return would(context, &found);
        }
        let items: Vec<_> = found.iter().map(|found| (found.handle, found.seq)).collect();
        let mut store = context.store()?;
        let mut operation = Operation::new("remove", self.detail(&items), now());
        let removed = larder_sync::remove(&mut store, &mut operation, &items)?;
        print(context, &found, &removed)
    }

    /// Takes occurrences away, where what is named recurs, or one of its occurrences is named.
    fn of_series(&self, context: &mut Context) -> Result<Option<Code>, Failure> {
        let reader = context.reader()?;
        let mut named = Vec::new();
        for id in &self.ids {
            let (head, which) = self.occurrences.of(context, &reader, id)?;
            named.push((id, head, which));
        }
        let recurs = |head: &ItemHead, which: &Which| -> Result<bool, Failure> {
            let said = which.scope.is_some() || which.at.is_some();
            Ok(is_of_calendar(head) && (said || larder_sync::event::recurs(&reader, head)?))
        };
        let mut any = false;
        for (_, head, which) in &named {
            any |= recurs(head, which)?;
        }
        if !any {
            return Ok(None);
        }
        let [(id, head, which)] = &named[..] else {
            return Err(Failure::new(Kind::Usage, "one of them recurs: name it alone"));
        };
        let name = shown_name(&reader, head)?;
        let found = [Found::new(head, name.clone())];
        if self.dry_run {
            return would(context, &found).map(Some);
        }
        let mut store = context.store()?;
        let mut operation =
            Operation::new("remove", head.handle.to_string(), now()).all_or_nothing();
        let speaker = context.speaker();
        let done =
            larder_sync::event::remove_which(&mut store, &mut operation, head, *which, &speaker);
        let done = done.map_err(|error| failed(error, "remove", id))?;
        late_one(&done)?;
        if !head.recurrence.is_empty() && which.scope.is_none() {
            context.note("only this occurrence; --scope all takes all of them away");
        }
        let Some(id) = done.operation else {
            return Err(Failure::new(Kind::Input, "nothing was removed"));
        };
        if context.format == Format::Json {
            let object = json!({
                "removed": done.removed.len(), "changed": done.changed.len(), "operation": id
            });
            context.out.json(&object)?;
        } else {
            let (handle, what) = (head.handle, removed_what(*which, head));
            let line =
                format!("{handle:.8}  {name}: {what} removed; larder undo {id} brings it back");
            context.out.line(line)?;
        }
        Ok(Some(Code::Done))
    }

    /// What the log says of it: handles, since names and queries are contents.
    fn detail(&self, items: &[(Handle, Seq)]) -> String {
        let mut words: Vec<String> =
            items.iter().take(NAMED).map(|(handle, _)| handle.to_string()).collect();
        if items.len() > NAMED {
            words.push(format!("and {} more", items.len() - NAMED));
        }
        let found = if self.query.is_some() { "found by a query" } else { "" };
        let place = self.collection.as_ref().map(|name| format!("in {name}")).unwrap_or_default();
        words.extend([found.to_string(), place].into_iter().filter(|word| !word.is_empty()));
        words.join(" ")
    }

    fn items(&self, context: &Context) -> Result<Vec<Found>, Failure> {
        let reader = context.reader()?;
        let Some(line) = &self.query else {
            let heads = resolve_all(context, &self.ids)?;
            let named = heads.iter().map(|head| Ok(Found::new(head, shown_name(&reader, head)?)));
            return named.collect();
        };
        if line.trim().is_empty() {
            return Err(Failure::new(Kind::Usage, "an empty query would remove everything").hint(
                "larder collections remove NAME removes a collection; --query 'has:uid or -has:uid' everything",
            ));
        }
        let find = Find {
            query: Query::parse_with(line, &context.settings)?,
            collection: self.collection.clone(),
            ..larder_query::Find::default()
        };
        let mut found = Vec::new();
        let (of_card, of_component) = (field("full_name"), calendar_field("summary"));
        let fields: Vec<&Field> = of_card.into_iter().chain(of_component).collect();
        context.ask("larder remove", &reader, &find)?.fields(
            &reader,
            &fields,
            &mut |head, of| {
                let first = |field: Option<&Field>| {
                    let field = field.filter(|_| found.len() < 2 || self.dry_run);
                    field.and_then(|field| of.first(field)).unwrap_or_default()
                };
                let name = match is_of_calendar(head) {
                    true => title(&first(of_component)),
                    false => shown(&first(of_card)),
                };
                found.push(Found::new(head, name));
                true
            },
        )?;
        Ok(found)
    }
}

/// Which occurrences those were.
fn removed_what(which: Which, head: &ItemHead) -> &'static str {
    match which.scope {
        Some(Scope::Future) => "one occurrence and all that follow",
        Some(Scope::This) => "one occurrence",
        None if which.at.is_some() || !head.recurrence.is_empty() => "one occurrence",
        _ => "all occurrences",
    }
}

/// Says what would be removed.
fn would(context: &mut Context, found: &[Found]) -> Result<Code, Failure> {
    let reader = context.reader()?;
    for Found { handle, is_of_calendar, name, .. } in found {
        if context.format == Format::Json {
            let field = if *is_of_calendar { "summary" } else { "full_name" };
            context.out.json(&json!({ "id": handle.to_string(), field: name }))?;
            continue;
        }
        let letters = reader.letters(*handle)?;
        context.out.line(format!("{handle:.letters$}  {name}"))?;
    }
    Ok(Code::Done)
}

/// Says what was removed, and what was not.
fn print(context: &mut Context, found: &[Found], removed: &Removed) -> Result<Code, Failure> {
    let again = "run the same command again to remove what is still there";
    let late = late(removed);
    let Some(id) = removed.operation else {
        let what = format!("nothing was removed: {late}");
        return Err(Failure::new(Kind::Input, what).hint(again));
    };
    if context.format == Format::Json {
        context.out.json(&json!({ "removed": removed.items, "operation": id }))?;
    } else if let [Found { handle, name, .. }] = found {
        let line = format!("{handle:.8}  {name} removed; larder undo {id} brings it back");
        context.out.line(line)?;
    } else {
        let what = count(removed.items, "item");
        context.out.line(format!("{what} removed; larder undo {id} brings them back"))?;
    }
    if removed.changed.is_empty() && removed.gone == 0 {
        return Ok(Code::Done);
    }
    complain("left out", late);
    complain("hint", again);
    Ok(Code::LeftOut)
}

/// What was not removed. Items are looked up before it is our turn to write: others may come first.
fn late(removed: &Removed) -> String {
    let left = removed.changed.len() as u64 + removed.gone;
    let items = count(left, "item");
    let mut text = format!("{items} changed or removed by somebody else in the meantime");
    if !removed.changed.is_empty() {
        let named: Vec<_> = removed.changed.iter().take(NAMED).map(ToString::to_string).collect();
        let more = removed.changed.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text.push_str(&format!(" (kept: {}{more})", named.join(", ")));
    }
    text
}
