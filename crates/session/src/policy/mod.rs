//! What an agent may do without asking, what it may never do, and what a person decides.
//!
//! Pure. The operator's rules come in three layers, the session's before the project's before the
//! global ones. A rule that denies holds wherever it stands. Otherwise the first layer with a rule
//! for the request decides, by the first such rule in it; where no layer has one, the preset does.
//! What a repository says is put on top and can only tighten.
//!
//! Invariant: no part of a policy that is not understood ever widens what is allowed, and no rule
//! of a repository does.

mod budget;
mod call;
mod command;
mod file;
mod place;
mod rule;
mod shell;
mod side_effect;
mod tightening;
mod tool_kind;

use serde::{Deserialize, Serialize};

pub use self::budget::{Amounts, Budget, Exceeded, Measure, Span, Spent, Sum};
use self::call::Call;
pub use self::file::Trouble;
use self::place::{is_protected, lies_in, meets};
use self::rule::Fit;
pub use self::rule::{Effect, Rule};
pub use self::tightening::Tightening;
pub use self::tool_kind::{TOOLS, ToolKind, is_plan};
use crate::limits::POLICY_COMMAND_BYTES_MAX;
use crate::pattern::Glob;

/// All that an operator has laid down.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    global: Layer,
    /// The most specific first.
    projects: Vec<Project>,
    home: String,
    /// Settings of ours and of agents: no preset but yolo lets anybody read or write them.
    private: Vec<String>,
}

#[derive(Debug, Clone)]
struct Project {
    spelled: String,
    path: Glob,
    layer: Layer,
}

/// Rules of one reach: a session's, a project's or all.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    pub preset: Option<Preset>,
    pub rules: Vec<Rule>,
    pub budget: Budget,
    /// Whether sessions that nobody sits at wait for the operator.
    pub wait_headless: Option<bool>,
    /// Something in it was not understood that may have been there to forbid.
    pub is_broken: bool,
}

/// What happens where no rule says anything, from the strictest on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Preset {
    /// Everything is asked.
    #[default]
    Manual,
    /// Reading inside the workspace is allowed.
    Careful,
    /// And so is writing there.
    AutoEdit,
    /// Everything is allowed that no rule denies.
    Yolo,
}

/// What an agent wants to do, as its request tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked<'a> {
    /// In its client's words; empty if the client does not tell.
    pub tool: &'a str,
    /// JSON as the client sent it.
    pub input: Option<&'a str>,
    pub cwd: Option<&'a str>,
    /// Where links lead the files that it names, if that is elsewhere; none among them where
    /// nobody can say. They count as if they were named, too.
    pub led_to: &'a [Option<String>],
    /// Something of the input was too long and has not been seen: it may be anything.
    pub is_cut: bool,
}

/// What the policy says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub effect: Effect,
    /// The rule or the preset that gave it: always there unless it is to be asked.
    pub rule: Option<String>,
    /// Whose rule it is.
    pub origin: Option<Origin>,
    /// A sentence for the operator.
    pub why: String,
    /// What a denied agent is told.
    pub message: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Origin {
    Session,
    Project,
    Global,
    Repository,
    Preset,
}

/// The policy as it holds for one session.
#[derive(Debug, Clone)]
pub struct Effective<'a> {
    /// The most specific first.
    layers: Vec<(Origin, &'a Layer)>,
    repository: &'a Tightening,
    home: &'a str,
    private: &'a [String],
}

impl Policy {
    /// What holds for a session that works in `cwd`.
    pub fn effective<'a>(
        &'a self,
        cwd: Option<&str>,
        session: &'a Layer,
        repository: &'a Tightening,
    ) -> Effective<'a> {
        let cwd = cwd.and_then(|cwd| place::resolved(cwd, None));
        let here = |project: &&Project| cwd.as_ref().is_some_and(|cwd| project.path.has(cwd));
        let projects = self.projects.iter().filter(here);
        let mut layers = vec![(Origin::Session, session)];
        layers.extend(projects.map(|project| (Origin::Project, &project.layer)));
        layers.push((Origin::Global, &self.global));
        Effective { layers, repository, home: &self.home, private: &self.private }
    }

    /// With folders and files, by absolute paths, that decide what agents may do.
    pub fn with_private(self, private: Vec<String>) -> Self {
        Self { private, ..self }
    }

    /// The files that a request names, by their letters: for whoever looks where links lead them.
    pub fn named(&self, asked: &Asked<'_>) -> Vec<String> {
        Call::of(asked, &self.home).paths.into_iter().flatten().collect()
    }

    /// How many rules hold, all layers together.
    pub fn rules_len(&self) -> usize {
        let of_projects = self.projects.iter().map(|project| project.layer.rules.len());
        self.global.rules.len() + of_projects.sum::<usize>()
    }

    /// Projects with a policy of their own, as they are written.
    pub fn projects(&self) -> impl Iterator<Item = &str> {
        self.projects.iter().map(|project| project.spelled.as_str())
    }
}

impl<'a> Effective<'a> {
    pub fn judge(&self, asked: &Asked<'_>) -> Verdict {
        let call = Call::of(asked, self.home);
        if call.kind == ToolKind::Question {
            return Verdict::ask("questions and plans are yours");
        }
        let denial = self.denial(&call);
        if let Some((Fit::Yes, origin, rule)) = denial {
            return Verdict::by(origin, rule);
        }
        let verdict = self.by_layers(&call);
        if verdict.effect != Effect::Allow {
            return verdict;
        }
        if let Some((_, origin, rule)) = denial {
            let why = format!("it cannot be ruled out that `{}` denies it", rule.name);
            return Verdict { origin: Some(origin), ..Verdict::ask(why) };
        }
        if self.layers.iter().any(|(_, layer)| layer.is_broken) || self.repository.is_broken {
            return Verdict::ask("a part of the policy cannot be understood: see `qd doctor`");
        }
        let tightens = |rule: &&Rule| rule.effect == Effect::Ask && rule.fit(&call) > Fit::No;
        match self.repository.rules.iter().find(tightens) {
            Some(rule) => Verdict::by(Origin::Repository, rule),
            None => verdict,
        }
    }

    /// The same for an agent that would do it without asking anybody: where a rule may deny what has
    /// not been seen, it does.
    pub fn judge_unasked(&self, asked: &Asked<'_>) -> Verdict {
        let verdict = self.judge(asked);
        // A longer command line is not taken apart.
        let is_long = asked.input.is_some_and(|input| input.len() > POLICY_COMMAND_BYTES_MAX);
        if !(asked.is_cut || is_long) || verdict.effect == Effect::Deny {
            return verdict;
        }
        match self.denial(&Call::of(asked, self.home)) {
            Some((_, origin, rule)) => Verdict {
                effect: Effect::Deny,
                message: Some(format!(
                    "This call is too long to be checked against the rule `{}`. Do it in smaller \
                     steps.",
                    rule.name
                )),
                ..Verdict::by(origin, rule)
            },
            None => verdict,
        }
    }

    /// The rule that denies a call, or else the first of which that cannot be ruled out.
    fn denial(&self, call: &Call<'_>) -> Option<(Fit, Origin, &'a Rule)> {
        let mut doubt = None;
        for (origin, rule) in self.rules().filter(|(_, rule)| rule.effect == Effect::Deny) {
            match rule.fit(call) {
                Fit::Yes => return Some((Fit::Yes, origin, rule)),
                Fit::Perhaps => doubt = doubt.or(Some((Fit::Perhaps, origin, rule))),
                Fit::No => {}
            }
        }
        doubt
    }

    /// The preset that holds, which a repository may have lowered.
    pub fn mode(&self) -> Preset {
        self.preset().0
    }

    /// Whose preset that is; none where nobody set one.
    pub fn mode_origin(&self) -> Option<Origin> {
        let (_, at) = self.preset();
        self.layers.get(at).map(|(origin, _)| *origin)
    }

    /// A file of the project says that no session may run without asking.
    pub fn is_yolo_forbidden(&self) -> bool {
        self.repository.is_yolo_forbidden
    }

    pub fn budget(&self) -> Budget {
        let budgets = self.layers.iter().map(|(_, layer)| layer.budget);
        budgets.fold(Budget::default(), Budget::or)
    }

    /// Whether sessions here that nobody sits at wait for the operator. Only a project says so.
    pub fn waits_headless(&self) -> bool {
        self.layers.iter().find_map(|(_, layer)| layer.wait_headless).unwrap_or(false)
    }

    /// All rules in the order they are tried, the repository's last.
    pub fn rules(&self) -> impl Iterator<Item = (Origin, &'a Rule)> {
        let ours = self
            .layers
            .iter()
            .flat_map(|&(origin, layer)| layer.rules.iter().map(move |rule| (origin, rule)));
        ours.chain(self.repository.rules.iter().map(|rule| (Origin::Repository, rule)))
    }

    /// And how far in front the layer is that sets it; without one, behind them all.
    fn preset(&self) -> (Preset, usize) {
        let set = self.layers.iter().enumerate();
        let set = set.filter_map(|(at, (_, layer))| Some((layer.preset?, at)));
        let (preset, at) = set.min_by_key(|(_, at)| *at).unwrap_or((Preset::Manual, usize::MAX));
        let most = self.repository.preset.unwrap_or(Preset::Yolo);
        let allowed =
            if self.repository.is_yolo_forbidden { Preset::Careful } else { Preset::Yolo };
        let preset = preset.min(most);
        (if preset == Preset::Yolo { allowed } else { preset }, at)
    }

    fn by_layers(&self, call: &Call<'_>) -> Verdict {
        let (preset, set_at) = self.preset();
        for (at, (origin, layer)) in self.layers.iter().enumerate() {
            let Some(rule) = layer
                .rules
                .iter()
                .find(|rule| rule.effect != Effect::Deny && rule.fit(call) > Fit::No)
            else {
                continue;
            };
            // A preset of a nearer layer covers what lies behind it.
            let is_covered = at > set_at
                && match preset {
                    Preset::Manual => rule.effect == Effect::Allow,
                    Preset::Yolo => rule.effect == Effect::Ask,
                    Preset::Careful | Preset::AutoEdit => false,
                };
            if is_covered {
                break;
            }
            if self.repository.is_yolo_forbidden && rule.is_blanket() {
                return Verdict::ask("the project forbids to allow everything");
            }
            return Verdict::by(*origin, rule);
        }
        by_preset(preset, call, self.private)
    }
}

fn by_preset(preset: Preset, call: &Call<'_>, private: &[String]) -> Verdict {
    let is_inside = |path: &Option<String>| {
        let folder = call.workspace.as_deref();
        path.as_deref().zip(folder).is_some_and(|(path, folder)| lies_in(path, folder))
    };
    let lies_inside = !call.paths.is_empty() && call.paths.iter().all(is_inside);
    let is_protected = call.paths.iter().flatten().any(|path| {
        let folder = call.workspace.as_deref().unwrap_or_default();
        is_protected(path.strip_prefix(folder).unwrap_or(path))
    });
    let is_private = call.paths.iter().flatten().any(|path| meets(path, private));
    let (is_look, is_edit) = match call.kind {
        ToolKind::Read | ToolKind::Search => (true, false),
        ToolKind::Edit => (false, true),
        ToolKind::Run | ToolKind::Fetch | ToolKind::Question | ToolKind::Other => (false, false),
    };
    let allows = match preset {
        Preset::Manual => false,
        // Of what was cut, a path that nobody has seen is among the others.
        Preset::Careful => is_look && lies_inside && !is_private,
        Preset::AutoEdit => (is_look || is_edit && !is_protected) && lies_inside && !is_private,
        Preset::Yolo => !call.tool.is_empty(),
    };
    let name = format!("preset {}", preset.name());
    let doubt =
        call.script.as_ref().and_then(|script| script.doubt.or_else(|| command::excess(script)));
    match allows {
        false if call.is_cut => Verdict::ask("a part of it is too long to be judged"),
        false => Verdict::ask(match doubt {
            Some(doubt) => format!("no rule allows it, because {doubt}"),
            None => format!("no rule allows it, nor does the {name}"),
        }),
        true => Verdict {
            effect: Effect::Allow,
            why: format!("the {name} allows it"),
            rule: Some(name),
            origin: Some(Origin::Preset),
            message: None,
        },
    }
}

impl Verdict {
    fn ask(why: impl Into<String>) -> Self {
        let (rule, origin, message) = (None, None, None);
        Self { effect: Effect::Ask, rule, origin, why: why.into(), message }
    }

    fn by(origin: Origin, rule: &Rule) -> Self {
        let whose = match origin {
            Origin::Session => "the session's",
            Origin::Project => "the project's",
            Origin::Global | Origin::Preset => "the global",
            Origin::Repository => "the repository's",
        };
        Self {
            effect: rule.effect,
            rule: Some(rule.name.clone()),
            origin: Some(origin),
            why: format!("{whose} rule `{}`", rule.name),
            message: rule.message.clone(),
        }
    }
}

impl Preset {
    pub const ALL: [Self; 4] = [Self::Manual, Self::Careful, Self::AutoEdit, Self::Yolo];

    pub fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Careful => "careful",
            Self::AutoEdit => "auto-edit",
            Self::Yolo => "yolo",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }
}

impl Layer {
    /// A session that the operator gave a preset.
    pub fn with_preset(preset: Preset) -> Self {
        Self { preset: Some(preset), ..Self::default() }
    }
}
