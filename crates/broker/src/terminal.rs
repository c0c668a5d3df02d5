//! Where a process shows itself: its terminal, the tmux pane it sits in, the program that draws it.

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terminal {
    /// `/dev/pts/3`.
    pub tty: Option<String>,
    pub tmux: Option<Pane>,
    /// As it calls itself: `vscode`, `iTerm.app`.
    pub program: Option<String>,
}

/// A pane of tmux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pane {
    /// The server's socket.
    pub socket: String,
    /// `%3`.
    pub id: String,
    /// `work:2.1`, where the server told.
    pub name: Option<String>,
}
