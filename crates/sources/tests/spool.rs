//! The spool as the daemon reads it: in order, exactly once, whatever else lies there.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use qd_hook_wire::FrameId;
use qd_sources::Error;
use qd_sources::hook_intake::spool::BATCH_FRAMES_MAX;
use qd_sources::hook_intake::spool::{ASIDE_FILES_MAX, BATCH_BYTES_MAX};
use qd_sources::hook_intake::{Admission, Batch, KnownIds, Losses, Spool};

/// All frames of these tests are younger; a part is stale then.
const MUCH_LATER_MS: u64 = 1 << 50;

struct Folder {
    path: PathBuf,
}

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("qd-spool-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self { path }
    }

    fn spool(&self) -> Spool {
        Spool::open(&self.path).expect("the spool opens")
    }

    fn put(&self, id: u128, ending: &str, bytes: &[u8]) {
        let name = format!("{id:032x}-{}.{ending}", bytes.len());
        fs::write(self.path.join(name), bytes).expect("written");
    }

    /// What is left, without the folder for what was no frame.
    fn left(&self) -> usize {
        fs::read_dir(&self.path).expect("a folder").count() - 1
    }

    fn aside(&self) -> usize {
        fs::read_dir(self.path.join("aside")).expect("a folder").count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn frame(id: u128, payload: &[u8]) -> Vec<u8> {
    let sum = payload.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let len = payload.len();
    let header =
        format!("qd1 send id={id:032x} at=1 seq=0 harness=codex sum={sum:016x} len={len}\n");
    [header.as_bytes(), payload].concat()
}

fn ids(batch: &Batch) -> Vec<u128> {
    batch.frames.iter().map(|frame| frame.id.0).collect()
}

#[test]
fn frames_come_oldest_first_and_go_when_settled() {
    let folder = Folder::new();
    for id in [3, 1] {
        folder.put(id, "frame", &frame(id, b"{}"));
    }
    // Older forwarders name no session.
    let newer = format!("{:032x}-{}-{:016x}.frame", 2, 99, 7);
    fs::write(folder.path.join(newer), frame(2, b"{}")).expect("written");
    let (spool, mut known) = (folder.spool(), KnownIds::default());
    let batch = spool.next_batch(0, &mut known).expect("read");
    assert_eq!(ids(&batch), [1, 2, 3]);
    assert_eq!(folder.left(), 3, "until the journal has them");
    assert!(spool.next_batch(0, &mut known).expect("read").frames.is_empty(), "they are in flight");
    spool.settle(batch, &mut known).expect("settled");
    assert_eq!(folder.left(), 0);
    assert_eq!(known.admit(FrameId(2)), Admission::Taken);
}

#[test]
fn a_batch_that_the_journal_refused_comes_again() {
    let folder = Folder::new();
    folder.put(1, "frame", &frame(1, b"{}"));
    let (spool, mut known) = (folder.spool(), KnownIds::default());
    let batch = spool.next_batch(0, &mut known).expect("read");
    spool.abandon(batch, &mut known);
    assert_eq!(ids(&spool.next_batch(0, &mut known).expect("read")), [1]);
}

#[test]
fn a_daemon_that_died_before_it_removed_the_files_does_not_take_them_twice() {
    let folder = Folder::new();
    for id in [1, 2] {
        folder.put(id, "frame", &frame(id, b"{}"));
    }
    let (spool, mut known) = (folder.spool(), KnownIds::restored([FrameId(1)]));
    assert_eq!(ids(&spool.next_batch(0, &mut known).expect("read")), [2]);
    assert_eq!(folder.left(), 1, "the one the journal has is gone");
}

#[test]
fn a_copy_of_a_frame_in_flight_stays_until_its_fate_is_known() {
    let folder = Folder::new();
    folder.put(1, "frame", &frame(1, b"{}"));
    let (spool, mut known) = (folder.spool(), KnownIds::default());
    assert_eq!(known.admit(FrameId(1)), Admission::New);
    assert!(spool.next_batch(0, &mut known).expect("read").frames.is_empty());
    assert_eq!(folder.left(), 1);
    known.settle(FrameId(1));
    assert!(spool.next_batch(0, &mut known).expect("read").frames.is_empty());
    assert_eq!(folder.left(), 0);
}

#[test]
fn batches_are_bounded_by_number_and_by_bytes() {
    let folder = Folder::new();
    let many = BATCH_FRAMES_MAX as u128 + 5;
    for id in 0..many {
        folder.put(id, "frame", &frame(id, b""));
    }
    let payload = vec![b'x'; 1 << 20];
    for id in many..many + 6 {
        folder.put(id, "frame", &frame(id, &payload));
    }
    let (spool, mut known) = (folder.spool(), KnownIds::default());
    let mut sizes = Vec::new();
    loop {
        let batch = spool.next_batch(0, &mut known).expect("read");
        if batch.frames.is_empty() {
            break;
        }
        sizes.push(batch.frames.len());
        spool.settle(batch, &mut known).expect("settled");
    }
    let by_bytes = BATCH_BYTES_MAX / payload.len();
    assert_eq!(sizes, [BATCH_FRAMES_MAX, 5 + by_bytes, 6 - by_bytes]);
}

#[test]
fn what_is_no_frame_is_set_aside_and_the_rest_is_read() {
    let folder = Folder::new();
    let whole = frame(1, b"{\"a\":1}");
    folder.put(1, "frame", &whole);
    folder.put(2, "frame", b"");
    folder.put(3, "frame", &frame(3, b"{}")[..40]);
    folder.put(4, "frame", &vec![0; 5_000]);
    folder.put(5, "frame", &[frame(5, b"{}"), b"x".to_vec()].concat());
    folder.put(6, "frame", &frame(7, b"{}"));
    let mut damaged = frame(8, b"{\"a\":1}");
    *damaged.last_mut().expect("bytes") = 0;
    folder.put(8, "frame", &damaged);
    let (spool, mut known) = (folder.spool(), KnownIds::default());
    let batch = spool.next_batch(0, &mut known).expect("read");
    assert_eq!(ids(&batch), [1]);
    let why: Vec<String> = batch.set_aside.iter().map(|aside| aside.why.to_string()).collect();
    let expected = [
        Error::FrameHalf { bytes: 0 },
        Error::FrameHalf { bytes: 40 },
        Error::HeaderTooLong,
        Error::FrameFollowed,
        Error::FrameMisnamed,
        Error::PayloadDamaged,
    ];
    assert_eq!(why, expected.map(|error| error.to_string()));
    assert_eq!((folder.left(), folder.aside()), (1, 6));
}

#[test]
fn links_pipes_and_folders_are_neither_followed_nor_waited_for() {
    let folder = Folder::new();
    let elsewhere = Folder::new();
    elsewhere.put(1, "frame", &frame(1, b"{}"));
    let target = elsewhere.path.join(format!("{:032x}-{}.frame", 1, frame(1, b"{}").len()));
    let place = |id: u128| folder.path.join(format!("{id:032x}-1.frame"));
    symlink(&target, place(1)).expect("a link");
    fs::create_dir(place(2)).expect("a folder");
    let made = std::process::Command::new("mkfifo").arg(place(3)).status().expect("mkfifo runs");
    assert!(made.success(), "a pipe");
    let (spool, mut known) = (folder.spool(), KnownIds::default());
    let batch = spool.next_batch(0, &mut known).expect("read");
    assert!(batch.frames.is_empty());
    assert_eq!((batch.set_aside.len(), folder.left(), folder.aside()), (3, 0, 3));
    assert!(target.exists(), "the link was moved, not what it points to");
}

#[test]
fn a_part_is_left_alone_until_its_writer_must_be_gone() {
    let folder = Folder::new();
    folder.put(1, "part", &frame(1, b"{}"));
    folder.put(2, "part", &frame(2, b"{}")[..50]);
    File::create(folder.path.join("a file of somebody else")).expect("a file");
    let (spool, mut known) = (folder.spool(), KnownIds::default());
    let batch = spool.next_batch(9_999, &mut known).expect("read");
    assert_eq!((batch.frames.len(), batch.set_aside.len(), folder.left()), (0, 0, 3));
    let batch = spool.next_batch(MUCH_LATER_MS, &mut known).expect("read");
    assert_eq!(ids(&batch), [1], "written whole, only not renamed");
    assert_eq!(batch.set_aside.len(), 1);
    spool.settle(batch, &mut known).expect("settled");
    assert_eq!((folder.left(), folder.aside()), (1, 1));
}

#[test]
fn only_so_much_is_kept_aside_and_what_goes_is_counted() {
    let folder = Folder::new();
    for id in 0..ASIDE_FILES_MAX as u128 + 3 {
        folder.put(id, "frame", b"no");
    }
    let (spool, mut known) = (folder.spool(), KnownIds::default());
    let batch = spool.next_batch(0, &mut known).expect("read");
    assert_eq!((batch.set_aside.len(), batch.aside_dropped), (ASIDE_FILES_MAX + 3, 3));
    assert_eq!(folder.aside(), ASIDE_FILES_MAX);
    assert!(!folder.path.join(format!("aside/{:032x}-2.frame", 2)).exists(), "the oldest went");
}

#[test]
fn losses_are_counted_by_their_reason() {
    let folder = Folder::new();
    assert_eq!(folder.spool().losses().expect("read"), Losses::default());
    fs::write(folder.path.join("lost"), "ffwfss").expect("written");
    let losses = Losses { superseded: 2, full: 3, unwritable: 1 };
    assert_eq!(folder.spool().losses().expect("read"), losses);
}

#[test]
fn the_folder_is_ours_alone_and_no_link() {
    let folder = Folder::new();
    fs::set_permissions(&folder.path, Permissions::from_mode(0o777)).expect("lax");
    drop(folder.spool());
    let rights = fs::metadata(&folder.path).expect("there").permissions().mode() & 0o777;
    assert_eq!(rights, 0o700);
    let link = folder.path.join("link");
    symlink(std::env::temp_dir(), &link).expect("a link");
    assert!(matches!(Spool::open(&link), Err(Error::Spool { doing: "open", .. })));
}
