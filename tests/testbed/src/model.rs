//! A scripted model on a loopback port: all four wires at once, on a thread of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::error::{Doing, Error, Result};
use crate::limits::{CONNECTIONS_MAX, WAIT_MAX};
use crate::request_log::{Answer, Delivery, Request};
use crate::script::Script;
use crate::serving::{Stage, serve};

/// Lives as long as this value; dropping it closes every connection.
#[derive(Debug)]
pub struct Model {
    address: SocketAddr,
    stage: Arc<Stage>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Model {
    pub fn start(script: Script) -> Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .doing("listen on loopback for the model")?;
        listener.set_nonblocking(true).doing("listen without blocking")?;
        let address = listener.local_addr().doing("read the model's port")?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .doing("start the model's runtime")?;
        let stage = Arc::new(Stage::new(script));
        let (stop, stopped) = oneshot::channel();
        let served = Arc::clone(&stage);
        let thread = std::thread::Builder::new()
            .name("model".into())
            .spawn(move || runtime.block_on(accept(listener, served, stopped)))
            .doing("start the model's thread")?;
        Ok(Self { address, stage, stop: Some(stop), thread: Some(thread) })
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Adds replies to what is left of the script, and takes over how it ends.
    pub fn then(&self, later: Script) {
        self.stage.append(later);
    }

    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.stage.log.read(|log| log.requests().to_vec())
    }

    /// The hosts a client tried to reach; each attempt was refused.
    pub fn outbound(&self) -> Vec<String> {
        let requests = self.requests();
        let outbound = requests.iter().filter(|request| request.answer == Answer::Outbound);
        outbound.map(|request| request.path.clone()).collect()
    }

    /// Waits for a request, past or future, that is as wanted; the first such one is returned.
    pub fn wait_for_request(
        &self,
        what: &str,
        wanted: impl Fn(&Request) -> bool,
    ) -> Result<Arc<Request>> {
        let find = |log: &crate::request_log::RequestLog| {
            log.requests().iter().find(|request| wanted(request)).cloned()
        };
        self.stage.log.wait(WAIT_MAX, find).ok_or_else(|| Error::TimedOut {
            what: what.to_owned(),
            waited: WAIT_MAX,
            seen: self.stage.log.read(|log| log.summary()),
        })
    }

    /// Waits until the script's answer with this number (from 0) has been sent whole.
    pub fn wait_for_answer(&self, number: usize) -> Result<Arc<Request>> {
        self.wait_for_request(&format!("answer {number} of the script"), |request| {
            request.answer == Answer::Scripted(number) && request.delivery == Delivery::Sent
        })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed; the test that caused it fails by itself.
            let _ = thread.join();
        }
    }
}

async fn accept(
    listener: std::net::TcpListener,
    stage: Arc<Stage>,
    mut stopped: oneshot::Receiver<()>,
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("testbed: the model cannot listen: {error}");
            return;
        }
    };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&stage)));
                }
                // The peer was gone before we looked, or we are out of descriptors: others
                // may fare better, and closing connections gives descriptors back.
                Err(error) => {
                    eprintln!("testbed: the model cannot accept: {error}");
                    connections.join_next().await;
                }
            },
        }
    }
}
