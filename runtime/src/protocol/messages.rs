//! Matching of messages and receives (MPI-4.1 §3.5): posted receives and unexpected messages of all communicators. Lists of them are
//! searched one by one, since most often the first is the one. A search that goes further than a few puts what is in the list into
//! ordered trees, so that however many they are, no search is long twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How many of a list are searched before it becomes part of a tree.
const FEW: usize = if cfg!(test) { 4 } else { 64 };
/// Room that an empty list keeps.
const KEPT: usize = 1024;

/// The envelope of a message (§3.2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The communicator.
    pub context: u64,
    /// Rank in the job that sends.
    pub source: usize,
    /// Negative tags are the runtime's own: [`Pattern::tag`] must name them.
    pub tag: i32,
}

/// What a receive matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    /// The communicator.
    pub context: u64,
    /// Rank in the job, or any.
    pub source: Option<usize>,
    /// Tag, or any that is not negative.
    pub tag: Option<i32>,
}

impl Envelope {
    /// All patterns that match this message.
    fn patterns(self) -> impl Iterator<Item = Pattern> {
        let Self { context, source, tag } = self;
        let of_tag =
            move |tag| [Some(source), None].into_iter().map(move |source| Pattern { context, source, tag });
        let any = (tag >= 0).then_some(None);
        [Some(Some(tag)), any].into_iter().flatten().flat_map(of_tag)
    }
}

impl Pattern {
    /// Whether it matches a message.
    #[inline]
    pub fn matches(&self, envelope: &Envelope) -> bool {
        self.context == envelope.context
            && self.source.is_none_or(|source| source == envelope.source)
            && self.tag.map_or(envelope.tag >= 0, |tag| tag == envelope.tag)
    }
}

/// Takes one out of a list. One that was long, and is empty, gives its room back.
#[inline]
fn remove<T>(list: &mut VecDeque<T>, place: usize) -> Option<T> {
    let removed = if place == 0 { list.pop_front() } else { list.remove(place) };
    if list.is_empty() && list.capacity() > KEPT {
        *list = VecDeque::new();
    }
    removed
}

/// Posted receives `R` and unexpected messages `M`: none of the former matches any of the latter.
#[derive(Debug)]
pub struct Messages<R, M> {
    /// Number of the next receive or message that a tree may have.
    next: u64,
    /// The newest receives, in the order in which they were posted. All in the tree are older.
    new_receives: VecDeque<(Pattern, u64, R)>,
    receives: BTreeMap<(Pattern, u64), R>,
    /// The newest messages, likewise.
    new_messages: VecDeque<(Envelope, M)>,
    messages: BTreeMap<u64, (Envelope, M)>,
    /// The messages of the tree by every pattern that matches them.
    index: BTreeSet<(Pattern, u64)>,
}

impl<R, M> Default for Messages<R, M> {
    fn default() -> Self {
        Self {
            next: 0,
            new_receives: VecDeque::new(),
            receives: BTreeMap::new(),
            new_messages: VecDeque::new(),
            messages: BTreeMap::new(),
            index: BTreeSet::new(),
        }
    }
}

/// Where a message is.
enum Place {
    New(usize),
    Tree(u64),
}

/// The first of the first [`FEW`] that `is_it` says; an error: there are more, in which it may be.
#[inline]
fn first_of_few<T>(list: &VecDeque<T>, is_it: impl Fn(&T) -> bool) -> Result<Option<usize>, ()> {
    if list.front().is_some_and(&is_it) {
        return Ok(Some(0));
    }
    match list.iter().take(FEW).position(is_it) {
        None if list.len() > FEW => Err(()),
        place => Ok(place),
    }
}

impl<R, M> Messages<R, M> {
    /// Whether there is no receive and no message.
    pub fn is_empty(&self) -> bool {
        self.new_receives.is_empty()
            && self.new_messages.is_empty()
            && self.receives.is_empty()
            && self.messages.is_empty()
    }

    /// How many receives are posted.
    pub fn posted(&self) -> usize {
        self.new_receives.len() + self.receives.len()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    #[inline]
    fn find(&mut self, pattern: Pattern) -> Option<Place> {
        if !self.index.is_empty()
            && let Some(place) = self.find_in_tree(pattern)
        {
            return Some(place);
        }
        match first_of_few(&self.new_messages, |(envelope, _)| pattern.matches(envelope)) {
            Ok(place) => place.map(Place::New),
            Err(()) => {
                self.messages_to_tree();
                self.find_in_tree(pattern)
            }
        }
    }

    fn find_in_tree(&self, pattern: Pattern) -> Option<Place> {
        let first = self.index.range((pattern, 0)..=(pattern, u64::MAX)).next();
        first.map(|(_, number)| Place::Tree(*number))
    }

    fn remove(&mut self, place: Place) -> Option<(Envelope, M)> {
        match place {
            Place::New(index) => remove(&mut self.new_messages, index),
            Place::Tree(number) => {
                let (envelope, message) = self.messages.remove(&number)?;
                for pattern in envelope.patterns() {
                    self.index.remove(&(pattern, number));
                }
                Some((envelope, message))
            }
        }
    }

    /// The first message that a receive would match.
    pub fn look(&mut self, pattern: Pattern) -> Option<(Envelope, &M)> {
        let (envelope, message) = match self.find(pattern)? {
            Place::New(index) => &self.new_messages[index],
            Place::Tree(number) => self.messages.get(&number)?,
        };
        Some((*envelope, message))
    }

    /// Takes that message.
    #[inline]
    pub fn take(&mut self, pattern: Pattern) -> Option<(Envelope, M)> {
        if self.new_messages.is_empty() && self.messages.is_empty() {
            return None;
        }
        let place = self.find(pattern)?;
        self.remove(place)
    }

    /// Posts a receive that no message here matches; returns its number.
    pub fn post(&mut self, pattern: Pattern, receive: R) -> u64 {
        let number = self.number();
        self.new_receives.push_back((pattern, number, receive));
        number
    }

    /// Cancels a receive, unless a message has matched it.
    pub fn cancel(&mut self, pattern: Pattern, number: u64) -> Option<R> {
        match first_of_few(&self.new_receives, |(_, other, _)| *other == number) {
            Ok(Some(index)) => return remove(&mut self.new_receives, index).map(|(_, _, receive)| receive),
            Ok(None) => {}
            Err(()) => self.receives_to_tree(),
        }
        self.receives.remove(&(pattern, number))
    }

    /// Takes back the receive that `is_it` says, unless a message has matched it.
    pub fn take_back(&mut self, is_it: impl Fn(&R) -> bool) -> Option<R> {
        if let Some(index) = self.new_receives.iter().position(|(_, _, receive)| is_it(receive)) {
            return remove(&mut self.new_receives, index).map(|(_, _, receive)| receive);
        }
        let key = self.receives.iter().find(|(_, receive)| is_it(receive)).map(|(key, _)| *key)?;
        self.receives.remove(&key)
    }

    /// Takes the first message of a rank that `is_it` says.
    pub fn withdraw(&mut self, source: usize, is_it: impl Fn(&M) -> bool) -> Option<M> {
        let it = |(envelope, message): &(Envelope, M)| envelope.source == source && is_it(message);
        let in_tree = self.messages.iter().find(|(_, message)| it(message)).map(|(number, _)| *number);
        let place = match in_tree {
            Some(number) => Place::Tree(number),
            None => Place::New(self.new_messages.iter().position(it)?),
        };
        self.remove(place).map(|(_, message)| message)
    }

    /// Takes the first posted receive that matches a message.
    #[inline]
    fn receive(&mut self, envelope: &Envelope) -> Option<R> {
        if !self.receives.is_empty()
            && let Some(receive) = self.receive_in_tree(envelope)
        {
            return Some(receive);
        }
        match first_of_few(&self.new_receives, |(pattern, _, _)| pattern.matches(envelope)) {
            Ok(place) => remove(&mut self.new_receives, place?).map(|(_, _, receive)| receive),
            Err(()) => {
                self.receives_to_tree();
                self.receive_in_tree(envelope)
            }
        }
    }

    fn receive_in_tree(&mut self, envelope: &Envelope) -> Option<R> {
        let first_of = |pattern| self.receives.range((pattern, 0)..=(pattern, u64::MAX)).next();
        let all = envelope.patterns().filter_map(first_of).map(|(key, _)| *key);
        let key = all.min_by_key(|key| key.1)?;
        self.receives.remove(&key)
    }

    /// Takes the first posted receive that matches a message, if it is among the few that a search sees first, and `will_do`.
    #[inline]
    pub fn receive_if(&mut self, envelope: &Envelope, will_do: impl FnOnce(&R) -> bool) -> Option<R> {
        if !self.receives.is_empty() {
            return None;
        }
        let place = first_of_few(&self.new_receives, |(pattern, _, _)| pattern.matches(envelope)).ok()??;
        if !will_do(&self.new_receives.get(place)?.2) {
            return None;
        }
        remove(&mut self.new_receives, place).map(|(_, _, receive)| receive)
    }

    /// A message arrived: returns it with the first posted receive that matches it, or keeps it.
    pub fn arrive<N>(&mut self, envelope: Envelope, message: N, keep: impl FnOnce(N) -> M) -> Option<(R, N)> {
        if let Some(receive) = self.receive(&envelope) {
            return Some((receive, message));
        }
        self.new_messages.push_back((envelope, keep(message)));
        None
    }

    #[cold]
    fn receives_to_tree(&mut self) {
        let all = std::mem::take(&mut self.new_receives).into_iter();
        self.receives.extend(all.map(|(pattern, number, receive)| ((pattern, number), receive)));
    }

    #[cold]
    fn messages_to_tree(&mut self) {
        for (envelope, message) in std::mem::take(&mut self.new_messages) {
            let number = self.number();
            self.index.extend(envelope.patterns().map(|pattern| (pattern, number)));
            self.messages.insert(number, (envelope, message));
        }
    }

    /// Takes everything away: receives and messages that are left.
    pub fn clear(&mut self) -> (Vec<R>, Vec<M>) {
        self.index.clear();
        let receives = std::mem::take(&mut self.receives).into_values();
        let receives = receives.chain(self.new_receives.drain(..).map(|(_, _, receive)| receive)).collect();
        let messages = std::mem::take(&mut self.messages).into_values();
        let messages = messages.chain(self.new_messages.drain(..)).map(|(_, message)| message).collect();
        (receives, messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Arrive(Envelope),
        Receive(Pattern),
        Look(Pattern),
        Cancel(usize),
    }

    /// The same with lists, searched from the front.
    #[derive(Default)]
    struct Naive {
        receives: Vec<(Pattern, u32)>,
        messages: Vec<(Envelope, u32)>,
    }

    fn takes(pattern: &Pattern, envelope: &Envelope) -> bool {
        pattern.context == envelope.context
            && pattern.source.is_none_or(|source| source == envelope.source)
            && pattern.tag.map_or(envelope.tag >= 0, |tag| tag == envelope.tag)
    }

    impl Naive {
        fn look(&self, pattern: &Pattern) -> Option<usize> {
            self.messages.iter().position(|(envelope, _)| takes(pattern, envelope))
        }

        fn arrive(&mut self, envelope: Envelope, message: u32) -> Option<u32> {
            let place = self.receives.iter().position(|(pattern, _)| takes(pattern, &envelope));
            match place {
                Some(place) => Some(self.receives.remove(place).1),
                None => {
                    self.messages.push((envelope, message));
                    None
                }
            }
        }
    }

    fn envelope() -> impl Strategy<Value = Envelope> {
        (0..2u64, 0..3usize, -1..3i32).prop_map(|(context, source, tag)| Envelope { context, source, tag })
    }

    fn pattern() -> impl Strategy<Value = Pattern> {
        let (source, tag) = (proptest::option::of(0..3usize), proptest::option::of(-1..3i32));
        (0..2u64, source, tag).prop_map(|(context, source, tag)| Pattern { context, source, tag })
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => envelope().prop_map(Step::Arrive),
            3 => pattern().prop_map(Step::Receive),
            1 => pattern().prop_map(Step::Look),
            1 => (0..8usize).prop_map(Step::Cancel),
        ]
    }

    fn follow(steps: Vec<Step>) {
        let (mut real, mut naive) = (Messages::default(), Naive::default());
        let mut posted = Vec::new();
        for (name, step) in (0..).zip(steps) {
            match step {
                Step::Arrive(envelope) => {
                    // What one way leaves is for the other.
                    assert_eq!(real.receive_if(&envelope, |_| false), None);
                    let first = if name % 2 == 0 { real.receive_if(&envelope, |_| true) } else { None };
                    let met = first.or_else(|| {
                        let (receive, message) = real.arrive(envelope, name, |name| name)?;
                        assert_eq!(message, name);
                        Some(receive)
                    });
                    assert_eq!(met, naive.arrive(envelope, name));
                }
                Step::Receive(pattern) => {
                    let expected = naive.look(&pattern).map(|place| naive.messages.remove(place));
                    assert_eq!(real.take(pattern), expected);
                    if expected.is_none() {
                        posted.push((pattern, real.post(pattern, name), name));
                        naive.receives.push((pattern, name));
                    }
                }
                Step::Look(pattern) => {
                    let expected = naive.look(&pattern).map(|place| naive.messages[place]);
                    assert_eq!(real.look(pattern).map(|(e, m)| (e, *m)), expected);
                }
                Step::Cancel(place) if place < posted.len() => {
                    let (pattern, number, name) = posted.remove(place);
                    let place = naive.receives.iter().position(|(_, other)| *other == name);
                    let cancelled = match name % 2 {
                        0 => real.cancel(pattern, number),
                        _ => real.take_back(|other| *other == name),
                    };
                    assert_eq!(cancelled, place.map(|place| naive.receives.remove(place).1));
                }
                Step::Cancel(_) => {}
            }
        }
        let (receives, messages) = real.clear();
        assert_eq!((receives.len(), messages.len()), (naive.receives.len(), naive.messages.len()));
    }

    proptest! {
        #[test]
        fn as_lists_would_do(steps in proptest::collection::vec(step(), 0..200)) {
            follow(steps);
        }
    }

    #[test]
    fn thousands_in_the_worst_order() {
        let mut messages = Messages::default();
        let envelope = |tag| Envelope { context: 1, source: 2, tag };
        for tag in 0..50_000 {
            assert!(messages.arrive(envelope(tag), tag, |tag| tag).is_none());
        }
        for tag in (0..50_000).rev() {
            let pattern = Pattern { context: 1, source: None, tag: Some(tag) };
            assert_eq!(messages.take(pattern).map(|(_, m)| m), Some(tag));
            messages.post(pattern, tag);
        }
        for tag in 0..50_000 {
            assert_eq!(messages.arrive(envelope(tag), -1, |_| -1), Some((tag, -1)));
        }
    }
}
