//! The test cases for any file system, over stores in memory and in a directory.

use lightfoot_objectfs::opendal::services::{Fs, Memory};
use lightfoot_objectfs::opendal::{Buffer, Operator};
use lightfoot_objectfs::{ObjectFs, ObjectOptions};
use std::time::Duration;
use testkit::{Features, Outside, Subject};

/// What an object store does not have.
const FEATURES: Features = Features {
    hard_links: false,
    symlinks: false,
    special_files: false,
    exchange: false,
    xattrs: false,
    unnamed: false,
    keeps_attributes: false,
    set_ids: false,
    acls: false,
    reflinks: false,
    counts_subdirectories: false,
    allocate: false,
    holes: false,
    ids: false,
    all_bytes: false,
    ..Features::all()
};

fn options(ttl: Duration) -> ObjectOptions {
    ObjectOptions {
        ttl,
        copies_directories: true,
        cache_bytes: 8 << 20,
        max_file: 64 << 20,
        ..ObjectOptions::default()
    }
}

fn memory() -> Operator {
    Operator::new(Memory::default()).expect("a store in memory")
}

fn over(operator: Operator, ttl: Duration) -> ObjectFs {
    ObjectFs::new(operator, options(ttl)).expect("threads")
}

/// Another client of the store.
struct OtherClient {
    operator: Operator,
    runtime: tokio::runtime::Runtime,
}

impl OtherClient {
    fn of(operator: Operator) -> Self {
        Self { operator, runtime: tokio::runtime::Runtime::new().expect("threads") }
    }
}

impl Outside for OtherClient {
    fn write(&self, path: &[u8], contents: &[u8]) {
        let path = str::from_utf8(path).expect("text");
        self.runtime.block_on(self.operator.write(path, Buffer::from(contents.to_vec()))).expect("a write");
    }

    fn remove(&self, path: &[u8]) {
        self.runtime.block_on(self.operator.delete(str::from_utf8(path).expect("text"))).expect("a removal");
    }
}

mod in_memory {
    use super::*;
    testkit::suite!(|| over(memory(), Duration::from_secs(60)), FEATURES);
}

mod in_memory_with_others {
    use super::*;
    testkit::suite!(
        || {
            let store = memory();
            Subject::with_outside(over(store.clone(), Duration::ZERO), OtherClient::of(store))
        },
        FEATURES
    );
}

mod in_a_directory {
    use super::*;

    /// A file system, and its directory, which is removed after it.
    struct Below(ObjectFs, #[expect(dead_code, reason = "dropped")] tempfile::TempDir);

    impl vfs::Layer for Below {
        type Inner = ObjectFs;

        fn inner(&self) -> &ObjectFs {
            &self.0
        }
    }

    fn make() -> Below {
        let dir = tempfile::tempdir().expect("a directory");
        let store = Operator::new(Fs::default().root(dir.path().to_str().expect("text"))).expect("a store");
        Below(over(store, Duration::from_secs(60)), dir)
    }

    testkit::suite!(make, FEATURES);
}

mod in_a_bucket {
    use super::*;
    use crate::s3::server::{BUCKET, KEYS, Server};
    use lightfoot_objectfs::{Bucket, Keys};

    /// A file system, and its server, which ends after it.
    struct Served(ObjectFs, #[expect(dead_code, reason = "dropped")] Server);

    impl vfs::Layer for Served {
        type Inner = ObjectFs;

        fn inner(&self) -> &ObjectFs {
            &self.0
        }
    }

    fn make() -> Served {
        let server = Server::start();
        let bucket = Bucket {
            endpoint: Some(server.endpoint.clone()),
            keys: Some(Keys { access_key: KEYS.0.into(), secret_key: KEYS.1.into() }),
            ..Bucket::parse(&format!("s3://{BUCKET}")).expect("a URL")
        };
        let options = ObjectOptions { symlinks: true, ..options(Duration::from_secs(60)) };
        Served(ObjectFs::in_bucket(&bucket, options).expect("threads"), server)
    }

    testkit::suite!(make, Features { keeps_attributes: true, symlinks: true, ..FEATURES });
}
