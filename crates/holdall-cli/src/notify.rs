//! Messages to systemd: the service is ready, it reads its configuration again, it stops. Outside of
//! systemd there are none.

use std::ffi::OsString;
use std::io;

/// The variable by which systemd names its socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// Sends a state, as `READY=1`: one datagram.
///
/// # Errors
/// Those of the socket.
pub fn tell(state: &str) -> io::Result<()> {
    match std::env::var_os(SOCKET).filter(|name| !name.is_empty()) {
        Some(name) => send(&name, state),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn send(name: &OsString, state: &str) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let bytes = name.as_encoded_bytes();
    // A name that begins with @ is no file.
    let address = match bytes.strip_prefix(b"@") {
        Some(rest) => SocketAddr::from_abstract_name(rest)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(not(target_os = "linux"))]
fn send(_: &OsString, _: &str) -> io::Result<()> {
    Ok(())
}
