//! Rules that a crate breaks on purpose, to show that the simulator finds them.

/// Declares the rules of a crate that can be broken: `Broken` with `ALL` of
/// them, `set`, and `is` for the code that keeps the rule. A broken rule holds
/// for the thread that set it. For modules behind a feature that no shipped
/// build has.
#[doc(hidden)]
#[macro_export]
macro_rules! broken_rules {
    ($($(#[$doc:meta])* $rule:ident,)+) => {
        /// A rule that can be broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Broken { $($(#[$doc])* $rule,)+ }

        impl Broken {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$rule,)+];
        }

        ::std::thread_local! {
            static NOW: ::std::cell::Cell<Option<Broken>> = const { ::std::cell::Cell::new(None) };
        }

        /// Breaks this rule, and no other, for this thread from now on.
        pub fn set(broken: Option<Broken>) {
            NOW.set(broken);
        }

        /// Whether this rule is broken.
        #[allow(dead_code, reason = "a crate's own tests may break its rules by hand")]
        pub(crate) fn is(broken: Broken) -> bool {
            NOW.get() == Some(broken)
        }
    };
}
