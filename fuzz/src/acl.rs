//! ACLs in their extended attribute: any bytes are refused or come back as they were, and what is read off an ACL hangs
//! together.

use crate::input::Input;
use vfs::{Acl, Credentials};

/// Runs one input: its first nine bytes choose a mode, a caller and the form of the attribute, and
/// the rest makes the attribute.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (mode, uid, gid, group) = (input.word(), input.word() % 4, input.word() % 4, input.word() % 4);
    // Whole attributes by chance are rare: half of the inputs get their head and known tags.
    let value = if input.byte() & 1 == 0 { input.rest().to_vec() } else { attribute(&mut input) };
    let acl = match Acl::from_xattr(&value) {
        Ok(Some(acl)) => acl,
        Ok(None) => {
            assert!(value.len() <= 4, "an ACL with entries was taken for none");
            return;
        }
        Err(_) => return,
    };
    assert_eq!(acl.validate(), Ok(()));
    assert_eq!(Acl::new(acl.entries()).as_ref(), Ok(&acl));
    let again = acl.to_xattr();
    assert_eq!(again.len(), value.len());
    assert_eq!(Acl::from_xattr(&again), Ok(Some(acl.clone())));
    check_modes(&acl, mode);
    let cred = Credentials::user(uid, gid, &[group]);
    // A caller that gets several permissions together gets each of them alone.
    for mask in 0..8 {
        let each = [1, 2, 4].into_iter().filter(|bit| mask & bit != 0).all(|bit| acl.may(&cred, 1, 1, bit).is_ok());
        assert!(acl.may(&cred, 1, 1, mask).is_err() || each, "{acl:?} {cred:?} {mask}");
    }
}

fn check_modes(acl: &Acl, mode: u32) {
    let changed = acl.chmod(mode);
    assert_eq!((changed.validate(), changed.mode_bits()), (Ok(()), mode & 0o777));
    assert_eq!(acl.chmod(acl.mode_bits()).mode_bits(), acl.mode_bits());
    if let Some(bits) = acl.equiv_mode() {
        assert_eq!(Acl::from_mode(bits), *acl);
    }
    let mut made = mode;
    let inherited = Acl::create_from_default(acl, &mut made);
    assert_eq!(made & !mode, 0, "a file got more than it was made with");
    assert_eq!(made & !0o777, mode & !0o777);
    if let Some(inherited) = inherited {
        assert_eq!((inherited.validate(), inherited.mode_bits()), (Ok(()), made & 0o777));
    }
}

/// Makes an attribute of the right form. Most of its tags and ids are known ones.
fn attribute(input: &mut Input<'_>) -> Vec<u8> {
    let mut value = 2u32.to_le_bytes().to_vec();
    while !input.is_empty() && value.len() < 4 + 8 * 40 {
        let (tag, perm, id) = (1u16 << input.below(8), u16::from(input.byte()) & 15, input.byte());
        let id = if id == 255 { u32::MAX } else { u32::from(id) };
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&perm.to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    }
    value
}
