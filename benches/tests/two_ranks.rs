//! All of rma-bench with tiny counts, as a job of two ranks inside this process. No time is asserted.

use clap::Parser;
use transom_benches::Options;

/// What rank 0 prints.
fn output(arguments: &[&str]) -> Result<String, String> {
    let options = Options::parse_from([&["rma-bench", "--quick"], arguments].concat());
    let rank = |job| Ok(transom_benches::run(&job, &options).map_err(|e| format!("{e:#}")));
    transom::local(2, rank).map_err(|e| e.to_string())?.swap_remove(0)
}

#[test]
fn every_figure_has_a_limit() {
    let csv = output(&["--csv"]).unwrap();
    let mut lines = csv.lines();
    let columns = lines.next().unwrap().matches(',').count();
    assert!(lines.clone().count() > 40);
    for line in lines {
        let ratio: f64 = line.split('"').nth(2).unwrap().split(',').rev().nth(1).unwrap().parse().unwrap();
        assert!(ratio > 0.0, "{line}");
        assert!(line.matches(',').count() >= columns, "{line}");
    }
}

#[test]
fn tables() {
    let table = output(&["--only", "fetch", "--window", "created"]).unwrap();
    assert!(table.contains("fetch_and_op") && !table.contains("allocated"), "{table}");
    let table = output(&["--passive"]).unwrap();
    assert!(table.contains("1 MiB f64") && table.contains("created"), "{table}");
}

#[test]
fn two_ranks_only() {
    let options = Options::parse_from(["rma-bench", "--quick"]);
    let errors = transom::local(3, |job| Ok(transom_benches::run(&job, &options).unwrap_err().to_string()));
    assert!(errors.unwrap()[0].contains("two ranks"));
}

#[test]
fn synchronisation_of_many_ranks() {
    let run = |arguments: &[&str]| {
        let options = Options::parse_from([&["rma-bench", "--quick", "--sync"], arguments].concat());
        let rank = |job| Ok(transom_benches::run(&job, &options).map_err(|e| format!("{e:#}")));
        transom::local(5, rank).unwrap().swap_remove(0).unwrap()
    };
    let table = run(&[]);
    assert!(table.contains("p = 4") && !table.contains("p = 6") && table.contains("residual"), "{table}");
    let csv = run(&["--csv", "--only", "fence"]);
    assert_eq!(csv.lines().count(), 1 + 2 * 3, "{csv}");
}
