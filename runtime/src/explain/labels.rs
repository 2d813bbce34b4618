//! The labels of an explanation: kinds of operations, paths, reasons.

/// An enum whose variants have a name, and all of which are listed.
macro_rules! labels {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them, in the order of explanations.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As explanations print it.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.text())
            }
        }
    };
}

labels! {
    /// What was called.
    Kind {
        /// Put, with a request or without.
        Put = "put",
        /// Put with notification.
        PutNotify = "put_notify",
        /// Get, with a request or without.
        Get = "get",
        /// Accumulate, with a request or without.
        Accumulate = "accumulate",
        /// Get_accumulate, with a request or without.
        GetAccumulate = "get_accumulate",
        /// Fetch_and_op: an atomic on one element.
        FetchAndOp = "fetch_and_op",
        /// Compare_and_swap.
        CompareAndSwap = "compare_and_swap",
    }
}

impl Kind {
    /// The kind of an operation by its name in errors.
    pub(crate) fn of(operation: &str) -> Self {
        match operation {
            "get" | "rget" => Self::Get,
            "put_notify" => Self::PutNotify,
            "accumulate" | "raccumulate" => Self::Accumulate,
            "get_accumulate" | "rget_accumulate" => Self::GetAccumulate,
            "fetch_and_op" | "rfetch_and_op" => Self::FetchAndOp,
            "compare_and_swap" => Self::CompareAndSwap,
            _ => Self::Put,
        }
    }
}

labels! {
    /// The way that an operation went. A path that no transport here takes is never counted.
    Path {
        /// Put and get: loads and stores of the calling thread, in mapped memory.
        Direct = "direct",
        /// Put: the bytes travel in the work request.
        Inline = "inline",
        /// Put and get: the device reads or writes the caller's buffer.
        ZeroCopy = "zero-copy",
        /// Put and get: by way of a registered buffer of the runtime's.
        Bounce = "bounce",
        /// Put and get: a work request of the transport, which does not say how it moves the bytes.
        Transport = "transport",
        /// Put and get: a message, whose bytes the target's agent stores or sends.
        Message = "message",
        /// Put and get between layouts: many pieces in one message.
        Packed = "packed",
        /// Put and get between layouts: a work request for each piece.
        Pieces = "pieces",
        /// Put and get between layouts: a work request for each run of the target's memory, with all pieces of it here.
        List = "list",
        /// Atomics: CPU atomics of the calling thread, in mapped memory.
        Cpu = "cpu",
        /// Atomics: loads and stores of the calling thread in mapped memory, under the lock of the element's place.
        Stripe = "stripe",
        /// Atomics: by the network card.
        Hardware = "hardware",
        /// Atomics: a loop around the network card's compare-and-swap.
        Assisted = "assisted",
        /// Atomics: a message, which the target's agent applies.
        Agent = "agent",
        /// Atomics: a message, upon which the target's agent gets the operands and applies them.
        Pull = "pull",
    }
}

labels! {
    /// Why an operation went that way.
    Reason {
        /// The target's memory is mapped here.
        Mapped = "mapped",
        /// The target is this rank.
        Loopback = "loopback",
        /// The target's memory is not mapped here, and the transport reaches it.
        Remote = "remote",
        /// The element's type, or the operation on it: too wide, or unknown to what could be faster.
        Type = "type",
        /// The element does not lie at a multiple of its size.
        Alignment = "alignment",
        /// How many bytes it is.
        Size = "size",
        /// The data is in several pieces here or there.
        Layout = "layout",
        /// The transport, or the provider below it, has nothing better.
        Provider = "provider",
        /// The caller's buffer cannot be registered.
        Registration = "registration",
        /// A hint of the window's asked for it.
        Hint = "hint",
        /// It travels with the message that asks for the target's lock, or that ends the epoch.
        Epoch = "epoch",
        /// The target had detached the memory, which was there still.
        Detached = "detached",
    }
}

impl Reason {
    /// The reason as a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Mapped => "the target's memory is mapped here",
            Self::Loopback => "it is this rank's own memory",
            Self::Remote => "the target's memory is not mapped here",
            Self::Type => {
                "the element's type, or the operation on it, is not one of those that could be faster"
            }
            Self::Alignment => "the element does not lie at a multiple of its size",
            Self::Size => "that is best for so many bytes",
            Self::Layout => "the data is in several pieces",
            Self::Provider => "the transport has nothing better",
            Self::Registration => "the caller's buffer could not be registered",
            Self::Hint => "a hint of the window asked for it",
            Self::Epoch => "it travels with the message that asks for a lock, or that ends the epoch",
            Self::Detached => "the target had detached the memory, which was there still",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_kind() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind.text()), *kind);
        }
        assert_eq!(Kind::of("rput"), Kind::Put);
        assert_eq!(Kind::of("rfetch_and_op"), Kind::FetchAndOp);
    }

    #[test]
    fn labels_are_numbered_in_the_order_of_their_list() {
        assert!(Kind::ALL.iter().enumerate().all(|(i, kind)| *kind as usize == i));
        assert!(Path::ALL.iter().enumerate().all(|(i, path)| *path as usize == i));
        assert!(Reason::ALL.iter().enumerate().all(|(i, reason)| *reason as usize == i));
    }
}
