//! Which system calls change a folder, and what their arguments mean.
//!
//! A call that is not listed runs at full speed. A listed call that changes
//! the folder in a way that no event can tell is [`Call::Surprise`]; that the
//! list is complete is shown from outside: everything applied must equal the
//! folder byte for byte.

use libc::c_long;

/// Where a call finds a path: a folder's descriptor and an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathArg {
    pub(super) folder: i32,
    pub(super) address: u64,
}

/// Where a call finds the bytes it writes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Buffer(u64),
    /// Address and number of `iovec`s.
    Vectors(u64, u64),
}

/// A call, understood.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Open {
        path: PathArg,
        flags: i32,
    },
    /// Without an offset it goes to the descriptor's place.
    Write {
        fd: i32,
        from: Source,
        offset: Option<u64>,
        synced: bool,
    },
    Length {
        fd: i32,
        len: u64,
    },
    Allocate {
        fd: i32,
        mode: i32,
    },
    Rename {
        from: PathArg,
        to: PathArg,
        flags: u32,
    },
    Remove {
        path: PathArg,
    },
    MakeFolder {
        path: PathArg,
    },
    Sync {
        fd: i32,
    },
    /// Something else that touches `fd`.
    Surprise {
        what: &'static str,
        fd: i32,
    },
    /// Something else that makes `path`.
    SurprisePath {
        what: &'static str,
        path: PathArg,
    },
    /// Something else altogether.
    SurpriseAll {
        what: &'static str,
    },
}

const NONE: (usize, u32) = (0, 0);

/// The traced calls: its number, and where a mask is given, the argument that
/// must hold one of its bits for the call to matter.
pub(super) fn traced() -> Vec<(c_long, (usize, u32))> {
    let creates = (libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;
    let mut calls =
        vec![(libc::SYS_openat, (2, creates)), (libc::SYS_mmap, (3, libc::MAP_SHARED as u32))];
    let plain = [
        libc::SYS_openat2,
        libc::SYS_write,
        libc::SYS_pwrite64,
        libc::SYS_writev,
        libc::SYS_pwritev,
        libc::SYS_pwritev2,
        libc::SYS_ftruncate,
        libc::SYS_truncate,
        libc::SYS_fallocate,
        libc::SYS_renameat,
        libc::SYS_renameat2,
        libc::SYS_unlinkat,
        libc::SYS_mkdirat,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_sync,
        libc::SYS_syncfs,
        libc::SYS_copy_file_range,
        libc::SYS_sendfile,
        libc::SYS_splice,
        libc::SYS_io_uring_setup,
    ];
    calls.extend(plain.map(|nr| (nr, NONE)));
    #[cfg(target_arch = "x86_64")]
    {
        calls.push((libc::SYS_open, (1, creates)));
        let old = [
            libc::SYS_creat,
            libc::SYS_rename,
            libc::SYS_unlink,
            libc::SYS_rmdir,
            libc::SYS_mkdir,
            libc::SYS_link,
            libc::SYS_symlink,
        ];
        calls.extend(old.map(|nr| (nr, NONE)));
    }
    calls
}

/// What a traced call is about to do.
pub(super) fn decode(nr: c_long, a: &[u64; 6]) -> Call {
    let at =
        |folder: usize, address: usize| PathArg { folder: a[folder] as i32, address: a[address] };
    let here = |address: usize| PathArg { folder: libc::AT_FDCWD, address: a[address] };
    let fd = a[0] as i32;
    let offset = Some(a[3]);
    match nr {
        libc::SYS_openat => Call::Open { path: at(0, 1), flags: a[2] as i32 },
        libc::SYS_openat2 => Call::SurprisePath { what: "openat2", path: at(0, 1) },
        libc::SYS_write => {
            Call::Write { fd, from: Source::Buffer(a[1]), offset: None, synced: false }
        }
        libc::SYS_pwrite64 => Call::Write { fd, from: Source::Buffer(a[1]), offset, synced: false },
        libc::SYS_writev => {
            Call::Write { fd, from: Source::Vectors(a[1], a[2]), offset: None, synced: false }
        }
        libc::SYS_pwritev => {
            Call::Write { fd, from: Source::Vectors(a[1], a[2]), offset, synced: false }
        }
        libc::SYS_pwritev2 => {
            let synced = a[5] & (libc::RWF_DSYNC | libc::RWF_SYNC) as u64 != 0;
            let offset = offset.filter(|&offset| offset != u64::MAX);
            Call::Write { fd, from: Source::Vectors(a[1], a[2]), offset, synced }
        }
        libc::SYS_ftruncate => Call::Length { fd, len: a[1] },
        libc::SYS_truncate => Call::SurprisePath { what: "truncate by path", path: here(0) },
        libc::SYS_fallocate => Call::Allocate { fd, mode: a[1] as i32 },
        libc::SYS_renameat => Call::Rename { from: at(0, 1), to: at(2, 3), flags: 0 },
        libc::SYS_renameat2 => Call::Rename { from: at(0, 1), to: at(2, 3), flags: a[4] as u32 },
        libc::SYS_unlinkat => Call::Remove { path: at(0, 1) },
        libc::SYS_mkdirat => Call::MakeFolder { path: at(0, 1) },
        libc::SYS_linkat => Call::SurprisePath { what: "link", path: at(2, 3) },
        libc::SYS_symlinkat => Call::SurprisePath { what: "symlink", path: at(1, 2) },
        libc::SYS_fsync | libc::SYS_fdatasync => Call::Sync { fd },
        libc::SYS_sync => Call::SurpriseAll { what: "sync of every file system" },
        libc::SYS_syncfs => Call::SurpriseAll { what: "syncfs" },
        libc::SYS_copy_file_range => Call::Surprise { what: "copy_file_range", fd: a[2] as i32 },
        libc::SYS_sendfile => Call::Surprise { what: "sendfile", fd },
        libc::SYS_splice => Call::Surprise { what: "splice", fd: a[2] as i32 },
        libc::SYS_mmap => Call::Surprise { what: "shared mapping", fd: a[4] as i32 },
        libc::SYS_io_uring_setup => Call::SurpriseAll { what: "io_uring" },
        _ => decode_old(nr, a),
    }
}

#[cfg(target_arch = "x86_64")]
fn decode_old(nr: c_long, a: &[u64; 6]) -> Call {
    let here = |address: usize| PathArg { folder: libc::AT_FDCWD, address: a[address] };
    let creat = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
    match nr {
        libc::SYS_open => Call::Open { path: here(0), flags: a[1] as i32 },
        libc::SYS_creat => Call::Open { path: here(0), flags: creat },
        libc::SYS_rename => Call::Rename { from: here(0), to: here(1), flags: 0 },
        libc::SYS_unlink | libc::SYS_rmdir => Call::Remove { path: here(0) },
        libc::SYS_mkdir => Call::MakeFolder { path: here(0) },
        libc::SYS_link => Call::SurprisePath { what: "link", path: here(1) },
        libc::SYS_symlink => Call::SurprisePath { what: "symlink", path: here(1) },
        _ => Call::SurpriseAll { what: "a call that was traced and not understood" },
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn decode_old(_: c_long, _: &[u64; 6]) -> Call {
    Call::SurpriseAll { what: "a call that was traced and not understood" }
}
