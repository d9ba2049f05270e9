//! The rules that a synchronisation runs, and their report.
//!
//! Separate from `sync`, because they write labels, which are in the other store.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::machine_time::now_milliseconds;
use crate::output::{print_message, sanitize_line};
use larder_store::{OperationId, Store};
use larder_sync::{MailRuleProblem, MailRuleReport, MailRuleRun, RuleScope, run_mail_rules};
use serde_json::json;

/// Runs the rules on the messages of these collections. Returns whether all rules could be run.
pub(crate) fn run_rules(
    context: &mut CommandContext,
    index: &mut Store,
    collections: &[String],
    scope: RuleScope,
) -> Result<bool, CommandFailure> {
    let report = run_mail_rules(
        &mut context.open_store()?,
        index,
        &context.settings,
        &MailRuleRun {
            inherited_labels: &context.inherited_labels,
            collections,
            scope,
            max_steps: None,
            at: now_milliseconds(),
        },
    )?;
    for MailRuleProblem { search, error } in &report.problems {
        let name = search.as_ref().map_or_else(
            || "mail.inherited-labels".to_string(),
            |name| format!("@{}", sanitize_line(name)),
        );
        print_message("error", format!("{name}: {}", sanitize_line(&error.to_string())));
        print_message("hint", "to run it on all messages: larder sync --rules");
    }
    print_effects(context, &report)?;
    Ok(report.problems.is_empty())
}

fn print_effects(
    context: &mut CommandContext,
    report: &MailRuleReport,
) -> Result<(), CommandFailure> {
    let Some(operation) = report.operation.map(OperationId::to_number) else { return Ok(()) };
    if context.format == OutputFormat::Json {
        let effects = report.effects.iter().map(|effect| {
            json!({
                "search": effect.search, "labels": effect.change.to_string(),
                "messages": effect.messages,
            })
        });
        context.out.print_json(&json!({
            "rules": effects.collect::<Vec<_>>(), "changed": report.changed,
            "operation": operation,
        }))?;
        return Ok(());
    }
    let effects = report.effects.iter().map(|effect| match &effect.search {
        Some(name) => format!("{effect} (@{name})"),
        None => effect.to_string(),
    });
    let effects = sanitize_line(&effects.collect::<Vec<_>>().join("; "));
    context.out.print_line(format!("rules: {effects}. Undo: larder undo {operation}"))?;
    Ok(())
}
