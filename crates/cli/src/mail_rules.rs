//! The rules that a synchronisation runs, and their report.
//!
//! Separate from `sync`, because they write labels, which are in the other store.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::machine_time::now_milliseconds;
use crate::output::sanitize_line;
use larder_store::{OperationId, Store};
use larder_sync::{MailRuleProblem, MailRuleReport, MailRuleRun, RuleScope, run_mail_rules};
use serde_json::json;

/// Runs the rules on the messages of these collections.
pub(crate) fn run_rules(
    context: &CommandContext,
    index: &mut Store,
    collections: &[String],
    scope: RuleScope,
) -> Result<MailRuleReport, CommandFailure> {
    let run = MailRuleRun {
        inherited_labels: &context.inherited_labels,
        collections,
        scope,
        max_work: None,
        at: now_milliseconds(),
    };
    Ok(run_mail_rules(&mut context.open_store()?, index, &context.settings, &run)?)
}

/// Returns the line that names a rule which cannot be run, and the reason.
pub(crate) fn format_rule_problem(problem: &MailRuleProblem) -> String {
    let name = match &problem.search {
        Some(name) => format!("@{}", sanitize_line(name)),
        None => "mail.inherited-labels".to_string(),
    };
    format!("{name}: {}", sanitize_line(&problem.error.to_string()))
}

/// Returns the remedy for such a problem.
pub(crate) fn rule_problem_hint(problem: &MailRuleProblem) -> &'static str {
    match problem.error {
        larder_query::Error::Store(larder_store::Error::TooManyLabels { .. }) => {
            "remove labels of the message, then run the rules on all messages: larder sync --rules"
        }
        _ => "mend the rule, then run it on all messages: larder sync --rules",
    }
}

/// Prints the effects of rules.
pub(crate) fn print_rule_effects(
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
