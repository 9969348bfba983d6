//! Mounts of a user who is not root, by `fusermount3`.
//!
//! Each script runs as root in a new mount namespace, where everybody may open `/dev/fuse` and use `allow_other`.

use crate::mounting::fixture::{Fixture, end_of};
use std::process::{Command, Stdio};

/// `user CMD`: as the user who mounts. `other CMD`: as another one. `not CMD`: it must fail.
const BEFORE: &str = r#"
    set -eu
    mkdir -p dev; mount -t tmpfs none dev
    mknod -m 666 dev/fuse c 10 229; echo user_allow_other >dev/fuse.conf
    mount --bind dev/fuse /dev/fuse; mount --bind dev/fuse.conf /etc/fuse.conf
    chown nobody m; mkdir -p s run; chown nobody s run; cp "$LIGHTFOOT" lf
    as() { uid=$1; shift; setpriv --reuid=$uid --regid=$uid --clear-groups env HOME=/ XDG_RUNTIME_DIR="$PWD/run" "$@"; }
    user() { as 65534 "$@"; }
    other() { as 1001 "$@"; }
    not() { if "$@"; then echo "did not fail: $*" >&2; return 1; fi; }
    same() { if [ "$1" != "$2" ]; then echo "$1, and not $2" >&2; return 1; fi; }
    up() { user ./lf mount --daemon --no-create "$@"; }
    down() { user ./lf unmount m; }
"#;

/// The standard error of the script, which must succeed. `None`: such mounts are not possible here.
fn run(script: &str) -> Option<String> {
    let fixture = Fixture::new()?;
    let has = |program: &str, option: &str| Command::new(program).arg(option).output().is_ok();
    if !has("fusermount3", "--version") || !has("unshare", "--version") || !has("setpriv", "--version") {
        println!("SKIPPED: it needs fusermount3, unshare and setpriv");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &format!("{BEFORE}{script}")]).current_dir(fixture.at(""));
    command.env("LIGHTFOOT", env!("CARGO_BIN_EXE_lightfoot")).stdin(Stdio::null());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("unshare runs");
    let output = end_of(child);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}{}", String::from_utf8_lossy(&output.stdout));
    Some(errors)
}

#[test]
fn a_user_mounts_and_unmounts_by_the_helper() {
    let script = r#"
        up ram: m
        user sh -c 'echo text >m/f; ln -s f m/l'
        same "$(user cat m/l)" text
        grep " $PWD/m rw,nosuid,nodev,relatime - fuse.lightfoot " /proc/self/mountinfo
        not other ls m
        down
        up ram: m -o noatime,noexec,suid,dev
        grep " $PWD/m rw,nosuid,nodev,noexec,noatime - fuse.lightfoot " /proc/self/mountinfo
        down
    "#;
    run(script);
}

#[test]
fn a_helper_that_does_not_know_nosymfollow_is_named_and_others_obey_it() {
    let script = r#"
        if up ram: m -o nosymfollow; then
            user sh -c 'echo text >m/f; ln -s f m/l'
            not user cat m/l
            same "$(user readlink m/l)" f
            down
        else
            ! grep " $PWD/m " /proc/self/mountinfo
        fi
    "#;
    let Some(errors) = run(script) else { return };
    let is_refused = errors.contains("fusermount3 refused to mount: ") && errors.contains("nosymfollow");
    assert!(is_refused || errors.contains("symbolic links"), "{errors}");
}

#[test]
fn another_user_gets_no_set_id_file_of_the_user_who_mounts() {
    let shown = ["", ",uid=1001", ",uid=1001,gid=1001", ",uid=1001,umask=000"];
    for shown in shown {
        let script = r#"
            user sh -c 'umask 0; cp /bin/true s/mine; mkdir s/d; chmod 777 s/mine s/d s'
            up s m -o allow_other,suid SHOWN
            for mode in 4777 2777 6777 1777; do
                other chmod $mode m/mine || :
                other sh -c "umask 0; rm -f m/d/new; cp /bin/true m/d/new; chmod $mode m/d/new" || :
                other python3 -c "import os; os.umask(0); os.close(os.open('m/d/made$mode', os.O_CREAT | os.O_WRONLY, 0o$mode))" || :
                other mkdir -m $mode m/d/dir$mode || :
            done
            same "$(find s -user nobody -type f -perm /6000)" ""
            same "$(find s ! -user nobody)" ""
            chmod 4755 s/mine
            user ./lf unmount m; up s m -o allow_other,suid SHOWN
            other sh -c 'echo changed >>m/mine' || :
            if [ "$(stat -c %s s/mine)" != "$(stat -c %s /bin/true)" ]; then same "$(stat -c %a s/mine)" 755; fi
            down
        "#;
        // `-o` takes one list.
        run(&script.replace(",suid SHOWN", &format!(",suid{shown}")));
    }
}
