//! What a policy would do, tried on what agents asked for.

use crate::world::World;

#[test]
fn a_policy_is_tried_on_the_past_beside_the_daemon() {
    let world = World::new();
    let _daemon = world.daemon();
    world.agent_starts("s-1");
    world.agent_asks("s-1");
    let none = world.run(&["policy", "test"]).expect(0);
    assert!(none.out.contains("ask        1×  Bash  rm -rf build"), "{none:?}");
    assert!(none.out.contains("0 would be allowed, 0 denied, 1 asked again"), "{none:?}");
    let rule = "[[rule]]\nname = \"no rm\"\neffect = \"deny\"\ncommand = \"rm *\"\n";
    let file = world.write("try.toml", rule);
    let tried = world.run(&["policy", "test", &file.to_string_lossy(), "--json"]).expect(0).json();
    let request = &tried["requests"][0];
    assert_eq!((&request["effect"], &request["rule"]), (&"deny".into(), &"no rm".into()));
    assert_eq!((&request["count"], &request["tool"]), (&1.into(), &"Bash".into()));
    world.write(
        "home/acme/.quarterdeck/policy.toml",
        "[[rule]]\neffect = \"ask\"\nkind = \"run\"\n",
    );
    world.write("home/.config/quarterdeck/policy.toml", "preset = \"yolo\"\n");
    let tightened = world.run(&["policy", "test", "--json"]).expect(0).json();
    assert_eq!(tightened["requests"][0]["origin"], "repository");
}

#[test]
fn what_cannot_be_tried_is_an_error() {
    let world = World::new();
    let outcome = world.run(&["policy", "test"]).expect(1);
    assert!(outcome.err.contains("no journal yet"), "{outcome:?}");
    let outcome = world.run(&["policy", "test", "missing.toml"]).expect(1);
    assert!(outcome.err.contains("missing.toml is not there"), "{outcome:?}");
    assert!(!world.state().exists(), "looking changes nothing");
}

#[test]
fn the_policy_of_a_folder_is_shown() {
    let world = World::new();
    world.write("home/acme/.gemini/settings.json", r#"{"security":{"disableYoloMode":true}}"#);
    let text = "preset = \"yolo\"\n[[rule]]\nname = \"no pushing\"\neffect = \"deny\"\n\
                command = \"git push *\"\n[project.\"~/acme\"]\nwait_headless = true\n";
    world.write("home/.config/quarterdeck/policy.toml", text);
    let folder = world.path("home/acme");
    let shown = world.run(&["policy", "show", &folder.to_string_lossy()]).expect(0);
    for part in ["preset   careful", "forbids yolo", "deny     no pushing (global)", "wait for you"]
    {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    let json = world.run(&["policy", "show", &folder.to_string_lossy(), "--json"]).expect(0).json();
    assert_eq!((&json["preset"], &json["yoloForbidden"]), (&"careful".into(), &true.into()));
    world.write("home/.config/quarterdeck/policy.toml", "[[rules]]\neffect = \"deny\"\n");
    let told = world.run(&["policy", "show", &folder.to_string_lossy()]).expect(0);
    assert!(told.err.contains("policy.toml, rules: it is none of"), "{told:?}");
    let doctor = world.run(&["doctor"]).expect(1);
    assert!(doctor.out.contains("BAD    policy"), "{doctor:?}");
}
