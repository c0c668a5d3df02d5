//! Which client holds which chat of a project. Pure: by when they began and were written.

use qd_session::moment::Timestamp;

/// When a chat began and was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub began: Timestamp,
    pub changed: Timestamp,
}

/// How a client began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    pub at: Timestamp,
    /// It was asked to go on with an old chat.
    pub resumes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// By the client with this index.
    Held(usize),
    /// By nobody now: the client with this index began it, and has gone over to another chat.
    LeftBy(usize),
    Nobodys,
    Unclear,
}

/// Who holds which chat, given how each client began. Chats come with the client that is already
/// known to hold them.
pub fn assign(chats: &[(Span, Option<usize>)], clients: &[Begin]) -> Vec<Verdict> {
    let may_have_begun = |client: Begin, chat: Span| chat.began.plus_ms(SLACK_MS) >= client.at;
    // A client that begins may put a title on the last chat of its project, and leave it alone.
    let may_hold = |client: Begin, chat: Span| {
        may_have_begun(client, chat)
            || match client.resumes {
                true => chat.changed.plus_ms(SLACK_MS) >= client.at,
                false => chat.changed >= client.at.plus_ms(TITLES_MS),
            }
    };
    let mut verdicts: Vec<Verdict> = chats
        .iter()
        .map(|(span, _)| match clients.iter().any(|client| may_hold(*client, *span)) {
            true => Verdict::Unclear,
            false => Verdict::Nobodys,
        })
        .collect();
    if let [client] = clients {
        // It writes one chat at a time.
        let its = (0..chats.len()).filter(|chat| may_hold(*client, chats[*chat].0));
        let newest = its.max_by_key(|chat| (chats[*chat].0.changed, chats[*chat].0.began));
        verdicts.fill(Verdict::Nobodys);
        let Some(newest) = newest else { return verdicts };
        // Over ACP it begins a chat of its own before the one that it is asked for. On a busy machine
        // both are there at the first look, and the first is its own all the same.
        let next = chats[newest].0.began.plus_ms(SLACK_MS);
        let is_left = |chat: Span| may_have_begun(*client, chat) && chat.changed <= next;
        for (verdict, (chat, _)) in verdicts.iter_mut().zip(chats) {
            if is_left(*chat) {
                *verdict = Verdict::LeftBy(0);
            }
        }
        verdicts[newest] = Verdict::Held(0);
        return verdicts;
    }
    let mut free: Vec<usize> = (0..clients.len()).collect();
    for (verdict, (_, holder)) in verdicts.iter_mut().zip(chats) {
        if let Some(holder) = holder {
            *verdict = Verdict::Held(*holder);
            free.retain(|client| client != holder);
        }
    }
    let open = |verdicts: &[Verdict]| -> Vec<usize> {
        (0..chats.len()).filter(|chat| verdicts[*chat] == Verdict::Unclear).collect()
    };
    // A client begins a chat soon after it began itself: the last to begin has the last chat.
    let any_began =
        |chat: &usize| free.iter().any(|at| may_have_begun(clients[*at], chats[*chat].0));
    let mut fresh: Vec<usize> = open(&verdicts).into_iter().filter(any_began).collect();
    if fresh.len() <= free.len() {
        fresh.sort_by_key(|chat| std::cmp::Reverse(chats[*chat].0.began));
        for chat in fresh {
            let may = free.iter().filter(|at| may_have_begun(clients[**at], chats[chat].0));
            if let Some(client) = may.max_by_key(|at| clients[**at].at).copied() {
                verdicts[chat] = Verdict::Held(client);
                free.retain(|at| *at != client);
            }
        }
    }
    // One client is left, and one chat that it can have resumed.
    if let ([chat], [client]) = (open(&verdicts).as_slice(), free.as_slice())
        && may_hold(clients[*client], chats[*chat].0)
    {
        verdicts[*chat] = Verdict::Held(*client);
    }
    verdicts
}

/// Process times are right to a second, file times to a tick of the clock.
pub const SLACK_MS: u64 = 2_000;

/// How long a client may be busy with the titles of old chats after it began.
const TITLES_MS: u64 = 60_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(began_s: u64, changed_s: u64) -> (Span, Option<usize>) {
        let at = |s: u64| Timestamp(s * 1_000);
        (Span { began: at(began_s), changed: at(changed_s) }, None)
    }

    fn held(began_s: u64, changed_s: u64, by: usize) -> (Span, Option<usize>) {
        (chat(began_s, changed_s).0, Some(by))
    }

    #[track_caller]
    fn check(chats: &[(Span, Option<usize>)], clients_s: &[u64], expected: &str) {
        let begin = |s: &u64| Begin { at: Timestamp(s * 1_000), resumes: false };
        let clients: Vec<Begin> = clients_s.iter().map(begin).collect();
        let verdicts = assign(chats, &clients);
        let words: Vec<String> = verdicts
            .iter()
            .map(|verdict| match verdict {
                Verdict::Held(by) => by.to_string(),
                Verdict::LeftBy(by) => format!("<{by}"),
                Verdict::Nobodys => "-".to_owned(),
                Verdict::Unclear => "?".to_owned(),
            })
            .collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn without_a_client_every_chat_is_nobodys() {
        check(&[chat(10, 20), chat(30, 40)], &[], "- -");
    }

    #[test]
    fn the_only_client_has_the_newest_chat_that_was_written_since_it_began() {
        check(&[chat(101, 150)], &[100], "0");
        // One it resumed, and one it left.
        check(&[chat(10, 190), chat(101, 120)], &[100], "0 -");
        // One it only gave a title.
        check(&[chat(10, 103)], &[100], "-");
        let resumes = Begin { at: Timestamp(100_000), resumes: true };
        assert_eq!(assign(&[chat(10, 103)], &[resumes]), [Verdict::Held(0)]);
        check(&[held(101, 120, 0), chat(140, 150)], &[100], "<0 0");
        // Both are there when somebody first looks; one that changed later is another's.
        check(&[chat(101, 101), chat(102, 150)], &[100], "<0 0");
        check(&[chat(101, 140), chat(102, 150)], &[100], "- 0");
        // It has not begun to write.
        check(&[chat(10, 50)], &[100], "-");
        // The clock of processes is coarse.
        check(&[chat(99, 99)], &[100], "0");
    }

    #[test]
    fn of_several_clients_the_last_to_begin_has_the_last_chat() {
        check(&[chat(101, 300), chat(201, 300)], &[100, 200], "0 1");
        check(&[chat(201, 300), chat(101, 300)], &[200, 100], "0 1");
        // Begun within the slack.
        check(&[chat(101, 300), chat(103, 300)], &[100, 102], "0 1");
        // The first has resumed an old one.
        check(&[chat(10, 300), chat(201, 300)], &[100, 200], "0 1");
        // The other has not written yet.
        check(&[chat(10, 50), chat(201, 300)], &[100, 200], "- 1");
    }

    #[test]
    fn what_may_be_either_ones_is_unclear() {
        // Who of them has begun a second chat?
        check(&[chat(101, 300), chat(201, 300), chat(250, 300)], &[100, 200], "? ? ?");
        check(&[held(101, 300, 0), held(201, 300, 1), chat(250, 300)], &[100, 200], "0 1 ?");
        // Two have resumed two.
        check(&[chat(10, 300), chat(20, 300)], &[100, 200], "? ?");
        check(&[held(10, 300, 1), chat(20, 300)], &[100, 200], "1 0");
    }
}
