//! The laws of [`Disk`], as far as they can be seen without losing power.

use std::io::ErrorKind;
use std::path::Path;

use crate::disk::Disk;

/// Runs every law on `disk`, in `dir`, which must not exist yet.
#[allow(clippy::unwrap_used, clippy::missing_panics_doc)]
pub fn disk(disk: &dyn Disk, dir: &Path) {
    let (a, b) = (dir.join("a"), dir.join("b"));
    assert_eq!(disk.list(dir).unwrap_err().kind(), ErrorKind::NotFound);
    disk.create_dir_all(&dir.join("inner")).unwrap();
    disk.create_dir_all(dir).unwrap();
    assert_eq!(disk.open(&a, false).err().unwrap().kind(), ErrorKind::NotFound);
    let file = disk.open(&a, true).unwrap();
    assert!(file.is_empty().unwrap());

    file.write_at(2, b"cd").unwrap();
    file.write_at(0, b"ab").unwrap();
    let again = disk.open(&a, true).unwrap();
    let mut read = [0; 4];
    again.read_at(0, &mut read).unwrap();
    assert_eq!((&read, again.len().unwrap()), (b"abcd", 4), "law: what is written is read");
    let beyond = again.read_at(1, &mut read).unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::UnexpectedEof, "law: a read past the end says so");

    file.set_len(1).unwrap();
    file.set_len(3).unwrap();
    let mut read = [9; 3];
    file.read_at(0, &mut read).unwrap();
    assert_eq!(&read, b"a\0\0", "law: what was cut is zero when extended");
    file.sync().unwrap();

    let other = disk.open(&b, true).unwrap();
    other.write_at(0, b"other").unwrap();
    disk.rename(&a, &b).unwrap();
    disk.sync_dir(dir).unwrap();
    assert_eq!(disk.list(dir).unwrap(), [b.clone(), dir.join("inner")], "law: sorted, replaced");
    assert_eq!(other.len().unwrap(), 5, "law: an open file outlives its name");
    assert!(disk.remove_dir(dir).is_err(), "law: only an empty folder is removed");
    disk.remove_file(&b).unwrap();
    assert_eq!(disk.remove_file(&b).unwrap_err().kind(), ErrorKind::NotFound);
    disk.remove_dir(&dir.join("inner")).unwrap();
    assert!(disk.list(dir).unwrap().is_empty());
}
