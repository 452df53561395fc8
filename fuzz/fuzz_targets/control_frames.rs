//! Frames and messages of the control socket, of any bytes.
#![no_main]

use holdall_control::fuzz::{Answer, Ask, Frame, Frames};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut frames = Frames::new(bytes, 1 << 16);
    while let Ok(Some(frame)) = frames.read() {
        if let Frame::Message(text) = frame {
            if let Ok(ask) = serde_json::from_slice::<Ask>(&text) {
                let again = serde_json::to_vec(&ask).expect("a message can be written");
                serde_json::from_slice::<Ask>(&again).expect("what was written is understood");
            }
            let _ = serde_json::from_slice::<Answer>(&text);
        }
    }
});
