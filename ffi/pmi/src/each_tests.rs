//! Questions and answers, as lines, and back.

use std::collections::HashMap;

use super::*;

fn asked(numbers: Range<u32>) -> Each {
    Each { prefix: "card-0-".into(), suffix: "-1".into(), numbers }
}

/// What the other side reads.
fn sent(message: &Message) -> Message {
    Message::parse(message.to_line().unwrap().as_bytes()).unwrap()
}

fn answered(each: &Each, pairs: &[(&str, &str)]) -> Vec<String> {
    let pairs: HashMap<_, _> = pairs.iter().copied().collect();
    let answer = sent(&each.answer(|key| pairs.get(key).copied()));
    each.values(&answer).map(str::to_owned).collect()
}

#[test]
fn a_question_is_read_as_it_was_written() {
    assert_eq!(Each::of(&sent(&asked(3..70).message("job"))), Some(asked(3..70)));
    let bare = Each { prefix: String::new(), suffix: String::new(), numbers: 0..1 };
    assert_eq!(Each::of(&sent(&bare.message("job"))), Some(bare));
    for line in [
        "cmd=transom_each",
        "cmd=transom_each prefix=a suffix=b from=1 to=-1",
        "cmd=transom_each from=1 to=2",
    ] {
        assert_eq!(Each::of(&Message::parse(line.as_bytes()).unwrap()), None, "{line}");
    }
}

#[test]
fn values_up_to_one_that_is_missing() {
    let pairs = [("card-0-4-1", "a=b"), ("card-0-5-1", "c"), ("card-0-7-1", "d")];
    assert_eq!(answered(&asked(4..9), &pairs), ["a=b", "c"]);
    assert_eq!(answered(&asked(4..5), &pairs), ["a=b"]);
    assert!(answered(&asked(6..9), &pairs).is_empty());
    assert!(answered(&asked(5..5), &pairs).is_empty());
    #[expect(clippy::reversed_empty_ranges, reason = "what a peer may ask")]
    let reversed = asked(9..4);
    assert!(answered(&reversed, &pairs).is_empty());
}

/// A value with a blank, which others than this crate's client may have put, is not taken for two.
#[test]
fn values_of_several_words_are_not_told() {
    let pairs = [("card-0-0-1", "a"), ("card-0-1-1", "b c"), ("card-0-2-1", "d")];
    assert_eq!(answered(&asked(0..3), &pairs), ["a"]);
    assert!(answered(&asked(1..3), &pairs).is_empty());
}

#[test]
fn as_many_as_fit_into_a_line() {
    let value = "x".repeat(500);
    let each = asked(0..1000);
    let answer = each.answer(|_| Some(&value));
    assert!(answer.to_line().unwrap().len() <= MAX_LINE);
    let told = each.values(&sent(&answer)).count();
    assert!((MAX_LINE / 501 - 1..=MAX_LINE / 501).contains(&told), "{told}");
}
