//! `transom info`: what a host has for jobs, and what a job would make of it.

mod atomics;
pub(crate) mod fabric;
pub(crate) mod host;
mod memory;
pub(crate) mod page;
mod remote;
pub(crate) mod settings;
pub(crate) mod tcp;
mod verbs;

use std::io::Write;
use std::process::ExitCode;

use crate::cli::{InfoArgs, USAGE};
use crate::hosts::{self, Host};
use crate::run::plan::{Route, route_to, words};
use page::Page;

/// Prints everything about this host, or about the hosts that were named.
pub fn main(args: &InfoArgs) -> ExitCode {
    let named = match (&args.hosts, &args.reach.hostfile) {
        (Some(list), _) => hosts::parse_list(list).map(Some),
        (_, Some(file)) => hosts::read_file(file).map(Some),
        (None, None) => Ok(None),
    };
    match named.map_err(|e| e.to_string()).and_then(|hosts| match hosts {
        Some(hosts) => several(args, &hosts),
        None => {
            print(&this_host(args));
            Ok(ExitCode::SUCCESS)
        }
    }) {
        Ok(code) => code,
        Err(message) => {
            crate::tell(&message);
            ExitCode::from(USAGE)
        }
    }
}

/// One after the other, each under its name. Fails if one could not be asked.
fn several(args: &InfoArgs, hosts: &[Host]) -> Result<ExitCode, String> {
    let rsh = args.reach.rsh.clone().or_else(|| std::env::var("TRANSOM_RSH").ok());
    let rsh = rsh.as_deref().map(words).transpose()?;
    let mut code = ExitCode::SUCCESS;
    for Host { name, .. } in hosts {
        print(&format!("===== {name} =====\n"));
        match route_to(name, rsh.as_deref()) {
            Route::Local => print(&this_host(args)),
            route => {
                if let Err(message) = remote::print(&route, name, args) {
                    crate::tell(&format!("host {name}: {message}"));
                    code = ExitCode::FAILURE;
                }
            }
        }
        print("\n");
    }
    Ok(code)
}

pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever reads this may have had enough (`| head -1`).
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn this_host(args: &InfoArgs) -> String {
    let mut page = Page::new();
    page.heading("Host");
    page.facts(host::host_facts());
    page.heading("Shared memory (ranks of one node)");
    let (facts, shared) = memory::facts();
    page.facts(facts);
    page.heading("Network (ranks of several nodes)");
    let fabric = fabric::print(&mut page);
    page.heading("Verbs (RDMA devices)");
    let scope = verbs::print(&mut page);
    page.heading("Atomics");
    atomics::print(&mut page, fabric.as_ref(), shared && settings::names_transport("shm"), &args.atomics);
    if let Some(scope) = scope {
        verbs::atomics(&mut page, scope);
    }
    page.heading("Settings (environment variables)");
    settings::print(&mut page);
    page.text
}
