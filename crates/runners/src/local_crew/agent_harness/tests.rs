//! Orders and reports of one agent, without its process: the test takes and refuses its orders.

use qd_harness::driver::Report as Driven;
use qd_session::id::SessionId;
use qd_session::logbook::Brief;
use qd_session::machine::{HarnessAnswer, ToolCall};

use super::*;
use crate::agents::Told;

struct Bench {
    agent: AgentHarness,
    orders: mpsc::Receiver<Order>,
    reports: mpsc::Receiver<(SessionId, Report)>,
}

impl Bench {
    fn new() -> Self {
        let (ordering, orders) = mpsc::channel(8);
        let (sender, reports) = mpsc::channel(64);
        let stop = CancellationToken::new();
        let tell = Teller::new("sess_1".into(), sender);
        let process = Process::WholeSession;
        let agent = AgentHarness::new(Harness::Acp, Mode::Ask, tell, ordering, process, stop);
        Self { agent, orders, reports }
    }

    /// One that has come up.
    async fn ready() -> Self {
        let mut bench = Self::new();
        bench.hears(Driven::Ready).await;
        assert_eq!(bench.told(), ["Ready"]);
        bench
    }

    async fn hears(&mut self, report: Driven) {
        self.agent.hear(Told::Report(report)).await;
    }

    async fn completes(&mut self) {
        self.hears(Driven::Completed { text: None, cut_off: false }).await;
    }

    async fn sends(&mut self, turn: &str, text: Option<&str>, again: Option<&str>) {
        self.sends_as(1, turn, text, again).await;
    }

    async fn sends_as(&mut self, attempt: u8, turn: &str, text: Option<&str>, again: Option<&str>) {
        let brief = Brief {
            workspace: "/w".into(),
            model: None,
            provider: None,
            preset: Preset::Careful,
            is_chat: false,
            prompt: None,
        };
        let preset = Preset::Careful;
        let start = Start { harness: Harness::Acp, brief, preset, is_held: false, vendor_id: None };
        let (text, again) = (text.map(Into::into), again.map(Into::into));
        let turn = TurnId::new(turn);
        let sending = Sending { turn, attempt, start, text, again, conversation: Vec::new() };
        self.agent.order(HarnessOrder::Send(Box::new(sending))).await;
    }

    async fn interrupts(&mut self, turn: &str) {
        self.agent.order(HarnessOrder::Interrupt { turn: TurnId::new(turn) }).await;
    }

    /// The next order, which the agent answers so.
    async fn takes(&mut self, answer: Result<(), Cannot>) -> String {
        let Ok(Order { command, taken }) = self.orders.try_recv() else { return String::new() };
        taken.send(answer).expect("somebody wants to know");
        let settled = self.agent.unsettled.next().await.expect("an order is out");
        self.agent.settled(settled).await;
        let named = format!("{command:?}").to_lowercase();
        if let Command::Prompt { text } = command { format!("prompt {text}") } else { named }
    }

    fn told(&mut self) -> Vec<String> {
        let told = std::iter::from_fn(|| self.reports.try_recv().ok());
        told.map(|(_, report)| spelled(&report)).collect()
    }
}

fn spelled(report: &Report) -> String {
    if let Report::Completed { turn, .. } = report {
        format!("{turn} is over")
    } else if let Report::Failed { turn, trouble, .. } = report {
        format!("{turn} failed: {}", trouble.message)
    } else if let Report::ApprovalAsked { turn, call } = report {
        format!("{turn} asks for {}", call.name)
    } else if let Report::Withdrawn { turn, .. } = report {
        format!("{turn} asks no more")
    } else if let Report::Trouble { error } = report {
        error.message.to_string()
    } else if let Report::Alive { turn } = report {
        format!("{turn} lives")
    } else {
        format!("{report:?}")
    }
}

const TAKEN: Result<(), Cannot> = Ok(());

#[tokio::test]
async fn what_it_was_told_is_not_said_again() {
    let mut bench = Bench::ready().await;
    bench.sends("a", Some("make it"), None).await;
    assert_eq!(bench.takes(TAKEN).await, "prompt make it");
    let trouble = TroubleKind::Passing;
    let trouble = HarnessTrouble { trouble, message: "overloaded".into(), retry_after_ms: None };
    bench.hears(Driven::Failed(trouble)).await;
    assert_eq!(bench.told(), ["a failed: overloaded"]);
    bench.sends("b", None, Some("make it")).await;
    assert_eq!(bench.takes(TAKEN).await, "retry");
}

#[tokio::test]
async fn one_that_was_started_anew_is_told_again_unless_it_had_begun() {
    let mut bench = Bench::ready().await;
    bench.sends("b", None, Some("make it")).await;
    assert_eq!(bench.takes(TAKEN).await, "prompt make it");
    let mut bench = Bench::ready().await;
    bench.sends("b", None, None).await;
    assert_eq!(bench.takes(TAKEN).await, "retry");
}

#[tokio::test]
async fn a_prompt_waits_for_the_end_of_the_turn_before() {
    let mut bench = Bench::ready().await;
    bench.sends("a", Some("make it"), None).await;
    bench.takes(TAKEN).await;
    bench.sends("b", Some("something else"), None).await;
    assert_eq!(bench.takes(TAKEN).await, "interrupt");
    assert_eq!(bench.takes(TAKEN).await, "", "not before the turn is over");
    bench.hears(Driven::Alive).await;
    bench.completes().await;
    assert_eq!(bench.told(), ["a lives", "a is over"]);
    assert_eq!(bench.takes(TAKEN).await, "prompt something else");
    bench.completes().await;
    assert_eq!(bench.told(), ["b is over"]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_does_not_wait_for_ever() {
    let mut bench = Bench::ready().await;
    bench.sends("a", Some("make it"), None).await;
    bench.takes(TAKEN).await;
    bench.interrupts("a").await;
    assert_eq!(bench.takes(TAKEN).await, "interrupt");
    bench.sends("b", Some("something else"), None).await;
    assert_eq!(bench.takes(TAKEN).await, "", "it was told to give up already");
    until(bench.agent.next_by).await;
    bench.agent.give_up_next().await;
    let why = "b failed: the agent did not take the prompt: it is still at its turn before";
    assert_eq!(bench.told(), [why]);
    bench.completes().await;
    assert_eq!(bench.takes(TAKEN).await, "", "nobody waits for it any more");
}

#[tokio::test]
async fn one_that_was_given_up_too_soon_works_on_in_the_new_try() {
    let mut bench = Bench::ready().await;
    bench.sends("a", Some("make it"), None).await;
    bench.takes(TAKEN).await;
    bench.sends_as(2, "b", None, Some("make it")).await;
    assert_eq!(bench.takes(TAKEN).await, "", "it is at it");
    bench.hears(Driven::Alive).await;
    assert_eq!(bench.told(), ["b lives"]);
    // Whoever asks for it by hand does not believe so.
    bench.sends("c", None, Some("make it")).await;
    assert_eq!(bench.takes(TAKEN).await, "interrupt");
    bench.completes().await;
    assert_eq!(bench.told(), ["b is over"]);
    assert_eq!(bench.takes(TAKEN).await, "retry");
}

#[tokio::test]
async fn one_that_works_by_itself_takes_the_prompt_afterwards() {
    let mut bench = Bench::ready().await;
    bench.sends("a", Some("make it"), None).await;
    assert_eq!(bench.takes(Err(Cannot::Busy)).await, "prompt make it");
    bench.completes().await;
    assert_eq!(bench.told(), [""; 0], "that was no turn of ours");
    assert_eq!(bench.takes(TAKEN).await, "prompt make it");
    bench.completes().await;
    assert_eq!(bench.told(), ["a is over"]);
}

#[tokio::test]
async fn an_end_that_was_under_way_does_not_end_the_new_turn() {
    let mut bench = Bench::ready().await;
    bench.sends("a", Some("make it"), None).await;
    bench.completes().await;
    assert_eq!(bench.takes(TAKEN).await, "prompt make it");
    assert_eq!(bench.told(), [""; 0]);
    bench.completes().await;
    assert_eq!(bench.told(), ["a is over"]);
}

#[tokio::test]
async fn a_refused_prompt_has_no_turn() {
    let mut bench = Bench::ready().await;
    bench.sends("a", Some("make it"), None).await;
    bench.takes(Err(Cannot::NotOffered("no words"))).await;
    assert_eq!(bench.told(), ["a failed: the agent did not take the prompt: no words"]);
    bench.sends("b", Some("again"), None).await;
    assert_eq!(bench.takes(TAKEN).await, "prompt again");
}

#[tokio::test]
async fn an_interrupt_before_it_is_up_ends_the_turn() {
    let mut bench = Bench::new();
    bench.sends("a", Some("make it"), None).await;
    bench.interrupts("a").await;
    assert_eq!(bench.told(), ["a is over"]);
    bench.hears(Driven::Ready).await;
    assert_eq!(bench.takes(TAKEN).await, "", "nothing is asked of it");
    bench.sends("b", Some("something else"), None).await;
    assert_eq!(bench.takes(TAKEN).await, "prompt something else");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_leaves_the_request_open() {
    let mut bench = Bench::ready().await;
    bench.sends("a", Some("make it"), None).await;
    bench.takes(TAKEN).await;
    let arguments = serde_json::json!({});
    let (call_id, name) = (CallId::new("c"), "bash".into());
    let call = ToolCall { call_id: call_id.clone(), name, arguments, mutating: true };
    bench.hears(Driven::ApprovalAsked(call)).await;
    assert_eq!(bench.told(), ["a asks for bash"]);
    let answer = HarnessAnswer::Approved { mode: None };
    let order = HarnessOrder::Answer { call: call_id.clone(), answer: answer.clone() };
    bench.agent.order(order.clone()).await;
    bench.takes(Err(Cannot::NotOffered("no such option"))).await;
    assert_eq!(bench.told(), ["the answer was not taken: no such option", "a asks for bash"]);
    bench.agent.order(order).await;
    bench.takes(Err(Cannot::NotAsked)).await;
    let gone = "the answer was not taken: it asks for nothing under that call any more";
    assert_eq!(bench.told(), [gone, "a asks no more"]);
}
