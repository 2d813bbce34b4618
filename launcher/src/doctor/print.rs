//! What the doctor says: pages for people, lines for programs.

use std::io::Write;

use comfy_table::{ColumnConstraint, Width};
use serde_json::json;
use transom_litmus::{Outcome, Verdict, flush_method};

use super::Examination;
use super::limits::{Level, Limit};
use super::subject::Missing;
use crate::cli::DoctorArgs;
use crate::info::page::Page;

/// Prints what was found as soon as it is.
pub struct Printer {
    json: bool,
    verbose: bool,
    first: bool,
}

impl Printer {
    /// Lines of JSON, or pages.
    pub fn new(args: &DoctorArgs) -> Self {
        Self { json: args.json, verbose: args.verbose, first: true }
    }

    fn line(&self, line: &serde_json::Value) {
        // Whoever reads this may have had enough.
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    fn page(&mut self, page: &Page) {
        let before = if self.first { "" } else { "\n" };
        self.first = false;
        let mut out = std::io::stdout().lock();
        let _ = write!(out, "{before}{}", page.text).and_then(|()| out.flush());
    }

    /// What is not here.
    pub fn missing(&mut self, missing: &[Missing]) {
        if self.json {
            for Missing { what, why, was_asked_for } in missing {
                self.line(&json!({"kind": "missing", "what": what, "why": why, "bad": was_asked_for}));
            }
        } else if !missing.is_empty() {
            let mut page = Page::new();
            page.heading("Not here, so not examined");
            page.facts(missing.iter().map(|missing| (missing.what.clone(), missing.why.clone())).collect());
            self.page(&page);
        }
    }

    /// A subject's verdicts.
    pub fn examination(&mut self, examination: &Examination) {
        let Examination { subject, provider, verdicts, broken } = examination;
        if self.json {
            let subject = subject.to_string();
            for verdict in verdicts {
                let bad = verdict.is_bad();
                self.line(&json!({"kind": "verdict", "subject": subject, "provider": provider, "bad": bad, "verdict": verdict}));
            }
            match broken {
                Some(why) => {
                    self.line(&json!({"kind": "broken", "subject": subject, "why": why, "bad": true}))
                }
                None => {
                    let method = flush_method(verdicts);
                    self.line(&json!({"kind": "flush-method", "subject": subject, "method": method}));
                }
            }
            return;
        }
        let mut page = Page::new();
        let provider = if provider.is_empty() { String::new() } else { format!(" ({provider})") };
        page.heading(&format!("{}{provider}", subject.title()));
        if !verdicts.is_empty() {
            table(&mut page, verdicts, self.verbose);
        }
        match broken {
            Some(why) => page.facts(vec![("CANNOT BE USED", why.clone())]),
            None => page.facts(vec![("flush method", flush_method(verdicts).to_string())]),
        }
        self.page(&page);
    }

    /// The limits of this host.
    pub fn limits(&mut self, limits: &[Limit], ranks: u32) {
        if self.json {
            for limit in limits {
                let bad = limit.level == Level::TooLow;
                self.line(&json!({"kind": "limit", "bad": bad, "limit": limit}));
            }
            return;
        }
        let mut page = Page::new();
        page.heading(&format!(
            "Limits, for jobs of {ranks} ranks with a rank on each processor here (--ranks)"
        ));
        let mut table = page.table();
        table.add_row(["limit", "here", "verdict", "wanted, and what to do"]);
        for limit in limits {
            let verdict = match limit.level {
                Level::Enough => "enough",
                Level::Low => "low",
                Level::TooLow => "TOO LOW",
            };
            let wanted = match limit.level {
                Level::Enough => limit.wanted.clone(),
                _ => format!("{}. {}", limit.wanted, limit.advice),
            };
            table.add_row([limit.name.clone(), limit.here.clone(), verdict.into(), wanted]);
        }
        constrain(&mut table, &[25, 20, 9]);
        page.add(&table);
        self.page(&page);
    }

    /// The end.
    pub fn summary(&mut self, bad: bool) {
        if self.json {
            return self.line(&json!({"kind": "summary", "bad": bad}));
        }
        let mut page = Page::new();
        page.heading(match bad {
            false => "All that Transom relies on was seen to hold.",
            true => "Something that Transom relies on does not hold: see the words in capitals above.",
        });
        self.page(&page);
    }
}

/// What holds needs few words, so that the rest is seen.
fn table(page: &mut Page, verdicts: &[Verdict], verbose: bool) {
    let mut table = page.table();
    table.add_row(["property", "verdict", "evidence, meaning"]);
    for verdict in verdicts {
        let text = match verdict.outcome {
            Outcome::Holds if !verbose => verdict.evidence.clone(),
            _ => format!("{}\n{}", verdict.evidence, verdict.meaning),
        };
        table.add_row([verdict.test.to_string(), word(verdict).into(), text]);
    }
    constrain(&mut table, &[25, 10]);
    page.add(&table);
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict.outcome {
        Outcome::Holds => "holds",
        Outcome::Fails if verdict.relied => "FAILS",
        Outcome::Fails => "no",
        Outcome::NotApplicable => "-",
    }
}

/// Fixed widths of the first columns, padding included, so that tables of a page stand in line.
fn constrain(table: &mut comfy_table::Table, widths: &[u16]) {
    for (index, width) in widths.iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(*width)));
        }
    }
}
