//! The messages of Codex's app-server that we know, each by its name.
//!
//! From the schema that Codex 0.169.0 writes of itself (`codex app-server generate-json-schema
//! --experimental`). What is in neither list is counted as not understood, so that a new kind of
//! message never passes in silence; `cargo xtask clients --latest` says which those are.

/// Notifications that say something about what an agent does.
pub const READ: [&str; 19] = [
    "thread/status/changed",
    "turn/started",
    "turn/completed",
    "item/started",
    "item/completed",
    "error",
    "serverRequest/resolved",
    "thread/tokenUsage/updated",
    "thread/goal/updated",
    "thread/goal/cleared",
    "thread/settings/updated",
    "thread/name/updated",
    "thread/compacted",
    "thread/closed",
    "thread/archived",
    "thread/deleted",
    "hook/completed",
    "thread/started",
    "account/rateLimits/updated",
];

/// Notifications that say nothing about that.
pub const PASSED_OVER: [&str; 67] = [
    "account/gatewayOAuth/changed",
    "account/login/completed",
    "account/updated",
    "app/list/updated",
    "autoApprovalReview/strictReviewRequired",
    "command/exec/outputDelta",
    "configWarning",
    "deprecationNotice",
    "externalAgentConfig/import/completed",
    "externalAgentConfig/import/progress",
    "fs/changed",
    "fuzzyFileSearch/sessionCompleted",
    "fuzzyFileSearch/sessionUpdated",
    "guardianWarning",
    "hook/started",
    "item/agentMessage/delta",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "mcpServer/event/stream/notification",
    "mcpServer/oauthLogin/completed",
    "mcpServer/startupStatus/updated",
    "model/rerouted",
    "model/safetyBuffering/updated",
    "model/verification",
    "modelProvider/authRecoveryCompleted",
    "modelProvider/authRecoveryStarted",
    "process/exited",
    "process/outputDelta",
    "project/changed",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/attachment/updated",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "thread/prediction/updated",
    "thread/project/updated",
    "thread/queue/changed",
    "thread/readState/changed",
    "thread/realtime/closed",
    "thread/realtime/error",
    "thread/realtime/item/completed",
    "thread/realtime/item/started",
    "thread/realtime/item/transcript/delta",
    "thread/realtime/itemAdded",
    "thread/realtime/outputAudio/delta",
    "thread/realtime/sdp",
    "thread/realtime/started",
    "thread/realtime/transcript/delta",
    "thread/realtime/transcript/done",
    "thread/reverted",
    "thread/section/changed",
    "thread/unarchived",
    "turn/diff/updated",
    "turn/moderationMetadata",
    "turn/plan/updated",
    "warning",
    "windows/worldWritableWarning",
    "windowsSandbox/setupCompleted",
];

/// What the server asks its clients. A person answers the first ones; see `server_request`.
pub const REQUESTS: [&str; 11] = [
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/permissions/requestApproval",
    "item/tool/requestUserInput",
    "mcpServer/elicitation/request",
    "execCommandApproval",
    "applyPatchApproval",
    "item/tool/call",
    "account/chatgptAuthTokens/refresh",
    "attestation/generate",
    "currentTime/read",
];

/// Names of older versions, and of a raw stream that nobody asks for by default.
const FORMER: [&str; 2] = ["rawResponseItem/completed", "sessionConfigured"];

/// Whether a notification is one of those that say nothing about what an agent does.
pub fn is_passed_over(method: &str) -> bool {
    PASSED_OVER.contains(&method) || FORMER.contains(&method)
}

pub fn is_known(method: &str) -> bool {
    READ.contains(&method) || REQUESTS.contains(&method) || is_passed_over(method)
}
