//! The methods with types that both interfaces have with the same arguments.

/// Defines a method of an epoch, be it a scope or a call. What it says of itself is the interface's, which also has in scope what
/// the signature names.
macro_rules! method {
    ($(#[$meta:meta])* accumulate) => {
        $(#[$meta])*
        pub fn accumulate<O: Operation<T>>(
            &self,
            target: usize,
            displacement: usize,
            _op: O,
            data: &[T],
        ) -> Result<()> {
            if let [one] = data {
                return self.access.accumulate_one(target, displacement, O::OP, *one);
            }
            self.access.accumulate(target, displacement, Accumulate::of(O::OP, data), None)
        }
    };
    ($(#[$meta:meta])* get_accumulate) => {
        $(#[$meta])*
        pub fn get_accumulate<O: Operation<T>>(
            &self,
            target: usize,
            displacement: usize,
            _op: O,
            data: &[T],
            result: &mut [T],
        ) -> Result<()> {
            let result = Some(result.as_mut_bytes());
            self.access.accumulate(target, displacement, Accumulate::of(O::OP, data), result)
        }
    };
    ($(#[$meta:meta])* accumulate_as) => {
        method! { @accumulate_as $(#[$meta])* accumulate_as [] None }
    };
    ($(#[$meta:meta])* get_accumulate_as) => {
        method! {
            @accumulate_as
            $(#[$meta])*
            #[expect(clippy::too_many_arguments, reason = "the standard's, but for the window")]
            get_accumulate_as [result: &mut [E], fetch: Layout<'_>,] Some((result.as_mut_bytes(), fetch))
        }
    };
    (@accumulate_as $(#[$meta:meta])* $name:ident [$($arguments:tt)*] $fetch:expr) => {
        $(#[$meta])*
        pub fn $name<E: Element>(
            &self,
            target: usize,
            displacement: usize,
            op: ReduceOp,
            data: &[E],
            from: Layout<'_>,
            $($arguments)*
            to: Layout<'_>,
        ) -> Result<()> {
            self.access.accumulate_as(target, displacement, op, (data.as_bytes(), from), to, $fetch)
        }
    };
    ($(#[$meta:meta])* fetch_op) => {
        method! { @fetch_op $(#[$meta])* fetch_op [O: Operation<T>] T }
    };
    ($(#[$meta:meta])* fetch_op_of) => {
        method! { @fetch_op $(#[$meta])* fetch_op_of [B: Basic, O: Operation<B>] B }
    };
    (@fetch_op $(#[$meta:meta])* $name:ident [$($parameters:tt)*] $element:ident) => {
        $(#[$meta])*
        pub fn $name<$($parameters)*>(
            &self,
            target: usize,
            displacement: usize,
            _op: O,
            value: $element,
        ) -> Result<$element> {
            self.access.fetch_op(target, displacement, O::OP, value)
        }
    };
    ($(#[$meta:meta])* compare_and_swap) => {
        $(#[$meta])*
        pub fn compare_and_swap(&self, target: usize, displacement: usize, compare: T, value: T) -> Result<T> {
            self.access.compare_swap(target, displacement, compare, value)
        }
    };
    ($(#[$meta:meta])* compare_and_swap_of) => {
        $(#[$meta])*
        pub fn compare_and_swap_of<B: Swappable>(
            &self,
            target: usize,
            displacement: usize,
            compare: B,
            value: B,
        ) -> Result<B> {
            self.access.compare_swap(target, displacement, compare, value)
        }
    };
    ($(#[$meta:meta])* rput) => {
        $(#[$meta])*
        pub fn rput(&self, target: usize, displacement: usize, data: Vec<T>) -> Result<Request<Vec<T>>> {
            self.access.rput(target, displacement, data)
        }
    };
    ($(#[$meta:meta])* rget) => {
        $(#[$meta])*
        pub fn rget(&self, target: usize, displacement: usize, len: usize) -> Result<Request<Vec<T>>> {
            self.access.rget(target, displacement, len)
        }
    };
    ($(#[$meta:meta])* raccumulate) => {
        $(#[$meta])*
        pub fn raccumulate<O: Operation<T>>(
            &self,
            target: usize,
            displacement: usize,
            _op: O,
            data: Vec<T>,
        ) -> Result<Request<Vec<T>>> {
            self.access.raccumulate(target, displacement, O::OP, data)
        }
    };
    ($(#[$meta:meta])* rget_accumulate) => {
        $(#[$meta])*
        pub fn rget_accumulate<O: Operation<T>>(
            &self,
            target: usize,
            displacement: usize,
            _op: O,
            data: &[T],
        ) -> Result<Request<Vec<T>>> {
            self.access.rget_accumulate("rget_accumulate", target, displacement, O::OP, data)
        }
    };
}

pub(super) use method;
