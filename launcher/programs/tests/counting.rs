//! Jobs that count words, against a count in one map.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::path::PathBuf;

use tempfile::TempDir;
use transom_programs::count::{Options, count};
use transom_programs::words::Input;

/// Words by falling count, then by word.
type Counted = Vec<(Vec<u8>, u64)>;

fn plainly(texts: &[Vec<u8>]) -> Counted {
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    for text in texts {
        for word in text.split(|b| !b.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
            *counts.entry(word.to_ascii_lowercase()).or_default() += 1;
        }
    }
    let mut counts: Counted = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}

fn files(dir: &TempDir, texts: &[Vec<u8>]) -> Vec<PathBuf> {
    let write = |(i, text): (usize, &Vec<u8>)| {
        let path = dir.path().join(format!("text-{i}"));
        std::fs::write(&path, text).unwrap();
        path
    };
    texts.iter().enumerate().map(write).collect()
}

fn in_a_job(ranks: usize, paths: &[PathBuf], options: Options) -> Counted {
    let mut results = transom::local(ranks, |job| {
        let input = Input::agree(&job, paths.to_vec()).unwrap();
        Ok(count(&job, &input, options)
            .unwrap()
            .map(|run| run.counts.words().map(|(word, count)| (word.to_vec(), count)).collect::<Counted>()))
    })
    .unwrap();
    assert!(results[1..].iter().all(Option::is_none), "only rank 0 has the result");
    results.swap_remove(0).unwrap()
}

fn check(texts: &[Vec<u8>], options: Options) {
    let dir = tempfile::tempdir().unwrap();
    let paths = files(&dir, texts);
    let expected = plainly(texts);
    for ranks in [1, 2, 3, 4, 7] {
        assert!(in_a_job(ranks, &paths, options) == expected, "{ranks} ranks, {options:?}");
    }
}

/// Words out of a generator that favours a few, as languages do.
fn generated(words: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut text = Vec::new();
    for _ in 0..words {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut number = (state >> 33) >> (state >> 20 & 31);
        for _ in 0..=number % 14 {
            text.push(b"aBcdEfgHijklmnopqRstuvwxyz"[(number % 26) as usize]);
            number = number / 26 + number % 26 * 7;
        }
        text.push(b" \n,-7\xff"[(state >> 60) as usize % 6]);
    }
    text
}

#[test]
fn real_texts() {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../ci/data");
    let paths = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<Vec<u8>> = paths.map(|path| std::fs::read(path).unwrap()).collect();
    assert!(texts.len() > 4);
    check(&texts, Options::default());
}

#[test]
fn a_table_that_grows() {
    let texts: Vec<Vec<u8>> = (1..4).map(|seed| generated(5_000, seed)).collect();
    for heap in [16, 1000, 1 << 14] {
        check(&texts, Options { heap: Some(heap), combine: Some(3), progress: false });
    }
}

#[test]
fn empty_files_and_long_words() {
    let long = vec![b'x'; 1 << 20];
    let other = [&vec![b'x'; (1 << 20) - 1][..], b"Y z"].concat();
    check(
        &[vec![], long.clone(), vec![], other, long, vec![]],
        Options { combine: Some(64), ..Options::default() },
    );
    check(&[vec![]], Options::default());
    check(&[], Options::default());
    check(&[b"a".to_vec(), b"a".to_vec()], Options::default());
}

#[test]
fn files_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let good = files(&dir, &[b"good".to_vec()]);
    for (bad, reason) in [("missing", "no such file"), (".", "it is a directory")] {
        let bad = dir.path().join(bad);
        let errors = transom::local(3, |job| {
            Ok(Input::agree(&job, [good.clone(), vec![bad.clone()]].concat()).unwrap_err().to_string())
        })
        .unwrap();
        assert!(errors.iter().all(|error| error == &errors[0]));
        assert!(errors[0].contains(bad.to_str().unwrap()) && errors[0].contains(reason), "{}", errors[0]);
    }
}
