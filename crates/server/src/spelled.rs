//! A card as its readers get it. One that has not changed for a while is kept packed.

use std::borrow::Cow;

use axum::body::Bytes;
use qd_broker::Card;
use qd_broker::packed::{Packed, Press};
use qd_session::operator::{Group, Urgency};

#[derive(Debug)]
pub struct Spelled {
    pub group: Group,
    pub place: (Group, Urgency, usize, u64),
    text: Text,
}

#[derive(Debug)]
enum Text {
    Plain(Bytes),
    Packed(Packed),
}

impl Spelled {
    pub fn new(card: &Card, json: Bytes) -> Self {
        let state = &card.agent_state;
        Self { group: state.group, place: state.place(), text: Text::Plain(json) }
    }

    pub fn pack(&mut self, press: &mut Press) {
        if let Text::Plain(json) = &self.text {
            self.text = Text::Packed(press.pack(json));
        }
    }

    pub fn json(&self) -> Cow<'_, [u8]> {
        match &self.text {
            Text::Plain(json) => Cow::Borrowed(json),
            Text::Packed(packed) => Cow::Owned(packed.unpack(DICTIONARY)),
        }
    }

    /// How long its JSON is.
    pub fn len(&self) -> usize {
        match &self.text {
            Text::Plain(json) => json.len(),
            Text::Packed(packed) => packed.text_len(),
        }
    }
}

/// A press for cards.
pub fn press() -> Press {
    Press::new(DICTIONARY)
}

/// A card as JSON; the most usual parts come last.
const DICTIONARY: &str = r#""forkedFrom":"sess_","policy":{"preset":"careful","from":"project","rules":1},"where":{"pid":1,"tty":"/dev/pts/","tmux":""},"icon":"","coreLabel":"","context":{"tool":"Bash"},"group":"needs_you","state":"needs_permission","state":"awaiting_input","state":"idle","label":"Waiting for you","group":"autonomous","state":"thinking","label":"Thinking","state":"acting","label":"Running","confidence":0.9,"source":"transcript","source":"registry","source":"process","rule":"its agent said that it is done","event":"process_seen","event":"turn_completed","event":"title_known","event":"place_known","contextTokens":1,"contextWindow":200000,"inputTokens":1,"outputTokens":1,"cacheCreationTokens":1,"cacheReadTokens":1,"totalTokens":1,"costUsd":0.1,"estimated":false,"canPrompt":"no hook of it waits for a prompt; write in its terminal","canInterrupt":"press Esc in its terminal: nothing reaches it from outside","canResume":"it has not ended","canStop":"no process of it is known","canYolo":"no hook of it has been heard: see `qd hooks status`","requests":[{"key":"req_","requestId":"","kind":"permission","tool":"Bash","text":"","input":{"command":"","description":""},"since":17,"way":"hook","takesWords":true,"takesChanges":true,"scopes":["once"]}],"subagents":[{"agentId":"","kind":"","activity":"ended"}]{"sessionId":"sess_","harness":"codex","harness":"opencode","harness":"gemini_cli","harness":"claude_code","vendorId":"-4000-8000-","title":"","cwd":"/home/","branch":"main","transcript":"/.claude/projects/-home--4000-8000-.jsonl","mode":"default","resumeCommand":"claude --resume ","agentState":{"group":"delivered","state":"task_complete","label":"Task complete","group":"delivered","state":"session_ended","label":"Session closed","confidence":0.99,"source":"hook","rule":"the session, or the process that held it, was seen to end","since":17,"evidence":[{"source":"hook","at":17,"event":"session_ended"}]},"monitorView":{"state":"exited"},"usage":{"model":"claude-opus-4-5"},"capabilities":{"canApprove":false,"canAnswer":false,"canPrompt":false,"canInterrupt":false,"canStop":false,"canResume":true,"canYolo":false,"canFocus":false,"canPause":false,"canRetry":false,"why":{"canAnswer":"it asks no question","canApprove":"it asks for no approval","canFocus":"it is in no tmux pane that is known","canInterrupt":"it has ended","canPause":"somebody else started it: only its own client can do that","canPrompt":"it has ended","canRetry":"somebody else started it: only its own client can do that","canStop":"it has ended","canYolo":"it has ended"}},"requests":[],"subagents":[],"driven":false,"startedAt":17,"lastSignal":17,"unrecognised":0}"#;
