//! A model that we ask ourselves: the whole conversation goes to its endpoint for each answer.

use std::sync::Arc;

use qd_broker::driving::{Report, Sending, Start};
use qd_harness::native::{
    AssistantMessage, Block, Conversation, Options, Piece, ToolDefinition, Usage, request,
};
use qd_harness::usage::PriceTable;
use qd_session::id::TurnId;
use qd_session::logbook::{Called, Frozen, Message, Used};
use qd_session::machine::{HarnessTrouble, TroubleKind};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use super::instructions::instructions;
use super::workshops::Held;
use super::{LocalCrew, folder, said};
use crate::crew::{Ended, HarnessOrder};
use crate::model::{Endpoint, Heard};
use crate::teller::Teller;

/// Pieces of an answer that wait to be told. When they are full the provider is not read on.
const MODEL_PIECES_MAX: usize = 256;

pub(super) async fn run(
    crew: LocalCrew,
    start: Start,
    mut orders: mpsc::Receiver<HarnessOrder>,
    mut tell: Teller,
    stop: CancellationToken,
) -> Ended {
    let workshop = match crew.0.workshops.toolbox(&start.brief.workspace).await {
        Ok(workshop) => workshop,
        Err(why) => return Ended { code: None, why: Some(why.into()) },
    };
    for trouble in &workshop.troubles {
        tell.warn(trouble.as_str()).await;
    }
    tell.tell(Report::Ready).await;
    let harness = ModelHarness { crew, workshop, stop };
    loop {
        let order = tokio::select! {
            () = harness.stop.cancelled() => return Ended::killed(),
            order = orders.recv() => order,
        };
        match order {
            Some(HarnessOrder::Send(sending)) => {
                if let Asked::ToStop = harness.answer(*sending, &mut orders, &mut tell).await {
                    return Ended::well();
                }
            }
            Some(HarnessOrder::Stop) => return Ended::well(),
            // Of an answer that is over; a model asks nothing by itself.
            Some(
                HarnessOrder::Answer { .. }
                | HarnessOrder::Release
                | HarnessOrder::Interrupt { .. },
            ) => {}
            None => return Ended::killed(),
        }
    }
}

struct ModelHarness {
    crew: LocalCrew,
    workshop: Held,
    stop: CancellationToken,
}

/// What was asked of us meanwhile.
enum Asked {
    ToGoOn,
    ToStop,
}

impl ModelHarness {
    /// Asks the model and passes on what comes, until its answer ends or nobody wants it any more.
    async fn answer(
        &self,
        sending: Sending,
        orders: &mut mpsc::Receiver<HarnessOrder>,
        tell: &mut Teller,
    ) -> Asked {
        let turn = sending.turn.clone();
        let (endpoint, tools) = match self.endpoint(&sending) {
            Ok(endpoint) => (endpoint, self.tools()),
            Err(trouble) => {
                let (failure, used) = (None, Used::default());
                tell.tell(Report::Failed { turn, trouble, failure, used }).await;
                return Asked::ToGoOn;
            }
        };
        let options = self.options(&endpoint, &sending).await;
        let conversation = conversation(&sending.conversation);
        let request = request(endpoint.provider, &endpoint.model, &conversation, &tools, &options);
        let cancel = self.stop.child_token();
        let (hearing, mut heard) = mpsc::channel(MODEL_PIECES_MAX);
        let call = self.crew.0.line.call(&endpoint, request, turn.clone(), &cancel, &hearing);
        tokio::pin!(call);
        let mut has_ended = false;
        let mut usage = Usage::default();
        loop {
            tokio::select! {
                biased;
                Some(piece) = heard.recv() => {
                    if let Told::Last = self.pass_on(&turn, &endpoint, piece, &mut usage, tell).await {
                        return Asked::ToGoOn;
                    }
                }
                order = orders.recv() => match order {
                    Some(HarnessOrder::Interrupt { turn: of }) if of == turn => {
                        cancel.cancel();
                        return Asked::ToGoOn;
                    }
                    Some(HarnessOrder::Stop) => return Asked::ToStop,
                    Some(
                        HarnessOrder::Send(_)
                        | HarnessOrder::Answer { .. }
                        | HarnessOrder::Release
                        | HarnessOrder::Interrupt { .. },
                    ) => {}
                    None => return Asked::ToStop,
                },
                _ = &mut call, if !has_ended => has_ended = true,
                // It was canceled, and all that came before was passed on.
                else => return Asked::ToGoOn,
            }
            if has_ended && heard.is_empty() && self.stop.is_cancelled() {
                return Asked::ToGoOn;
            }
        }
    }

    /// Looked up for each answer: a key that was changed is taken at once.
    fn endpoint(&self, sending: &Sending) -> Result<Endpoint, HarnessTrouble> {
        let brief = &sending.start.brief;
        let variable = |name: &str| self.crew.variable(name);
        let models = &self.crew.settings().models;
        models.endpoint(brief.provider.as_deref(), brief.model.as_deref(), variable).map_err(
            |error| HarnessTrouble {
                trouble: TroubleKind::Auth,
                message: said(&error).into(),
                retry_after_ms: None,
            },
        )
    }

    fn tools(&self) -> Vec<ToolDefinition> {
        let definitions = self.workshop.toolbox.definitions().iter();
        let told = definitions.map(|tool| ToolDefinition {
            name: tool.name.as_str().into(),
            description: tool.description.as_str().into(),
            input_schema: tool.input_schema.clone(),
        });
        told.collect()
    }

    async fn options(&self, endpoint: &Endpoint, sending: &Sending) -> Options {
        let workspace = sending.start.brief.workspace.clone();
        let private = self.crew.settings().private.clone();
        let system = spawn_blocking(move || instructions(folder(&workspace), &private)).await;
        Options { system: system.ok().map(Into::into), ..endpoint.options.clone() }
    }

    async fn pass_on(
        &self,
        turn: &TurnId,
        endpoint: &Endpoint,
        heard: Heard,
        usage_so_far: &mut Usage,
        tell: &mut Teller,
    ) -> Told {
        let turn = turn.clone();
        let used = |usage: &Usage| used(&self.crew.settings().prices, &endpoint.model, usage);
        match heard {
            Heard::Life => tell.tell(Report::Alive { turn }).await,
            Heard::Piece(Piece::Failed(failure)) => {
                let trouble = failure.trouble();
                let failure = Some(Box::new(failure));
                let used = used(usage_so_far);
                tell.tell(Report::Failed { turn, trouble, failure, used }).await;
                return Told::Last;
            }
            Heard::Piece(Piece::End { reason, message, usage }) => {
                let (text, stop) = (message.text(), reason);
                let frozen = Some(Box::new(frozen(&message, &endpoint.model, used(&usage))));
                tell.tell(Report::Completed { turn, text, stop, frozen }).await;
                return Told::Last;
            }
            Heard::Piece(Piece::Usage(usage)) => {
                *usage_so_far = usage;
                tell.piece(&turn, Piece::Usage(usage)).await;
            }
            Heard::Piece(
                piece @ (Piece::Metadata { .. }
                | Piece::Text { .. }
                | Piece::Thinking { .. }
                | Piece::CallArguments { .. }),
            ) => tell.piece(&turn, piece).await,
        }
        Told::More
    }
}

enum Told {
    More,
    Last,
}

/// What was said, in the model's own terms. An answer of which nothing is left is passed over.
fn conversation(messages: &[Arc<Message>]) -> Conversation {
    let mut conversation = Conversation::default();
    for message in messages {
        match &**message {
            Message::Operator { outputs, text, .. } => conversation.ask(outputs, text.clone()),
            Message::Agent { text, message, .. } => {
                let kept: Option<AssistantMessage> = serde_json::from_value(message.clone()).ok();
                let in_words = || {
                    let text = text.clone()?;
                    Some(AssistantMessage { blocks: vec![Block::Text { text }] })
                };
                if let Some(answer) = kept.or_else(in_words) {
                    // One that answers nothing cannot be there: the logbook holds what was asked.
                    let _ = conversation.answer(answer);
                }
            }
        }
    }
    conversation
}

fn frozen(message: &AssistantMessage, model: &str, used: Used) -> Frozen {
    let called = message.calls().map(|call| Called {
        call_id: call.call_id.clone(),
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    });
    let calls = called.collect();
    let message = serde_json::to_value(message).expect("a message is plain data");
    Frozen { calls, message, model: Some(model.into()), used }
}

fn used(prices: &PriceTable, model: &str, usage: &Usage) -> Used {
    let tokens = &usage.tokens;
    let charge = prices.charge_of(Some(model), tokens, None);
    Used {
        input_tokens: tokens.input,
        output_tokens: tokens.output,
        cache_read_tokens: tokens.cache_read,
        cache_written_tokens: tokens.cache_write.saturating_add(tokens.cache_write_1h),
        micro_usd: (charge.dollars * 1e6) as u64,
    }
}
