//! The kinds of tree that each test of `races` and `torture` runs in.

/// What a tree has besides names.
#[derive(Clone, Copy)]
pub(crate) enum TreeKind {
    /// Nothing.
    Plain,
    /// A table of whole paths that records every path. Debug builds compare each lookup by it with a walk.
    ByTable,
    /// Every directory is split.
    Split,
}

/// For each kind a module with a test for each function.
macro_rules! test_each_kind {
    ([$($name:ident: $kind:ident),+] $tests:tt) => {
        $(mod $name {
            $crate::tree_kind::test_each_kind!(@ $kind $tests);
        })+
    };
    (@ $kind:ident [$($module:ident::$test:ident),+ $(,)?]) => {
        $(#[test]
        fn $test() {
            super::$module::$test($crate::tree_kind::TreeKind::$kind);
        })+
    };
}
pub(crate) use test_each_kind;
