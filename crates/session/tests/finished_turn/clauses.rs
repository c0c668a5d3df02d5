//! One message for each half of a rule: what it takes, and what it must leave alone.

use qd_session::finished_turn::{FinishedTurn, Sign, judge};

#[track_caller]
fn check(messages: &[(&str, &str)]) {
    for (sign, text) in messages {
        let found = judge(&FinishedTurn { last_message: Some(text), cut_off: false });
        assert_eq!(found.sign.name(), *sign, "{text}");
    }
}

#[test]
fn an_announcement_closes_the_message() {
    check(&[
        (
            "announcement",
            "The mock is in place. I'll port the second suite now. This should take a minute.",
        ),
        ("announcement", "I'll port these two now:\n\n- The first suite.\n- The second suite."),
        (
            "nothing_open",
            "Now I'll check the config.\n\nBoth files are fine:\n\n- The first one.\n- The second one.",
        ),
        ("nothing_open", "The index is rebuilt. If the load grows I'll shard it."),
    ]);
}

#[test]
fn a_list_of_steps_is_no_order() {
    check(&[
        ("nothing_open", "How it works:\n\n- Type `yes` to confirm.\n- The job starts."),
        ("nothing_open", "What it does:\n\n- It sends me a note.\n- The job starts."),
        ("order", "What is left:\n\n- Send me the token.\n- The job starts."),
    ]);
}

#[test]
fn an_order_hands_something_over() {
    check(&[
        ("order", "Tell me which one is the newer."),
        ("order", "Confirm that the tunnel is open."),
        ("order", "The upload was denied. Choose a slot for it."),
        ("nothing_open", "The upload is done. Choose a slot for it in the settings."),
        ("order", "Please share the token."),
        ("nothing_open", "Please enjoy the new colours."),
    ]);
}

#[test]
fn a_question_with_its_answer_is_not_for_the_reader() {
    check(&[
        ("question", "Delete the old table? (y/n)"),
        ("nothing_open", "Which port is free? Here is a list"),
        ("nothing_open", "Which of the two is slow?\n\nThe second one, by a wide margin."),
        ("nothing_open", "Why do you see two rows? The cache holds one of them."),
        ("nothing_open", "Do you see two rows? No, the cache holds one of them."),
        ("question", "Do you see two rows? The cache holds one of them."),
        ("question", "Is the port free? If so, the job starts."),
        ("nothing_open", "Is the port free? The job starts."),
    ]);
}

#[test]
fn a_question_in_a_list_is_its_content_unless_it_closes_the_message() {
    check(&[
        (
            "question",
            "So far:\n\n- The parser is split.\n- The tests pass. Which branch is it for?",
        ),
        ("nothing_open", "So far:\n\n- The tests pass. Which one is slow?\n- The parser is split."),
        ("nothing_open", "So far:\n\n- The parser is split.\n- Which one is slow?"),
        ("nothing_open", "So far:\n\n- The parser is split.\n- Which one is slow? The second one."),
        (
            "nothing_open",
            "So far:\n\n- The parser is split.\n- It passes. Which one is slow? The second one.",
        ),
        ("question_list", "- Are guests allowed?\n- Is it gross or net?"),
        (
            "question_list",
            "## Questions before I begin\n\nSome are about prices.\n\n- Are guests allowed?\n- Is it gross or net?",
        ),
        ("nothing_open", "Points for the wiki:\n\n- Who owns it?\n- Where is it?"),
    ]);
}

#[test]
fn a_courtesy_follows_work_and_no_obstacle() {
    check(&[
        ("offer", "The form validates now. Docs too?"),
        ("offer", "The form validates now. Want me to also cover the profile page?"),
        ("question", "Want me to also add tests?"),
        ("offer", "```rust\nfn main() {}\n```\n\nWant me to also add tests?"),
        ("question", "The upload was denied. Want me to use the other account?"),
        ("question", "The upload was denied.\n\nWant me to use the other account?"),
        (
            "offer",
            "The upload was denied.\n\nThe second one worked.\n\nWant me to write that down?",
        ),
    ]);
}

#[test]
fn a_question_for_a_pick_is_no_courtesy() {
    check(&[
        ("question", "The first one is drawn. Which colour do you want next?"),
        ("question", "Das Modul steht. Welche Datei soll ich noch umbenennen?"),
        ("offer", "The first one is drawn. Do you want another one next?"),
        ("offer", "The first one is drawn. What else would you like?"),
        ("question", "The upload was denied. Do you want another one too?"),
    ]);
}

#[test]
fn waiting_for_work_asks_nobody() {
    check(&[
        ("announcement", "I'll wait for the upload to finish, then compare the sums."),
        ("announcement", "Ich warte, bis der Import durch ist."),
        ("blocked", "I'll wait for your upload to finish, then compare the sums."),
        ("blocked", "I'll wait."),
        ("announcement", "Once the import has finished, I can compare the sums, so I'll wait."),
        ("announcement", "I have to open one more page before I can say."),
        ("blocked", "The gate must be open before I can say."),
    ]);
}

#[test]
fn what_is_due_before_the_agent_goes_on_is_an_order() {
    check(&[
        ("order", "Have a look at the numbers before I send them."),
        ("nothing_open", "The numbers were wrong before I fixed them."),
        ("announcement", "I'll compare the numbers before I send them."),
        ("order", "The box is unreachable. You'd have to press its button."),
        ("nothing_open", "The box works. You'd have to press its button twice a year."),
        ("nothing_open", "The session expired. Restart the box and it will work."),
    ]);
}

#[test]
fn a_remark_on_a_question_leaves_it_open() {
    check(&[
        ("question", "Is the blue one newer? I can't see its date."),
        ("nothing_open", "Is the blue one newer? The dates are the same."),
        ("question", "Welche ist neuer? Das Datum kann ich nicht sehen."),
        ("nothing_open", "可以恢复吗？可以，备份还在。"),
        ("question", "要恢复吗？备份还在。"),
        ("nothing_open", "पुराना क्यों हटा? जगह कम थी।"),
    ]);
}

#[test]
fn a_step_needs_no_pronoun() {
    check(&[
        ("announcement", "Renombro las columnas."),
        ("nothing_open", "Renombrado el índice."),
        ("nothing_open", "Recomiendo las columnas."),
        ("announcement", "Las renombro."),
        ("announcement", "列名を変更します。"),
        ("nothing_open", "このスクリプトは列名を変更します。"),
        ("announcement", "我从列名开始。"),
        ("nothing_open", "我从列名开始改的，都改好了。"),
        ("announcement", "Labelling the columns."),
        ("nothing_open", "Labelling the columns also labels the rows."),
        ("nothing_open", "Everything in the columns."),
        ("announcement", "Will label the columns."),
        ("announcement", "I'm labelling the columns."),
        ("nothing_open", "I'm leaving the columns as they are."),
        ("announcement", "I'll keep watching the columns."),
        ("nothing_open", "I'll keep the columns short."),
        ("announcement", "So, now the columns."),
        ("announcement", "The rows are done, the columns are next."),
    ]);
}

#[test]
fn a_sentence_without_its_end_breaks_off() {
    check(&[
        ("nothing_open", "The tests pass. The build is green for all four of them 🎉"),
        ("broken_off", "The tests pass. The flag that decides all this is `strict`"),
        ("broken_off", "It reads the config (from the home"),
        ("nothing_open", "All of it is done :)"),
        ("broken_off", "It reads the list [alpha and beta"),
        ("broken_off", "It calls `parse"),
        ("broken_off", "Both of them are done,"),
        ("broken_off", "The worker reads the"),
        ("nothing_open", "测试已经全部通过了没有问题"),
        ("broken_off", "这个测试没有通过主要是因为"),
        ("nothing_open", "因为"),
        ("nothing_open", "- The parser is split.\n- The tests pass.\n\nThe index has four columns"),
        ("nothing_open", "The tests pass. All good"),
        ("broken_off", "The tests pass. The index has four"),
        ("broken_off", "测试通过了。配置文件"),
    ]);
}

#[test]
fn what_was_cut_off_is_surer_than_what_says_nothing() {
    for sign in Sign::ALL {
        assert!((0.5..1.0).contains(&sign.confidence()), "{sign:?}");
    }
    let sure = Sign::confidence;
    assert!(sure(Sign::NoText) < sure(Sign::OpenBoxes));
    assert!(sure(Sign::OpenBoxes) < sure(Sign::NothingOpen));
    assert!(sure(Sign::NothingOpen) < sure(Sign::Question));
    assert!(sure(Sign::Question) < sure(Sign::CutOff));
}
