//! The kernel's tracing calls, each in a safe function.
//!
//! A seccomp filter stops a traced thread at the calls of interest alone, so
//! everything else runs at full speed. Raw system calls are seen as well as
//! those that go through libc: some libraries make them.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use libc::{c_int, c_long, c_void, pid_t, sock_filter, sock_fprog};

#[cfg(target_arch = "x86_64")]
const ARCH: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCH: u32 = 0xc000_00b7;

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It is about to make a traced call.
    Call,
    /// A call that was let go with [`until_return`] came back.
    Return,
    /// A signal is about to be delivered.
    Signal(c_int),
    /// It made a thread or a process, or ran another program.
    Event,
    /// It ended, with the raw wait status.
    Gone(c_int),
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The filter program: trace the listed calls, allow the rest.
fn filter(calls: &[(c_long, (usize, u32))]) -> Vec<sock_filter> {
    let op = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let allow = op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW);
    let trace = op(RETURN, 0, 0, libc::SECCOMP_RET_TRACE);
    let mut program = vec![op(LOAD, 0, 0, 4), op(EQUAL, 1, 0, ARCH), allow, op(LOAD, 0, 0, 0)];
    for &(nr, (argument, mask)) in calls {
        if mask == 0 {
            program.extend([op(EQUAL, 0, 1, nr as u32), trace]);
        } else {
            let low_half = 16 + 8 * argument as u32;
            program.extend([
                op(EQUAL, 0, 4, nr as u32),
                op(LOAD, 0, 0, low_half),
                op(ANY_BIT, 0, 1, mask),
                trace,
                allow,
            ]);
        }
    }
    program.push(allow);
    program
}

/// Makes `command` start traced by the thread that spawns it.
pub(super) fn traced(command: &mut Command, calls: &[(c_long, (usize, u32))]) {
    let mut program = filter(calls);
    let start = move || {
        let filter = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: plain system calls, as allowed between fork and exec;
        // `filter` points into `program`, which the closure owns, and the
        // kernel copies it before the call returns.
        let failed = unsafe {
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
                    != 0
        };
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: `start` allocates nothing, takes no lock and touches no memory
    // but its own program.
    unsafe { command.pre_exec(start) };
}

fn ptrace(request: u32, thread: pid_t, address: usize, data: usize) -> io::Result<c_long> {
    // SAFETY: the requests that are made here take numbers only, but for
    // `call_info`, which passes a buffer of the length it says.
    let result =
        unsafe { libc::ptrace(request as _, thread, address as *mut c_void, data as *mut c_void) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// After the first stop: follow threads, stop at traced calls, and end with
/// the tracer.
pub(super) fn follow(process: pid_t) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    ptrace(libc::PTRACE_SETOPTIONS, process, 0, options as usize).map(drop)
}

/// Lets a stopped thread run on, with a signal or none (0).
pub(super) fn go_on(thread: pid_t, signal: c_int) {
    // A thread that was killed meanwhile cannot go on: its end is told later.
    let _ = ptrace(libc::PTRACE_CONT, thread, 0, signal as usize);
}

/// Lets a stopped thread make its call, and stops it again when it returns.
pub(super) fn until_return(thread: pid_t) {
    // As above.
    let _ = ptrace(libc::PTRACE_SYSCALL, thread, 0, 0);
}

fn call_info(thread: pid_t) -> io::Result<libc::ptrace_syscall_info> {
    // SAFETY: all-zero bytes are a value of this plain C structure.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = size_of_val(&info);
    ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, size, (&raw mut info) as usize)?;
    Ok(info)
}

/// The call at which a thread stopped: number and arguments.
pub(super) fn call(thread: pid_t) -> io::Result<(c_long, [u64; 6])> {
    let info = call_info(thread)?;
    if info.op != libc::PTRACE_SYSCALL_INFO_SECCOMP {
        return Err(io::Error::other("not at a traced call"));
    }
    // SAFETY: `op` says which member of the union was written.
    let seccomp = unsafe { info.u.seccomp };
    Ok((seccomp.nr as c_long, seccomp.args))
}

/// What a call returned: a negative number is an error.
pub(super) fn returned(thread: pid_t) -> io::Result<i64> {
    let info = call_info(thread)?;
    if info.op != libc::PTRACE_SYSCALL_INFO_EXIT {
        return Err(io::Error::other("not at the return of a call"));
    }
    // SAFETY: `op` says which member of the union was written.
    Ok(unsafe { info.u.exit }.sval)
}

/// Waits for the next stop of a thread that this thread traces; `None` when
/// there is none left.
pub(super) fn wait() -> io::Result<Option<(pid_t, Stop)>> {
    let mut status: c_int = 0;
    // SAFETY: `status` outlives the call. Children of other threads are left
    // to those threads.
    let thread = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
    if thread < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ECHILD) => Ok(None),
            Some(libc::EINTR) => wait(),
            _ => Err(error),
        };
    }
    if !libc::WIFSTOPPED(status) {
        return Ok(Some((thread, Stop::Gone(status))));
    }
    let stop = match (status >> 16, libc::WSTOPSIG(status)) {
        (libc::PTRACE_EVENT_SECCOMP, _) => Stop::Call,
        (0, signal) if signal == libc::SIGTRAP | 0x80 => Stop::Return,
        (0, signal) => Stop::Signal(signal),
        _ => Stop::Event,
    };
    Ok(Some((thread, stop)))
}

/// Sends a signal to a process.
pub(super) fn signal(process: pid_t, signal: c_int) -> io::Result<()> {
    // SAFETY: takes two numbers.
    match unsafe { libc::kill(process, signal) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
