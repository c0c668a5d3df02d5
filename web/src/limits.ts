/** Everything that can grow or wait, with its maximum and the reason for it. */

/** First pause before the stream is opened again: a restart of the daemon takes less than this twice. */
export const RECONNECT_MS_MIN = 500;

/** Longest pause between two attempts: an operator who started the daemon again looks at the page. */
export const RECONNECT_MS_MAX = 15_000;

/** The server says something every 15 s; three silences in a row and the line is dead. */
export const SILENCE_MS_MAX = 50_000;

/** How long the page shows old cards as they were before it says that they may be old. */
export const STALE_MS = 1_500;

/** One message of the stream. The largest is a snapshot of some thousand cards. */
export const EVENT_CHARS_MAX = 64 << 20;

/** Messages kept until the next frame; past it they are applied at once. */
export const PENDING_MAX = 4_096;

/** Between two changes of what is seen. Nobody reads faster, and a busy board leaves the machine to the agents. */
export const FLUSH_MS_MIN = 50;

/** A hidden tab gets no frames, and its title counts all the same. */
export const HIDDEN_FLUSH_MS = 250;

/** Between two looks whether something is wrong with the daemon itself. */
export const TROUBLES_EVERY_MS = 15_000;

/** A request that is no stream and has not answered is given up. */
export const REQUEST_MS_MAX = 20_000;

/** Lines of a file that are compared line by line; the cost is their product. */
export const DIFF_LINES_MAX = 400;

/** Lines that are shown around a change, as Git shows them. */
export const DIFF_CONTEXT_LINES = 3;

/** Files of a change that a card shows before it is opened. */
export const REQUEST_FILES_MAX = 4;

/** Lines of a command, file or diff that a card shows before it is opened. */
export const REQUEST_LINES_MAX = 12;

/** Characters of one piece of agent's text in the document. More is behind a button. */
export const TEXT_CHARS_MAX = 8_000;

/** Characters of an agent's markdown that are read for marks; the rest is shown as it is. */
export const MARKDOWN_CHARS_MAX = 100_000;

/** Subagents that a card lists; the rest is counted. */
export const SUBAGENTS_SHOWN_MAX = 5;

/** Entries of one page of a transcript. */
export const TRANSCRIPT_PAGE = 50;

/** Entries that a transcript keeps in the document; the oldest go and can be asked for again. */
export const TRANSCRIPT_ENTRIES_MAX = 2_000;

/** Between two looks at a session that changes all the time. */
export const SESSION_LOOK_MS = 700;

/** Between two looks at a session of our own: it changes with each step, and its page follows them. */
export const DRIVEN_LOOK_MS = 250;

/** Between two looks at a session that works: what it writes need not change its card. */
export const WORKING_LOOK_MS = 3_000;

/** After its last signal an agent has written down what it said, also on a busy machine. */
export const LAST_WORDS_MS = 30_000;

/** Runs on a timeline, the newest. */
export const RUNS_SHOWN_MAX = 300;

/** Sessions of one page of History. */
export const HISTORY_PAGE = 50;

/** After the last key in the search box. */
export const SEARCH_PAUSE_MS = 200;

/** Sessions whose time in each group is plotted; each costs a request. */
export const SPANS_SESSIONS_MAX = 20;

/** Lines of the palette. */
export const PALETTE_LINES_MAX = 50;

/** How long a notice stays; one that can be undone, so that there is time to. */
export const NOTICE_MS = 5_000;
export const UNDO_MS = 15_000;

/** Silence after which a session of which nothing lives is offered for History. */
export const OLD_MS = 24 * 60 * 60 * 1_000;

/** Sessions with something typed that was not sent. Past it the oldest text goes. */
export const DRAFTS_MAX = 24;

/** Characters of one text that is being typed. The server takes no longer prompt. */
export const DRAFT_CHARS_MAX = 32_000;

/** Texts of one session whose requests were answered elsewhere; the newest. */
export const LEFTOVERS_MAX = 4;

/** Answers that the page remembers having given; each is small. */
export const ATTEMPTS_MAX = 500;

/** A request can be allowed so long after the whole of it was on the screen: a press may be meant for the one before. */
export const READ_MS_MIN = 700;

/** Requests that the page remembers having been read. */
export const READINGS_MAX = 500;

/** After the page moved on by itself a key does nothing for so long: it was meant for the card before. */
export const KEY_PAUSE_MS = 500;

/** Between two words that somebody looks at this tab. The server waits for a little more than two. */
export const PRESENCE_BEAT_MS = 30_000;

/** After the last key or movement nobody is taken to be there. */
export const ATTENTION_MS = 120_000;

/** "Stop it?" goes back to "Stop" when nobody says yes. */
export const STOP_ASK_MS = 6_000;

/** A piece of an answer that is missing is waited for so long; then the answer goes on without it. */
export const GAP_MS_MAX = 5_000;

/** Pieces that wait for one that is missing. */
export const PIECES_HELD_MAX = 256;

/** Characters of an answer that is still coming; the whole is there when it is complete. */
export const ANSWER_CHARS_MAX = 200_000;

/** Messages of a driven session's conversation that are asked for at first, and more at each press. */
export const MESSAGES_PAGE = 50;

/** Steps of a driven session's conversation in the document; the oldest go. */
export const STEPS_MAX = 2_000;

/** Events of driven sessions kept until the next frame; past it they are taken in at once. */
export const AGENT_EVENTS_MAX = 2_048;

/** Of pieces of answers that nobody has opened yet: some long answers. */
export const RECENT_CHARS_MAX = 1 << 20;

/** Answers whose thoughts are kept for a reader who wants to unfold them. */
export const THOUGHTS_MAX = 20;

/** Folders that the dialog for a new session knows. */
export const FOLDERS_MAX = 30;
