//! How an agent lets its client choose the model: as one of its settings, or by a request of its own
//! in the protocol's older draft. Whether it has the model it says itself.

use serde_json::Value;

use super::reply;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelChoice<'a> {
    pub current: Option<&'a str>,
    way: Way<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way<'a> {
    /// The setting's id.
    Setting(&'a str),
    Request,
}

impl<'a> ModelChoice<'a> {
    /// What stands in the answer that opened a session.
    pub fn offered(opened: &'a Value) -> Option<Self> {
        let settings = opened["configOptions"].as_array().into_iter().flatten();
        let setting = settings.filter(|setting| is_model(setting)).find_map(|setting| {
            let way = Way::Setting(setting["id"].as_str()?);
            Some(Self { current: setting["currentValue"].as_str(), way })
        });
        let models = opened.get("models").filter(|models| models.is_object());
        let request = models
            .map(|models| Self { current: models["currentModelId"].as_str(), way: Way::Request });
        setting.or(request)
    }

    pub fn set(&self, id: u64, session: &str, model: &str) -> String {
        match self.way {
            Way::Setting(setting) => reply::set_option(id, session, setting, model),
            Way::Request => reply::set_model(id, session, model),
        }
    }
}

fn is_model(setting: &Value) -> bool {
    setting["category"].as_str().or(setting["id"].as_str()) == Some("model")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(opened: Value, current: Option<&str>, method: &str, params: Value) {
        let choice = ModelChoice::offered(&opened).expect("a choice");
        assert_eq!(choice.current, current);
        let line: Value = serde_json::from_str(&choice.set(7, "s", "opus")).expect("a message");
        assert_eq!((&line["method"], &line["params"]), (&json!(method), &params));
    }

    #[test]
    fn a_setting_is_set_and_an_older_agent_is_asked() {
        let mode = json!({"id": "mode", "category": "mode", "currentValue": "default"});
        let model = json!({"id": "m1", "category": "model", "currentValue": "default"});
        let models = json!({"availableModels": [], "currentModelId": "auto"});
        check(
            json!({"configOptions": [mode, model], "models": models}),
            Some("default"),
            "session/set_config_option",
            json!({"sessionId": "s", "configId": "m1", "value": "opus"}),
        );
        check(
            json!({"models": models}),
            Some("auto"),
            "session/set_model",
            json!({"sessionId": "s", "modelId": "opus"}),
        );
    }

    #[test]
    fn an_agent_may_offer_no_choice() {
        for opened in [json!({}), json!({"models": null, "configOptions": null})] {
            assert_eq!(ModelChoice::offered(&opened), None);
        }
    }
}
