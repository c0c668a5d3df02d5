//! Session files that grow while the daemon is killed: the board is that of one that watched all
//! the while.

use std::fs::{self, OpenOptions};
use std::io::Write;

use qd_session::moment::Timestamp;
use serde_json::Value;

use crate::dice::Dice;
use crate::recorded::{Story, dated};
use crate::reference::until_same;
use crate::world::{Place, World, now, until};

const KILLS: usize = 12;

/// Between two lines of all files.
const LINE_MS: u64 = 10;

#[test]
fn session_files_that_grew_meanwhile_give_the_same_board() {
    let mut dice = Dice::cast();
    let world = World::new();
    let (killed, steady) = (world.place("k"), world.place("s"));
    let mut stories = Story::transcripts("claude-code", "claude-code");
    dice.shuffle(&mut stories);
    stories.truncate(16);
    let watching = steady.serve();
    let projects = world.home().join(".claude/projects/-w");
    fs::create_dir_all(&projects).expect("a folder");
    let mut lines: Vec<(usize, &str)> = Vec::new();
    let longest = stories.iter().map(|story| story.lines.len()).max().unwrap_or_default();
    for turn in 0..longest {
        for (nth, story) in stories.iter().enumerate() {
            lines.extend(story.lines.get(turn).map(|line| (nth, line.as_str())));
        }
    }
    // Every line has a time of its own, as in real files; the last one was written just now.
    let begin = now().0 - LINE_MS * lines.len() as u64;
    let lines: Vec<(usize, String)> = (1..)
        .zip(lines)
        .map(|(turn, (nth, line))| (nth, dated(line, Timestamp(begin + LINE_MS * turn)) + "\n"))
        .collect();
    let share = lines.len().div_ceil(KILLS);
    for lines in lines.chunks(share) {
        let mut daemon = killed.start();
        if dice.below(3) > 0 {
            daemon.wait_until_it_listens();
        }
        let life = dice.below(lines.len());
        let append = |(nth, line): &(usize, String)| {
            let path = projects.join(format!("{nth:08x}-0000-4000-8000-000000000000.jsonl"));
            let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a file");
            // In two pieces: half a line waits for its end.
            let (half, rest) = line.as_bytes().split_at(line.len() / 2);
            file.write_all(half).and_then(|()| file.write_all(rest)).expect("written");
        };
        lines[..life].iter().for_each(append);
        daemon.kill();
        lines[life..].iter().for_each(append);
    }
    let daemon = killed.serve();
    until("it has read all", || has_caught_up(&killed) && killed.board().len() == stories.len());
    until_same(|| (undated(killed.board()), undated(steady.board())));
    daemon.stop();
    watching.stop();
}

fn has_caught_up(place: &Place) -> bool {
    place.get("/api/health").is_some_and(|health| health["caughtUp"] == true)
}

/// Some lines have no time, the one at a session's end among them: it is dated when it is read.
fn undated(mut board: Vec<Value>) -> Vec<Value> {
    for card in &mut board {
        card["agentState"].as_object_mut().expect("a state").remove("since");
    }
    board
}
