//! The words that carry the signs, per language, as tables.
//!
//! Pure data. Phrases are short and general: a grammatical form or a fixed expression, never a
//! sentence. The notation is that of [`Sentence::says`](super::sentence::Sentence::says).

/// The agent says that it cannot go on, or waits for its reader.
pub const BLOCKED: &[&str] = &[
    // English
    "i'm blocked", "i am blocked", "^blocked on", "blocked on your", "blocked until you", "i'm stuck",
    "i can't .. until", "i cannot .. until", "and can't .. until", "i can't .. without", "i cannot .. without",
    "and can't .. without", "i .. until you", "i .. until you've", "i .. until you're", "i'll .. until you",
    "i've .. until you", "i'm .. until you", "i'll hold", "without your", "until i have", "until i hear",
    "can't continue", "can't proceed", "can't go on", "can't go any further", "cannot continue",
    "cannot proceed", "waiting for your", "waiting for you", "waiting on you", "waiting on your",
    "awaiting your", "wait for your", "waiting for approval", "waiting for confirmation", "awaiting approval",
    "awaiting confirmation", "pending your", "holding off until", "paused until", "stopped until",
    "on hold until", "i'll wait", "needs your approval", "needs your confirmation",
    "needs your decision", "needs your input", "i need you", "requires your approval", "depends on your",
    "before i can", "only you can", "want your call", "need your call", "make the call",
    // German
    "nicht weiter", "warte auf dein*", "warte auf ihr*", "warte auf die freigabe", "bin blockiert",
    "erst weiter", "bevor ich weiter*", "erst .. wenn du", "erst .. wenn sie",
    // French
    "j'attends votre", "j'attends ta", "j'attends ton", "j'attends que", "en attente de votre",
    "en attente de ta", "je suis bloqué*", "ne peux pas continuer", "ne peux pas avancer",
    "ne peux pas aller plus loin", "avant de continuer", "tant que vous", "tant que tu", "sans votre accord",
    "sans ton accord",
    // Spanish
    "hasta que me", "hasta que tú", "hasta que usted", "hasta tener", "no puedo continuar", "no puedo seguir",
    "no puedo avanzar", "espero tu", "espero su", "a la espera de", "estoy bloquead*", "quedo a la espera",
    "antes de seguir", "antes de continuar",
    // Portuguese
    "não consigo continuar", "não posso continuar", "não consigo avançar", "não posso prosseguir", "aguardo",
    "aguardando sua", "aguardando seu", "estou bloquead*", "até que você", "até você", "sem o seu", "sem a sua",
    // Italian
    "non posso continuare", "non posso procedere", "non riesco ad andare avanti", "sono bloccat*", "attendo",
    "aspetto la tua", "aspetto il tuo", "in attesa di una tua", "in attesa della tua", "finché non",
    "prima di procedere", "prima di continuare",
    // Russian
    "не могу продолжить", "не могу продолжать", "жду ваш*", "жду тво*", "жду подтвержден*", "ожидаю",
    "без подтверждения", "без вашего", "без вашей", "без твоего", "пока вы не", "пока не",
    // Dutch
    "kan niet verder", "kom niet verder", "wacht op je", "wacht op jouw", "wacht op uw", "totdat je",
    // Japanese
    "進められません", "続行できません", "先に進めません", "お待ちしています", "お待ちしております", "待ちです", "いただくまで", "いただけるまで",
    // Chinese
    "才能继续", "无法继续", "不能继续", "等待您", "等待你", "等您", "等你", "我才能", "才可以继续", "卡在",
    // Korean
    "진행할 수 없", "계속할 수 없", "기다리고 있", "기다리겠", "대기하고", "해 주셔야", "주셔야",
    // Hindi
    "आगे बढ़ने से पहले", "आगे नहीं बढ़", "इंतज़ार", "के बिना",
    "i'm waiting for a decision", "i'm waiting for an answer", "i'm waiting for a reply",
    "waiting for a go-ahead", "waiting for a yes", "rather wait for you", "waiting on a decision",
    "until i know", "depends on which", "bis ich weiß", "hasta saber", "até saber",
    // Polish
    "nie mogę kontynuować", "nie mogę iść dalej", "czekam na tw*", "czekam na potwierdzenie", "zanim zacznę",
    "dopóki nie",
    // Turkish
    "devam edemiyorum", "ilerleyemiyorum", "onayını bekliyorum", "onayınızı bekliyorum", "yanıtını bekliyorum",
    "yanıtınızı bekliyorum", "cevabını bekliyorum", "cevabınızı bekliyorum",
];

/// A wait that ends with work of a machine, not with an answer of the reader.
pub const WORK_ENDS: &[&str] = &[
    "finish", "finishes", "finished", "to complete", "completes", "completed", "is done", "are done",
    "it's done", "they're done", "is ready", "are ready", "comes back", "come back", "comes up", "the build",
    "the ci", "ci run", "the pipeline", "the deploy*", "the tests", "the test run", "the test suite",
    "the suite", "the job", "the jobs", "the agents", "the subagents", "subagent*", "the download",
    "the upload", "the export", "the import", "the rollout", "the benchmark", "the background", "timeout",
    "to start", "to settle", "to return", "fertig", "durch ist", "durchgelaufen", "durchläuft",
    "abgeschlossen", "beendet", "der build", "fini", "finis", "finie", "finies", "terminé*", "la fin",
    "se termine", "se terminent", "aboutit", "termine", "terminen", "termina", "terminan", "acabe", "acaben",
    "acaba", "acaban", "finalice", "finalicen", "finaliza", "terminar", "terminarem", "acabar", "acabarem",
    "concluir", "finalizar", "finisca", "finiscano", "finisce", "finiscono", "termini",
    "sia finit*", "siano finit*", "окончани*", "завершени*", "завершит*", "закончит*", "закончат*",
    "завершат*", "дособер*", "klaar is", "klaar zijn", "afgerond", "終わる", "終わり", "終わっ", "完了", "終了", "解放",
    "完成", "结束", "跑完", "构建", "释放", "끝나", "끝날", "완료", "풀릴", "पूरा", "पूरे", "पूरी", "खत्म", "लॉक",
];

/// Then the wait does hang on the reader.
pub const READER_ENDS: &[&str] = &[
    "once you", "once you've", "until you", "until you've", "when you", "when you've", "after you",
    "after you've", "as soon as you", "as soon as you've", "if you", "for you", "for your", "on you",
    "on your", "your", "sobald du", "wenn du", "bis du", "dein*", "sobald sie mir", "wenn sie mir",
    "dès que vous", "dès que tu", "quand vous", "quand tu", "que vous", "que tu", "votre", "hasta que me",
    "cuando me", "en cuanto me", "tu", "você", "sua", "seu", "tua", "tuo", "вы", "ваш*", "тво*", "zodra je",
    "totdat je", "als je", "jouw", "uw", "您", "你", "주시", "주셔", "आप",
    "puedo terminar", "puedo acabar", "puedo finalizar", "posso terminar", "posso concluir", "posso finalizar",
];

/// The agent waits.
pub const WAITING: &[&str] = &[
    "wait", "waiting", "hold", "warte", "j'attends", "espero", "esperar", "aguardo", "attendo", "aspetto",
    "жду", "ожидаю", "дождусь", "подожду", "wacht", "待", "等", "기다", "대기", "इंतज़ार",
];

/// Work of the agent itself, for which nobody is waited.
pub const OWN_STEPS: &[&str] = &[
    "i need to", "i have to", "i want to", "i'll", "let me", "i'm going to", "i must", "i should",
];

/// The last word is left to the reader. Counts only where the agent comes to its end: further up
/// it says so of matters that it has then settled.
pub const LEFT_TO_READER: &[&str] = &[
    "your call", "your decision", "up to you", "your choice", "yours to decide", "over to you",
    "deine entscheidung", "ihre entscheidung", "du entscheidest", "à vous de", "à toi de", "tú decides",
    "usted decide", "você decide", "decidi tu", "решать вам", "aan jou", "由您决定", "由你决定", "ご判断",
    "your turn", "your move", "ball is in your", "du bist dran", "sie sind dran", "à vous de jouer",
    "à toi de jouer", "te toca", "le toca", "sua vez", "tocca a te", "ваш ход", "твой ход", "jouw beurt",
    "轮到你", "轮到您", "あなたの番",
];

/// The reader has had that last word, and the agent goes by it.
pub const DECIDED: &[&str] = &[
    "using your", "used your", "by your", "with your choice", "with your call", "with your decision", "per your",
    "following your", "followed your", "based on your", "thanks for your", "kept your", "your choice of",
    "your decision to",
];

/// A halt that is over, or is none.
pub const NOT_BLOCKED: &[&str] = &[
    "nothing needs", "not blocked", "no longer", "nothing is", "was waiting", "was still waiting",
    "were waiting", "was blocked", "nicht mehr", "nothing blocked",
];

/// The agent names something that it needs from its reader.
pub const NEEDS: &[&str] = &[
    "i need", "i'd need", "i would need", "i'll need", "i will need", "i still need", "i require",
    "i need to know", "i have to know", "i'm missing", "i am missing", "i lack", "need a decision",
    "need more information", "not enough information", "what i need", "i want your", "i'd like your",
    "i'd like you to", "i want you to", "need from you", "input from you", "need confirmation", "need approval",
    "ich brauche", "ich bräuchte", "brauche ich", "bräuchte ich", "ich benötige", "benötige ich", "mir fehlt",
    "mir fehlen", "fehlt mir", "fehlen mir", "muss ich .. wissen", "müsste ich .. wissen", "ich muss .. wissen",
    "j'ai besoin", "j'aurais besoin", "il me faut", "il me faudrait", "il me manque", "me manque", "necesito",
    "necesitaría", "me falta", "me faltan", "me hace falta", "preciso", "precisaria", "falta-me", "mi serve",
    "mi servono", "mi servirebbe", "ho bisogno", "avrei bisogno", "mi manca", "mi mancano", "мне нужн*",
    "мне необходим*", "нужен доступ", "нужно ваше", "нужна ваша", "не хватает", "мне понадоб*",
    "требуется ваш*", "ik heb .. nodig", "heb ik .. nodig", "ik mis nog", "が必要です", "必要があります", "必要になります", "を頂け",
    "をいただけ", "需要您", "需要你", "我需要", "还缺", "还需要您", "还需要你", "需要先确认", "需要确认", "필요합니다", "필요해요", "있어야", "알아야", "चाहिए",
    "ज़रूरत है", "जरूरत है", "आवश्यकता है",
    "^need your", "^need the", "^needs your", "need an answer", "needs a decision", "need a yes",
    "question is whether", "question is which", "question is how", "question is who", "question remains",
    "still undecided", "has to be decided", "needs to be decided", "can't work out", "couldn't work out",
    "can't figure out", "can't determine", "can't derive", "which i don't have", "that i don't have",
    "i don't have access", "i don't have permission", "i don't have the rights", "i don't have credentials",
    "i only get", "i'd like a", "i'd like some", "i'd like to be", "i'd like to hear", "i'd like to know",
    "i'd like to discuss", "i'd rather discuss", "i'd rather ask", "i'd rather talk", "discuss first",
    "i'd appreciate", "can't decide .. for you", "isn't mine to", "not mine to", "not my call",
    "hätte ich gern", "ich hätte gern", "möchte ich .. von dir", "wüsste ich gern",
    "j'aimerais votre", "j'aimerais ton", "j'aimerais savoir", "de votre part", "de ta part",
    "me haría falta", "me gustaría saber", "de tu parte", "de su parte", "gostaria de saber", "da sua parte",
    "vorrei sapere", "da parte tua", "нужен пароль", "нужно знать", "хотел бы узнать", "с вашей стороны",
    "ik wil graag weten", "van jou nodig", "van je nodig",
    "wait* .. from you", "missing .. from you", "required from you", "i'd like .. from you",
    "just .. from you", "brauche .. von dir", "brauche .. von ihnen", "fehlt .. von dir", "нужно от вас",
    "нужен от вас", "нужна от вас",
    "decision for you", "decision is yours", "for you to decide", "i don't know it", "i don't have it",
    "i don't have one", "i haven't got it",
    "i don't know whether", "i don't know if", "i don't know which", "i don't know what", "i don't know how",
    "i'm not sure whether", "i'm not sure which", "i'm unsure", "not clear to me", "unclear to me",
    "mir ist unklar", "mir ist nicht klar", "ich weiß nicht , ob", "ich weiß nicht , welche*",
    "je ne sais pas si", "je ne sais pas quel*", "no sé si", "no sé cuál", "no sé qué", "não sei se",
    "não sei qual", "non so se", "non so quale", "не знаю , нужно", "не знаю , как*", "мне непонятно",
    "мне неясно", "ik weet niet of", "ik weet niet welke",
    // Polish
    "potrzebuję", "potrzebny mi", "potrzebna mi", "potrzebne mi", "brakuje mi", "nie mam dostępu",
    "nie mam uprawnień", "muszę wiedzieć", "nie wiem , czy", "nie wiem , któr*",
    // Turkish
    "ihtiyacım var", "bilmem gerek*", "erişimim yok", "iznim yok", "yetkim yok", "emin değilim",
    "which i .. don't have", "需要 .. 我这里没有", "需要 .. 我没有",
];

/// Turns a need into the agent's own work: "I need to redo this".
pub const OWN_WORK: &[&str] = &[
    "i need to", "i'll need to", "i will need to", "i still need to", "i'd need to", "i would need to",
    "necesito *ar", "preciso *ar",
];

/// After "I need to": then it is still something the reader has to give.
pub const NEEDS_TO_LEARN: &[&str] = &[
    "need to know", "need to hear", "need to understand", "need to see", "need to confirm", "need to ask",
    "need to have", "need to be told", "need to get", "need to decide", "need to clarify",
    "need to check with you", "need .. from you", "necesito saber", "preciso saber", "need to be able",
];

/// "That's all I need" and the like.
pub const NEEDS_NOTHING: &[&str] = &[
    "all i need", "have .. i need", "do i need", "everything i need", "don't need", "do not need",
    "no longer need", "didn't need", "no need", "doesn't need", "i needed", "nothing from you", "nicht mehr",
    "ich brauche nicht*", "brauche nichts", "plus besoin", "pas besoin", "ya no necesito", "no necesito",
    "não preciso", "non ho bisogno", "不需要", "無需", "无需", "필요하지", "필요 없", "必要はありません", "必要ありません",
    "so i *ed", "so i left", "so i kept", "so i made", "so i wrote", "so i put", "so i took", "was settled",
    "is settled", "is answered", "nothing is", "nothing more", "not from you", "heard from you",
    "came from you", "got from you", "as i'd like", "instead", "got from",
    "usually", "normally", "normalerweise", "d'habitude", "normalmente", "di solito", "обычно", "普段", "通常",
    "보통",
    "non serve altro", "niente .. da parte", "nulla .. da parte", "rien .. de votre part", "rien .. de ta part",
    "nada .. de tu parte", "nada .. de su parte", "nada .. da sua parte", "nichts .. von dir",
    "nichts .. von ihnen", "ничего .. от вас", "ничего .. с вашей", "niets .. van je", "niets .. van jou",
    "nie potrzebuję", "ihtiyacım yok",
];

/// Past tenses that "before I" may govern.
pub const PAST_VERBS: &[&str] = &[
    "*ed", "found", "was", "had", "got", "knew", "saw", "went", "did", "made", "ran", "wrote", "came", "left",
    "took", "began", "could",
];

/// The agent speaks of itself.
pub const FIRST_PERSON: &[&str] = &[
    "i", "i'll", "i've", "i'm", "i'd", "we", "we'll", "let me", "let's",
];

/// An order to the reader that gives the agent something.
pub const ORDERS: &[&str] = &[
    // English
    "^tell me", "^let me know", "^send me", "^give me", "^show me", "^get me", "^add me", "^grant me",
    "^point me", "^ping me", "^message me", "^hand me", "^drop me", "^let me have", "^forward me", "^walk me",
    "back to me", "^say so", "^say the word", "^say □", "^reply □", "^answer □", "^say yes", "^say go",
    "^type yes", "type .. to confirm", "type .. to continue", "type .. to proceed", "reply .. to confirm",
    "enter .. to confirm", "^write □ when", "^write □ to", "^write □ and", "^write □ once", "^reply with",
    "^answer with", "^respond with", "^confirm it", "^confirm and", "^confirm to", "^report back",
    // German
    "^sag mir", "^sagen sie mir", "^gib mir", "^geben sie mir", "^schick mir", "^schicken sie mir", "^nenn mir",
    "^teile mir", "^teil mir", "gib .. bescheid", "sag .. bescheid", "^sag bescheid", "^lass mich wissen",
    "^zeig mir", "^bestätige", "^bestätigen sie",
    // French
    "merci de", "merci d'*", "^confirmez", "^confirme que", "veuillez", "^dites-moi", "^dis-moi", "^donnez-moi",
    "^donne-moi", "^envoyez-moi", "^envoie-moi", "^indiquez-moi", "^indique-moi", "^précisez-moi",
    "^prévenez-moi", "^préviens-moi", "^faites-moi savoir", "^fais-moi savoir", "^tenez-moi",
    // Spanish
    "^confirma que", "^dime", "^dígame", "^dame", "^deme", "^envíame", "^envíeme", "^mándame", "^pásame",
    "^páseme", "^confírmame", "^confírmeme", "^avísame", "^avíseme", "^indícame", "^indíqueme",
    "^házmelo saber", "^hazme saber", "^cuéntame", "^aclárame", "^muéstrame",
    // Portuguese
    "^me avise", "^avise-me", "^me avisa", "^me diga", "^diga-me", "^me diz", "^me envie", "^envie-me",
    "^me manda", "^me mande", "^me passe", "^me passa", "^me informe", "^me conte", "^me dê", "^me mostre",
    "^me confirme",
    // Italian
    "^conferma che", "^dimmi", "^mi dica", "^fammi sapere", "^mi faccia sapere", "^inviami", "^mandami",
    "^confermami", "^avvisami", "^dammi", "^mostrami",
    // Russian
    "^подтвердите", "^подтверди", "^скажите", "^скажи", "^напишите", "^напиши", "^пришлите", "^пришли",
    "^сообщите", "^сообщи", "^дайте знать", "^дай знать", "^уточните", "^уточни", "^дайте мне", "^покажите",
    // Dutch
    "^bevestig", "^laat me weten", "^laat het me weten", "^laat het weten", "^laat weten", "^laat maar weten",
    "^geef me", "^geef mij", "^stuur me", "^stuur mij", "^zeg me", "^zeg het", "^vertel me",
    // Japanese
    "教えてください", "教えて下さい", "お知らせください", "ご連絡ください", "ご指示ください", "ご指示をお", "ご確認をお", "お選びください", "ご提供ください", "お送りください",
    "お聞かせください", "お教えください", "送ってください", "をお願いします", "をお願いいたします", "いただけますか",
    // Chinese
    "请提供", "请确认", "请告诉", "请告知", "请回复", "请指定", "请说明", "请授", "请批准", "请决定", "请贴", "请上传", "请给", "请明确", "请补充", "告诉我",
    "发给我", "烦请",
    // Korean
    "알려 주세요", "알려주세요", "알려 주십시오", "말씀해 주세요", "보내 주세요", "보내주세요", "확인해 주세요", "선택해 주세요", "주시겠", "부탁드립니다", "부탁합니다",
    // Hindi
    "बताइए", "बताएँ", "बताएं", "बता दें", "भेजें", "भेज दें", "भेजिए", "पुष्टि करें", "चुनिए",
    "^correct me .. before", "^name the one", "^name one", "^pick one", "^choose one", "^select one",
    "^pick between", "^choose between", "^enlighten me", "^loop me", "^paste it here", "^paste it",
    "^paste them", "^you pick", "^you choose", "^you decide", "^just paste", "^just send", "^just confirm",
    "बता दीजिए", "भेज दीजिए", "दे दीजिए", "बतला",
    // What a command printed, or a code that was sent, comes back to the agent.
    "^paste .. here", "^paste what", "^paste the output", "^paste the result*", "^füge .. hier ein",
    "^kopiere .. hierher", "^collez .. ici", "^colle .. ici", "^pega .. aquí", "^pégame", "^cole .. aqui",
    "^incolla .. qui", "^incollami", "^вставьте .. сюда", "^скопируйте .. сюда", "^plak .. hier",
    "貼り付けてください", "贴给我", "贴到这里", "붙여넣어 주", "यहाँ पेस्ट",
    // Polish
    "daj znać", "daj mi znać", "dajcie znać", "^podaj", "^prześlij", "^wklej", "^powiedz", "^potwierdź",
    "^napisz mi", "^wyślij mi", "proszę o",
    // Turkish
    "haber ver", "haber verin", "bana bildir*", "bana söyle*", "bana gönder*", "^onayla", "^onaylayın", "bana ilet*",
];

/// What opens so tells what the agent does, and "and report back" is the end of it.
pub const OWN_REPORTS: &[&str] = &[
    "i'll .. and report", "i will .. and report", "i'm going to .. and report", "let me .. and report",
    "i'm .. and will report",
];

/// A promise that depends on the reader: "Do that and I'll …", "once you've …, I'll".
pub const PROMISES: &[&str] = &[
    "once you .. i'll", "once you've .. i'll", "once you .. i will", "when you .. i'll",
    "as soon as you .. i'll", "after you .. i'll", "once you've .. i will", "as soon as you've .. i'll",
    "when you've .. i'll", "when you're .. i'll", "once you're .. i'll", "once that's .. i'll",
    "when that's .. i'll", "i'll .. once you", "i'll .. once you've", "i'll .. when you",
    "i'll .. as soon as you", "i'll .. after you", "i will .. once you", "i will .. as soon as you",
    "i can .. once you", "i can .. as soon as you", "i can .. after you", "once you .. i can",
    "i'll .. once i have", "once i have .. i'll", "once i have .. i can", "once .. , i can",
    "as soon as .. , i can", "i'll .. once that's", "with that i can", "with those i can", "with that i'll",
    "if you agree", "if you approve", "if you're ok", "if you're okay", "if you're happy", "if that's ok",
    "if that's okay", "if that's fine", "if it's fine", "if that works", "if this looks", "if it looks",
    "if that looks", "if you confirm", "if you give", "if you can .. i'll", "if you send", "with your ok",
    "with your go-ahead", "with your approval", "your go-ahead", "the go-ahead", "green light",
    "subject to your", "wenn du .. ich", "wenn sie .. ich", "sobald .. ich", "sobald du .. ich",
    "sobald sie .. ich", "ich .. sobald du", "ich .. sobald sie", "sobald ich .. habe", "dann kann ich",
    "dann mache ich", "wenn du einverstanden", "wenn sie einverstanden", "wenn das passt", "wenn das für dich",
    "grünes licht", "dein okay", "dein ok", "deine freigabe", "ihre freigabe", "auf dein", "dann starte ich",
    "dann lege ich", "dann setze ich", "dann fahre ich", "mache ich weiter", "dès que vous .. je",
    "dès que tu .. je", "je .. dès que vous", "je .. dès que tu", "dès que j'aurai", "quand vous .. je",
    "quand tu .. je", "une fois que vous .. je", "une fois que tu .. je", "pour que je",
    "si vous êtes d'accord", "si tu es d'accord", "si cela vous convient", "si ça te va", "et je continue",
    "et je lance", "feu vert", "votre accord", "ton accord", "votre confirmation", "ta confirmation",
    "votre validation", "je pourrai", "afin que je", "et je reprends", "et je m'en occupe",
    "je m'en occupe dès", "cuando me hayas", "cuando .. sigo", "cuando .. continúo", "en cuanto me",
    "en cuanto lo", "en cuanto tenga", "en cuanto esté", "cuando lo tengas", "y sigo", "y continúo",
    "y lo hago", "para que pueda", "si estás de acuerdo", "si está de acuerdo", "si te parece", "si le parece",
    "tu visto bueno", "su visto bueno", "tu confirmación", "su confirmación", "luz verde", "una vez que me",
    "una vez que lo", "una vez que tenga", "y empiezo", "y me pongo", "quando .. continuo",
    "quando .. eu continuo", "assim que você", "assim que tiver", "assim que eu tiver", "para que eu",
    "e eu continuo", "e eu sigo", "se você concordar", "se concordar", "se estiver de acordo",
    "sua confirmação", "sua aprovação", "sinal verde", "e continuo", "depois disso eu", "e eu faço",
    "appena hai", "appena avrai", "appena puoi", "appena mi", "quando hai", "così posso", "se sei d'accordo",
    "se per te va bene", "se va bene", "e procedo", "tua conferma", "tuo ok", "via libera", "non appena",
    "как только вы", "как только ты", "как только получу", "если согласны", "если согласен",
    "если вас устраивает", "и я продолжу", "и я начну", "чтобы я мог", "после этого я", "после вашего",
    "когда сделаете", "zodra je .. ik", "zodra u .. ik", "ik .. zodra je", "ik .. zodra u", "zodra ik .. heb",
    "als je akkoord", "als dat goed is", "zodat ik", "dan ga ik", "en ik ga", "dan kan ik", "als het klopt",
    "いただければ", "いただいたら", "頂ければ", "もらえれば", "いただけたら", "いただけましたら", "いただき次第", "确认后", "之后我就", "您 .. 后我", "你 .. 后我",
    "后我就", "后我再", "我再继续", "我就继续", "同意的话", "没问题的话", "如果同意", "如果没问题", "后告诉我", "以便我", "我就开始", "我马上", "后即可继续",
    "주시면", "되면 알려", "후 알려", "뒤 알려", "괜찮으시면", "동의하시면", "मिलते ही", "देने के बाद", "बाद मैं", "तो मैं आगे",
    "ताकि मैं", "please .. i'll", "please .. i will", "bitte .. ich", "s'il vous plaît .. je",
    "por favor .. sigo", "por favor .. continúo",
    "i'll .. whichever", "i'll .. whatever you", "if .. look right", "if .. looks right", "if .. look good",
    "if .. looks good", "if .. okay with you", "if .. ok with you", "if .. fine with you", "to you , i'll",
    "unless you object", "unless you say", "as soon as i have your", "as soon as i hear",
    "^once .. i can", "^once .. i could", "^sobald .. kann ich", "^dès que .. je peux", "^en cuanto .. puedo",
    "^assim que .. posso", "^appena .. posso", "^как только .. смогу", "^zodra .. kan ik",
    "if you can .. i can", "if you .. me .. i can", "once i know", "when i know", "as soon as i know",
    "once you .. me", "sobald ich weiß", "wenn ich weiß", "dès que je sais", "dès que je saurai",
    "quand je saurai", "cuando sepa", "en cuanto sepa", "quando souber", "assim que souber", "quando saprò",
    "appena so", "когда узнаю", "как только узнаю", "zodra ik weet",
    "^después puedo", "^luego puedo", "^entonces puedo", "^con eso puedo", "^ensuite je peux", "^depois posso",
    "^com isso posso", "^poi posso", "^dopo posso", "^после этого смогу", "^тогда смогу", "^daarna kan ik",
    "^wtedy *ę", "wtedy będę mógł", "^ondan sonra *bilirim", "sonra devam ede*",
];

/// Courtesies at the end of finished work. What they mention is not needed.
pub const OFFERS: &[&str] = &[
    "let me know if", "let me know should", "let me know whether you'd like", "if you'd like",
    "if you would like", "if you like", "if you want", "if you wish", "if you need", "if you ever",
    "if you have any", "if you have questions", "if you run into", "if you notice", "if you see", "if you spot",
    "if you find", "if you decide", "if you change your mind", "if you prefer", "if you'd prefer",
    "if you'd rather", "if you would rather", "say the word if", "say so if", "if it's useful",
    "if that's useful", "if that helps", "if useful", "if needed", "if anything", "if something", "if desired",
    "should you need", "should you want", "feel free", "happy to", "glad to", "don't hesitate", "anything else",
    "just ask", "just say", "on request", "tell me if you'd like", "tell me if you want", "just let me know",
    "any time", "anytime", "whenever you like", "whenever you're ready", "happy coding", "at your disposal",
    "sag bescheid , wenn", "sag bescheid , falls", "sag mir bescheid , wenn du", "sag einfach bescheid",
    "gib bescheid , wenn", "sag mir , wenn du", "melde dich", "melden sie sich", "wenn du magst",
    "wenn du möchtest", "wenn du willst", "wenn sie möchten", "wenn sie wünschen", "falls du", "falls sie",
    "falls noch", "bei bedarf", "auf wunsch", "bei fragen", "gerne auch", "wenn du noch", "wenn noch",
    "wenn sie noch", "lass es mich wissen", "lass mich wissen , wenn", "n'hésitez pas", "n'hésite pas",
    "si vous voulez", "si tu veux", "si vous souhaitez", "si tu souhaites", "si vous le souhaitez",
    "si vous avez", "si tu as", "si besoin", "au besoin", "si nécessaire", "dites-moi si vous", "dis-moi si tu",
    "je reste à votre", "je reste disponible", "faites-moi savoir si", "dites-le-moi", "si quieres",
    "si lo deseas", "si lo desea", "si deseas", "si desea", "si necesitas", "si necesita", "si hace falta",
    "si te interesa", "avísame si", "avíseme si", "no dudes", "no dude", "dime si", "dígame si",
    "házmelo saber si", "hazme saber si", "cualquier duda", "cualquier cosa", "quedo a tu disposición",
    "se quiser", "se você quiser", "se precisar", "se você precisar", "caso queira", "caso precise",
    "é só avisar", "é só falar", "é só pedir", "é só me", "me avise se", "me avise caso", "avise se",
    "fique à vontade", "qualquer dúvida", "qualquer coisa", "se desejar", "se necessário", "se houver",
    "à disposição", "se vuoi", "se desideri", "se ti serve", "se serve", "se hai bisogno", "fammi sapere se",
    "fammi sapere qualora", "dimmi se vuoi", "non esitare", "se necessario", "se preferisci", "avvisami se",
    "a disposizione", "se hai domande", "se avessi", "если хотите", "если хочешь", "если что", "если что-то",
    "если нужно", "если потребуется", "если понадобится", "если будут", "если возникнут", "при необходимости",
    "обращайтесь", "обращайся", "дайте знать , если", "дай знать , если", "если захотите", "по желанию",
    "могу также", "als je wilt", "als je nog", "als u nog", "als u wilt", "indien nodig", "indien gewenst",
    "laat maar weten als", "laat het weten als", "laat me weten als je", "laat het me weten als", "mocht je",
    "mocht u", "desgewenst", "あれば", "ありましたら", "ございましたら", "お気軽に", "よろしければ", "必要なら", "必要であれば", "必要でしたら", "ご希望",
    "いつでも", "遠慮なく", "如果还有", "如有", "如需", "随时", "如果需要", "若需要", "若有", "有需要", "需要的话", "如果您需要", "如果你需要", "如果您想",
    "如果你想", "如果您希望", "如果你希望", "有其他", "有任何", "有什么", "있으면", "있으시면", "필요하시면", "필요하면", "원하시면", "원하면", "언제든", "언제든지",
    "궁금한", "अगर आप चाहें", "अगर चाहें", "और कुछ", "ज़रूरत हो", "जरूरत हो", "चाहें तो", "यदि आप चाहें", "कोई और",
    "when you get a chance", "when you have time", "when you have a moment", "at your leisure", "no rush",
    "whenever you have",
    "jeśli chcesz", "jeśli będziesz", "jeśli potrzebujesz", "jeśli coś", "jeśli masz", "w razie potrzeby",
    "w razie pytań", "gdyby coś", "istersen", "isterseniz", "ihtiyacın olursa", "ihtiyacınız olursa",
    "gerekirse", "sorun olursa", "sorunuz olursa", "dilersen", "dilerseniz",
];

/// Said inside a courtesy, these make it a real request.
pub const OFFER_IS_REQUEST: &[&str] = &[
    "before i", "if you agree", "if not", "^confirm", "confirm it", "go ahead", "proceed", "that works",
    "approve", "i should", "i can start", "otherwise i", "so i can", "bestätige", "confirmez", "confirma",
    "confirme", "bevor ich", "avant que je", "antes de que", "antes que eu", "прежде чем", "voordat ik",
    "if that's ok", "ok to", "i may", "i'm allowed",
    "before .. anything else",
];

/// Stems of a question that proposes more work.
pub const PROPOSALS: &[&str] = &[
    "want me to", "do you want me to", "would you like", "like me to", "should i", "shall i", "need me to",
    "can i", "could i", "may i", "is there", "interested in", "would it help", "would it be useful",
    "do you want", "should we", "shall we", "would you want", "anything", "what", "how about", "what about",
    "soll ich", "sollen wir", "möchtest du", "möchten sie", "willst du", "wollen sie", "kann ich",
    "hättest du gern*", "brauchst du", "voulez-vous", "veux-tu", "souhaitez-vous", "souhaites-tu", "puis-je",
    "dois-je", "est-ce que je", "voudriez-vous", "avez-vous besoin", "tu veux", "vous voulez", "quieres",
    "quiere", "te gustaría", "le gustaría", "puedo", "desea", "deseas", "necesitas", "hay", "quer", "quer que",
    "gostaria", "deseja", "posso", "você quer", "precisa", "vuoi", "desideri", "devo", "ti serve", "vuole",
    "хотите", "хочешь", "нужно", "могу", "добавить", "сделать", "wil je", "wilt u", "zal ik", "moet ik",
    "kan ik", "zou je", "ましょうか", "ますか", "でしょうか", "ですか", "需要", "要不要", "是否", "吗", "할까요", "드릴까요", "을까요", "ㄹ까요",
    "있나요", "있으신가요", "있을까요", "क्या",
];

/// A question that opens so asks for a fact or a pick: no courtesy, whatever it adds.
pub const ASKS_WHICH: &[&str] = &[
    "^which", "^where", "^when", "^who", "^whose", "^how many", "^how much", "^how long", "^how often",
    "^how should", "^how do you", "^what name", "^what colo*", "^what is", "^what's the", "^what are",
    "^what kind", "^what format", "^what should .. be", "^what type", "^what size", "^what version",
    "^what port", "^what value", "^welche*", "^wo", "^wohin", "^wer", "^wann", "^wie soll", "^wie sollen",
    "^wie heißt", "^wie viele", "^wie lange", "^quel*", "^où", "^qui", "^combien", "^comment", "^lequel",
    "^laquelle", "^qué nombre", "^qué *", "^cuál*", "^dónde", "^quién*", "^cuándo", "^cuánt*", "^cómo",
    "^qual", "^quais", "^onde", "^quem", "^como", "^que nome", "^quale", "^quali", "^dove", "^chi",
    "^che nome", "^come", "^welk*", "^waar", "^wie", "^hoe", "^как*", "^где", "^куда", "^кто", "^кого",
    "^когда", "^сколько", "どの", "どちら", "どれ", "どこ", "誰", "どうし", "どのよう", "哪", "叫什么", "什么名", "谁", "多少", "怎么",
    "什么时候", "어느", "어떤", "어디", "누구", "무엇", "언제 ", "얼마", "몇 ", "कौन", "कहाँ", "कहां", "किस", "कब ", "कितन",
    "नाम क्या", "क्या नाम",
];

/// Questions in which the reader is offered something, not asked to decide.
pub const SOFT_PROPOSALS: &[&str] = &[
    "want me to", "would you like", "like me to", "interested in", "would it help", "would it be useful",
    "would a .. help", "möchtest du , dass", "möchten sie , dass", "soll ich dir", "voulez-vous que",
    "veux-tu que", "souhaitez-vous que", "quieres que", "te gustaría que", "quer que", "gostaria que",
    "deseja que", "vuoi che", "desideri che", "хотите , чтобы", "wil je dat", "需要我", "要不要我", "드릴까요", "しましょうか",
];

/// "Anything else?" in its many forms: a courtesy whatever else the question says.
pub const ANYTHING_ELSE: &[&str] = &[
    "anything else", "something else", "what else", "what's next", "what next", "sonst noch", "noch etwas",
    "noch was", "autre chose", "d'autre", "algo más", "alguna otra cosa", "mais alguma coisa", "algo mais",
    "qualcos'altro", "что-нибудь ещё", "что-то ещё", "что-нибудь еще", "что ещё", "nog iets", "他に何か",
    "ほかに何か", "他にも何か", "还有其他", "还有什么", "还需要什么", "더 필요한", "다른 필요", "더 도와", "और कुछ",
    "qué más", "was noch", "quoi d'autre", "o que mais", "cos'altro", "wat nog", "how else",
    "serve altro", "vuoi altro", "altro da", "altro che", "还要别的", "别的需要", "需要别的", "别的吗", "别的事",
    "coś jeszcze", "w czymś jeszcze", "başka bir şey", "başka bir konu",
];

/// More than was asked for: turns a proposal into a courtesy.
pub const ADDITIONS: &[&str] = &[
    "also", "as well", "too", "additionally", "anything else", "something else", "else", "at some point",
    "later", "while i'm", "follow-up", "followup", "next", "further", "more", "auch", "noch", "sonst",
    "außerdem", "zusätzlich", "darüber hinaus", "gleich mit", "als nächstes", "weitere*", "aussi", "également",
    "autre", "autre chose", "en plus", "ensuite", "d'autre", "también", "además", "más", "algo más",
    "otra cosa", "otro", "otra", "também", "além disso", "mais", "mais alguma", "algo mais", "outra coisa",
    "outro", "outra", "anche", "inoltre", "altro", "qualcos'altro", "ancora", "также", "ещё", "еще",
    "что-нибудь", "заодно", "тоже", "ook", "nog", "verder", "daarnaast", "他に", "ほかに", "さらに", "ついでに", "併せて",
    "も追加", "另外", "还有", "还需要", "其他", "也", "别的", "顺便", "还要", "还", "더 ", "또 ", "추가로", "다른 ", "함께", "और कुछ", "भी",
];

/// A choice between ways to go on, or the go-ahead itself: never a mere courtesy.
pub const CHOICES: &[&str] = &[
    "or", "instead", "go ahead", "proceed", "continue", "oder", "stattdessen", "fortfahren", "loslegen",
    "weitermachen", "anfangen", "ou", "continuer", "plutôt", "procéder", "continuar", "continúe", "continúo",
    "siga", "proceda", "proceder", "prosseguir", "oppure", "procedere", "continuare", "или", "продолжить",
    "продолжать", "начать", "of moet", "of wil", "of liever", "doorgaan", "それとも", "まま", "進めて", "続け", "还是", "继续",
    "开始", "아니면", "진행", "계속", " या ", "जारी",
];

/// "Or" in Spanish and Italian, which is "the" in Portuguese.
pub const OR_UNLESS_PORTUGUESE: &[&str] = &["o"];

/// Words that give Portuguese away.
pub const PORTUGUESE: &[&str] = &[
    "você", "também", "quer", "que eu", "não", "os", "do", "da", "ao", "um", "uma", "gostaria", "deseja",
    "posso", "devo", "mais", "em",
];

/// Steps that a soft proposal does not make optional.
pub const RISKY: &[&str] = &[
    "start", "begin", "delete", "remove", "drop", "deploy", "overwrite", "force-push", "apply", "wipe", "reset",
    "implement", "make the change", "make that change", "make this change", "make these changes",
];

/// Work came to a halt: then even a soft proposal has to be answered.
pub const OBSTACLES: &[&str] = &[
    "can't", "cannot", "unable", "blocked", "denied", "stopped", "paused", "not sure", "unsure", "unclear",
    "conflict*", "nothing has been changed", "haven't changed", "haven't started", "not started", "don't have",
    "no access", "403", "401", "ambiguous", "won't", "doesn't exist", "no rights", "no permission",
    "couldn't find", "would need", "missing", "not enough", "needs", "only an", "only a", "expired", "rejected",
    "kann nicht", "nicht möglich", "kein zugriff", "keinen zugriff", "keine rechte", "unklar", "nicht sicher",
    "fehlt", "fehlen", "ohne", "verweigert", "ne peux pas", "n'ai pas", "impossible", "refusé*", "manque",
    "no puedo", "no tengo", "imposible", "denegad*", "falta", "não posso", "não consigo", "não tenho", "negad*",
    "non posso", "non ho", "negat*", "не могу", "нет доступа", "отказано", "geen toegang", "kan niet", "できません",
    "ありません", "权限", "没有", "无法", "不能", "수 없", "없습니다", "없어", "नहीं",
    "i don't know", "can't tell", "no idea", "no way to", "don't see", "didn't find", "can't find",
    "weiß nicht", "je ne sais", "no sé", "não sei", "non so", "не знаю", "weet niet", "分かりません", "わかりません",
    "不知道", "不确定", "모르겠", "पता नहीं",
    "isn't reachable", "not reachable", "unreachable", "isn't available", "can't reach", "refuses",
    "kan ik .. niet", "kann ich .. nicht", "nie mogę", "nie mam", "nie udało", "brak dostępu", "brak uprawnień",
    "erişemiyorum", "bağlanamıyorum", "bağlanamadım", "yapamıyorum", "iznim yok", "erişimim yok",
];

/// Weaker orders. Instructions in a report read like this too, so they count only as the opening
/// of a sentence, and only when work stands still.
pub const REQUESTS: &[&str] = &[
    "choose", "pick", "share", "allow", "unlock", "attach", "paste", "upload", "provide", "decide", "grant",
    "approve", "confirm", "reply", "respond", "answer the", "answer these", "send it", "send them", "send the",
    "plug", "enter your", "free", "export", "connect", "run it", "run this", "wähle", "bestätige",
    "bestätigen sie", "antworte", "entscheide", "gib bescheid", "confirmez", "confirme", "tapez", "collez",
    "ajoutez", "choisissez", "choisis", "répondez", "partagez", "validez", "indiquez*", "précisez",
    "fournissez", "confirma", "elige", "elija", "responde", "responda", "escribe", "pega", "comparte", "envie",
    "informe", "escolha", "digite", "cole", "conferma", "scegli", "rispondi", "scrivi", "incolla", "выберите",
    "укажите", "добавьте", "введите", "ответьте", "отправьте", "предоставьте", "kies", "antwoord",
    "name", "specify", "select", "log in", "sign in", "accept", "raise", "restart", "retry", "add", "put",
    "enable", "turn on", "switch on", "start", "open", "create", "install", "type", "click", "press", "tap",
    "scan", "fill in", "renew", "rotate", "top up", "check", "invite", "set", "copy", "close", "stop", "kill",
    "charge", "plug it", "reset",
];

/// The order serves the reader: "… and the push will work".
pub const FOR_THE_READER: &[&str] = &[
    "will work", "works again", "you'll", "you will", "to see the", "takes effect",
];

/// What only the reader can do. An order when work stands still.
pub const REQUIRED_OF_YOU: &[&str] = &[
    "you'd have to", "you'll have to", "you have to", "you'll need to", "you'd need to", "you need to",
    "musst du", "müssen sie", "müsstest du", "müssten sie", "il faut que vous", "vous devez", "tu dois",
    "tienes que", "tendrías que", "você precisa", "devi", "dovresti", "вам нужно", "придётся вам", "moet je",
];

/// Orders that speak for themselves at the opening of a sentence.
pub const OPENING_ORDERS: &[&str] = &[
    "confirm that", "confirm the", "confirm whether", "confirm if", "confirm which", "confirm you", "confirm i",
    "confirm □", "reply", "type □", "approve", "grant",
];

/// May stand before an order.
pub const BEFORE_ORDERS: &[&str] = &["please", "either", "so", "then", "now", "just", "first", ",", "bitte"];

/// Politeness: a request when the sentence hands something over, or work stands still.
pub const PLEASE: &[&str] = &[
    "please", "bitte", "s'il vous plaît", "s'il te plaît", "por favor", "per favore", "пожалуйста",
    "alsjeblieft", "ください", "て下さい", "请先", "请把", "请将", "请在", "请选择", "请输入", "请您", "请你", "请发", "麻烦您", "麻烦你", "주세요",
    "주십시오", "바랍니다", "하십시오", "कृपया",
    "proszę", "lütfen",
];

/// The reader is to wait, not to act.
pub const WAIT: &[&str] = &[
    "please wait", "please hold", "please stand by", "give me a moment", "give me a minute", "give me a second",
    "give me a sec", "give me a few", "give me a bit", "please don't", "please do not", "please note",
    "gib mir einen moment", "gib mir eine minute", "bitte warte*", "bitte beachte*", "veuillez patienter",
    "veuillez noter", "merci d'avoir", "merci de votre", "merci de patienter", "dame un momento",
    "dame un segundo", "espera un momento", "お待ちください", "お待ち下さい", "请稍", "请耐心", "기다려 주", "प्रतीक्षा",
];

/// Verbs that hand something to the agent: with them "please" is a request by itself.
pub const HANDED_OVER: &[&str] = &[
    "share", "send", "provide", "paste", "confirm", "grant", "approve", "tell", "let me know", "give", "upload",
    "attach", "reply", "respond", "answer", "choose", "pick", "decide", "clarify", "specify", "review",
    "authorize", "authorise", "advise", "point me", "bestätig*", "schick*", "sag*", "gib", "geben sie", "nenn*",
    "teil*", "lad*", "prüf*", "entscheid*", "wähl*", "trag*", "leg*", "antwort*", "bescheid", "erlaub*",
    "starte*", "füg*", "stell*", "confirm*", "envoy*", "donn*", "indiqu*", "précis*", "fourni*", "partag*",
    "choisi*", "dites*", "valid*", "dime", "envía*", "pasa*", "indica*", "comparte", "elige", "avís*", "di",
    "sube", "revisa", "envie", "diga", "informe", "escolha", "avise", "mande", "passe", "compartilhe",
    "responda", "dimmi", "invia*", "manda*", "conferma*", "scegli", "carica*", "fammi", "подтверд*", "пришл*",
    "сообщ*", "укаж*", "уточн*", "напиш*", "скаж*", "выбер*", "добавьте", "предостав*", "отправ*", "stuur",
    "bevestig", "geef", "laat", "kies", "教えて", "送って", "知らせ", "確認して", "選んで", "指定して", "提供", "貼り", "共有", "承認",
    "許可", "お送り", "ご指示", "ご連絡", "お選び", "入力して", "追加して", "設定して", "実行して", "确认", "告诉", "发", "回复", "选择", "알려", "보내",
    "확인해", "선택해", "제공", "공유", "올려", "말씀", "승인", "입력해", "भेज", "बता", "पुष्टि", "दें", "चुन", "चलाकर",
    "allow", "restart", "retry", "返信", "回答", "返事", "答复",
    "podaj", "prześlij", "wklej", "potwierdź", "uruchom", "dodaj", "paylaş*", "gönder*", "onayla*", "ekle*",
    "çalıştır*",
];

/// A question with one of these speaks to the reader.
pub const ADDRESSED: &[&str] = &[
    "you", "your", "yours", "you'd", "you're", "you've", "should i", "shall i", "may i", "can i", "could i",
    "do i", "am i", "should we", "shall we", "do we", "can we", "are we", "ok to", "okay to", "ok if",
    "okay if", "go ahead", "proceed", "continue", "before i", "ok with", "okay with", "is it ok", "sound good",
    "look right", "looks right", "look good", "any objection*", "any preference*", "soll ich", "sollen wir",
    "soll", "darf ich", "du", "dir", "dich", "dein*", "ihnen", "sie", "möchtest", "kannst", "können sie",
    "einverstanden", "vous", "votre", "vos", "tu", "ton", "ta", "te", "dois-je", "puis-je", "pouvez-vous",
    "peux-tu", "préférez-vous", "préfères-tu", "voulez-vous", "faut-il", "d'accord", "quieres", "quiere",
    "prefieres", "prefiere", "puedes", "puede", "tienes", "tus", "me", "sigo", "continúo", "debo", "procedo",
    "de acuerdo", "lo hago", "você", "sua", "seu", "quer", "prefere", "pode", "posso", "devo", "prossigo",
    "continuo", "de acordo", "vuoi", "preferisci", "puoi", "tuo", "tua", "ti", "d'accordo", "вы", "вам", "вас",
    "ваш*", "ты", "тебе", "мне", "можно", "удалить", "продолжить", "продолжать", "оставить", "сделать",
    "хотите", "je", "jij", "jouw", "u", "uw", "zal ik", "moet ik", "mag ik",
    "^should", "^shall", "^agreed", "^objections", "^thoughts", "^preference", "^intended",
    "^intentional", "intentional", "kill it", "skip it", "skip them", "apply it",
];

/// A question opened with one of these asks for a cause, which the writer then gives.
pub const WHY: &[&str] = &[
    "why", "so why", "how come", "and why", "but why", "what if", "warum", "wieso", "weshalb", "und warum",
    "pourquoi", "por qué", "porque", "por que", "perché", "почему", "зачем", "waarom", "なぜ", "どうして", "何故",
    "为什么", "为何", "왜", "क्यों",
];

/// What comes after a question when its answer is awaited.
pub const DEPENDING: &[&str] = &[
    "if so", "if yes", "if not", "if no", "otherwise", "wenn ja", "falls ja", "si oui", "en caso afirmativo",
    "se sim", "se sì", "если да", "zo ja", "如果是", "그렇다면",
    "that determines", "it determines", "davon hängt", "das entscheidet", "cela détermine", "de eso depende",
    "de ello depende", "disso depende", "da questo dipende", "от этого зависит", "daar hangt", "od tego zależy",
    "buna göre",
];

/// After a question: a remark on it, not its answer.
pub const REMARKS: &[&str] = &[
    "i can", "i could", "i'd rather", "i lean", "i'm leaning", "i have no", "i don't", "i couldn't",
    "i can't", "i've written", "i've prepared", "i've stubbed", "i haven't", "i suggest", "i would", "i'd go",
    "i need", "i'd need", "i'm asking", "my", "it's hard", "it isn't clear", "it matters", "it affects",
    "it changes", "this affects", "this changes", "this decides", "that decides", "the ticket", "the spec",
    "a rough", "either works", "either way", "no rush", "nothing in", "there's nothing", "there is nothing",
    "the docs don't", "ich kann", "ich würde", "im ticket", "je peux", "je pencherais", "puedo", "posso",
    "io", "я могу", "я бы", "ik kan", "ik zou",
    "i like", "i prefer", "i'd pick", "i'd take", "i'd choose", "i tend", "personally",
];

/// The agent says what it cannot do itself: after a question that is its reason, not its answer.
pub const CANNOT: &[&str] = &[
    "i can't", "i cannot", "i'm not able", "i don't", "i couldn't", "i have no", "kann ich nicht",
    "ich .. kann", "ich .. nicht", "je ne", "je n'*", "no puedo", "no tengo", "no sé", "não consigo",
    "não posso", "não tenho", "não sei", "non posso", "non ho", "non so", "не могу", "не знаю", "у меня нет",
    "ik kan", "kan ik", "ik heb geen", "ik weet",
];

/// The first word of an answer.
pub const ANSWERS: &[&str] = &[
    "yes", "no", "nope", "yep", "because", "since", "probably", "nearly", "mostly", "partly", "not", "none",
    "nothing", "never", "always", "almost", "sure", "certainly", "apparently", "then", "both", "neither",
    "only", "sort of", "kind of", "it depends", "depends", "simply", "simple", "turns out", "it turns out",
    "short answer", "in short", "correct", "exactly", "unlikely", "maybe", "likely", "absolutely", "of course",
    "actually", "so far", "one", "two", "three", "i think", "i'd say", "i would say", "i checked", "ja", "nein",
    "weil", "denn", "da", "wahrscheinlich", "vermutlich", "nicht", "kaum", "fast", "nur", "oui", "non", "parce",
    "car", "probablement", "pas", "presque", "sí", "porque", "probablemente", "casi", "sim", "não",
    "provavelmente", "quase", "sì", "perché", "probabilmente", "quasi", "да", "нет", "потому", "скорее",
    "почти", "вероятно", "дело в", "nee", "omdat", "waarschijnlijk", "はい", "いいえ", "なぜなら", "それは", "因为", "是的",
    "不是", "不会", "会", "왜냐하면", "네", "아니요", "그것은", "हाँ", "नहीं", "क्योंकि",
    "fairly", "quite", "pretty", "very", "hardly", "rarely", "sometimes", "often", "usually", "in theory",
    "in practice", "in fact", "here", "the answer", "ziemlich", "selten", "meistens",
];

/// The line above a list of questions, when the questions are the agent's own.
pub const QUESTIONS_FOLLOW: &[&str] = &[
    "questions before", "question before", "questions for you", "question* first", "questions i have",
    "i have .. question*", "quick question*", "few question*", "some question*", "open question*",
    "two questions", "three questions", "my questions", "following questions", "need", "need*", "decide",
    "decision*", "clarif*", "to answer", "your answer*", "your input", "before i", "unclear", "confirm",
    "not sure", "i don't know", "still missing", "depends on", "could you", "can you", "help me",
    "i'd like to know", "want to know", "let me know", "tell me", "left for you", "points for you", "to settle",
    "frage*", "bevor ich", "brauche", "klären", "entscheid*", "unklar", "question* avant", "quelques questions",
    "avant de", "avant que", "besoin", "précis*", "décid*", "pregunta*", "antes de", "necesito", "duda*",
    "decid*", "aclarar", "pergunta*", "preciso", "dúvida*", "esclarec*", "domand*", "prima di", "mi serve",
    "chiar*", "вопрос*", "прежде чем", "нужно", "уточнить", "vragen", "voordat ik", "nodig", "質問", "確認", "前に",
    "教えて", "问题", "确认", "之前", "需要", "질문", "확인", "전에", "필요", "प्रश्न", "सवाल", "पहले",
    "open point*", "open item*", "questions", "answer*", "remaining", "offene*", "rückfrage*", "punkte",
    "points ouverts", "reste", "restent", "respuesta*", "puntos", "respost*", "ponto*", "dubb*", "rispost*",
    "punti", "restano", "ответ*", "неясн*", "vraag", "onduidelijk", "open punten", "疑問", "不明", "疑问", "问一下",
    "궁금", "여쭤",
];

/// The questions below are somebody else's, or meant for somebody else.
pub const QUESTIONS_QUOTED: &[&str] = &[
    "you had", "you asked", "it asks", "asks for", "asks", "template", "form", "survey", "guide", "faq",
    "entries", "page", "you listed", "remark*", "comments", "review", "i answered", "answered", "as requested",
    "checklist", "saved", "wrote", "covers", "user asks", "users",
];

/// The agent says what it does next. Only the last sentence counts.
pub const ANNOUNCES: &[&str] = &[
    // English
    "i'll", "i will", "i'm going to", "i am going to", "i'm about to", "let me", "let's", "let us",
    "i'm now *ing", "i am now *ing", "i'm currently *ing", "i am currently *ing", "i'm still *ing", "i need to",
    "i have to", "i still have to", "i still need", "i must", "i want to check", "i want to verify",
    "i want to look", "i should also", "we'll", "we need to", "^time to", "i .. and will", "i've .. and will",
    "^next up", "^next :", "next , i", "next i", "next i'm", "now for", "now on to", "^on to", "one moment",
    "just a moment", "one second", "one sec", "hold on", "hang on", "bear with me", "stand by", "back soon",
    "in progress", "give me a moment", "give me a minute", "give me a second", "give me a sec", "give me a bit",
    "one to go", "two to go", "three to go", "four to go", "five to go", "more to go", "^now to", "^now on",
    // German
    "^ich *e", "ich werde", "werde ich", "ich .. jetzt", "jetzt .. ich", "ich .. nun", "nun .. ich",
    "als nächstes", "als nächster schritt", "ich .. zuerst", "zuerst .. ich", "zunächst .. ich",
    "ich .. gleich", "danach .. ich", "anschließend .. ich", "ich .. anschließend", "dann .. ich",
    "ich .. dann", "ich schaue", "ich prüfe", "ich starte", "ich beginne", "ich fange", "ich mache .. weiter",
    "weiter mit", "weiter geht", "weiter geht's", "ich muss .. noch", "einen moment", "^moment", "läuft noch",
    "schauen wir", "sehen wir", "ich führe", "ich kümmere", "ich sehe mir", "ich setze", "ich lese",
    "ich suche",
    // French
    "^je", "j'*e", "je vais", "nous allons", "je m'occupe", "je passe", "je lance", "je vérifie", "je continue",
    "je commence", "je regarde", "je corrige", "je reprends", "je poursuis", "je mets", "j'exécute",
    "j'ajoute maintenant", "je procède", "je relance", "je teste", "je dois encore", "il me reste", "regardons",
    "voyons", "passons", "vérifions", "commençons", "en cours", "un instant", "un moment", "prochaine étape",
    "maintenant .. je", "ensuite .. je", "je .. maintenant", "puis je",
    // Spanish
    "^reviso", "^compruebo", "^actualizo", "^corrijo", "^ejecuto",
    "^pruebo", "^vuelvo", "^intento", "^lanzo", "^arreglo", "^añado", "^busco", "^miro", "^verifico",
    "^analizo", "^sigo", "^continúo", "ahora lo", "ahora la", "todavía .. *ando", "aún .. *ando", "voy a",
    "vamos a", "procedo", "paso a", "sigo con", "continúo con", "a continuación", "empiezo", "comienzo",
    "estoy *ando", "estoy *iendo", "ahora reviso", "ahora ejecuto", "ahora toca", "déjame", "déjeme", "veamos",
    "un momento", "siguiente paso", "ahora mismo", "ahora actualizo", "ahora corrijo", "luego *é", "en curso",
    "me pongo", "queda por", "aún falta",
    // Portuguese
    "^passo", "^atualizo", "^volto", "^testo", "^rodo", "^executo", "^ajusto", "^adiciono", "^tento",
    "^procuro", "ainda .. *ando", "ainda .. *endo", "vou", "vamos", "agora .. vou", "estou *ando",
    "estou *endo", "estou *indo", "prossigo", "começo", "continuo com", "seguindo para", "passo para",
    "deixe-me", "um momento", "próximo passo", "a seguir", "em andamento", "falta ainda", "irei",
    // Italian
    "provo", "riprovo", "lancio", "correggo", "aggiungo", "^cerco", "torno con", "sistemo", "analizzo",
    "vado a", "sto *ando", "sto *endo", "passo a", "passo al", "comincio", "inizio", "eseguo", "controllo",
    "verifico", "aggiorno", "proseguo", "continuo con", "vediamo", "un attimo", "prossimo passo", "ora *o",
    "adesso *o", "poi *o", "in corso",
    // Russian
    "исправлю", "проверю", "запущу", "обновлю", "добавлю", "посмотрю", "попробую", "пробую", "вернусь",
    "напишу", "перепишу", "разберусь", "смотрю", "ищу", "пишу", "приступаю", "перехожу", "продолжаю", "начинаю",
    "начну", "*яю", "*аю", "*ирую", "сейчас *у", "сейчас *ю", "теперь *у", "теперь *ю", "далее *у", "далее *ю",
    "затем *у", "затем *ю", "потом *у", "потом *ю", "сначала *у", "сначала *ю", "займусь", "минуту", "секунду",
    "следующий шаг", "давайте посмотрим", "посмотрим", "буду",
    // Dutch
    "ik probeer", "ik pas", "ik werk", "ik zoek", "ik draai", "ik lees", "ik test", "ik ga", "ik zal",
    "ik .. nu", "nu .. ik", "ik begin", "ik controleer", "vervolgens .. ik", "daarna .. ik", "eerst .. ik",
    "ik .. eerst", "laten we", "even kijken", "een moment", "volgende stap", "ik kijk", "ik voer", "bezig met",
    "laat me",
    // Japanese
    "ていきます", "実行しています", "調査しています", "調べています", "分析しています", "作業しています", "進めています", "試します", "直します", "次に .. ます",
    "次は .. ます", "これから .. ます", "今から .. ます", "続いて .. ます", "続けて .. ます", "まず .. ます", "それでは .. ます", "では .. ます",
    "引き続き .. ます", "早速 .. ます", "先に .. ます", "していきます", "してみます", "見てみます", "てみます", "確認します", "実行します", "修正します",
    "更新します", "進めます", "開始します", "調べます", "調査します", "始めます", "行います", "取りかかります", "移ります", "しばらくお待ち", "少々お待ち", "お待ちください",
    "中です", "実行中", "確認中",
    // Chinese
    "^继续", "我再", "我要", "我开始", "我 .. 一下", "再试", "接下来", "下一步", "我先", "先看", "然后我", "我正在", "^正在", "我来", "让我", "马上",
    "稍候", "稍等", "接着", "继续处理", "我将", "我会", "现在我", "现在开始", "现在来", "我这就", "我去", "下面我", "下面修改", "下面检查", "下面更新",
    "下面运行", "下面开始", "下面来", "现在修改", "现在检查", "现在更新", "现在运行", "随后", "准备开始", "开始修改", "我继续", "待会",
    // Korean
    "게요", "겠어요", "실행하고 있", "확인하고 있", "분석하고 있", "진행하고 있", "수정하고 있", "살펴보고 있", "찾고 있", "작성하고 있", "설치하고 있",
    "처리하고 있", "이제 .. 합니다", "먼저 .. 합니다", "겠습니다", "할게요", "볼게요", "중입니다", "하는 중", "진행합니다", "시작합니다", "확인합니다", "잠시만",
    "기다려 주세요", "다음으로", "할 예정", "중이에요",
    // Hindi
    "अभी .. रहे हैं", "अब .. हूँ", "अब .. हूं", "करने जा", "रहा हूँ", "रही हूँ", "रहा हूं", "रही हूं", "करूँगा",
    "करूंगा", "करूँगी", "करूंगी", "करता हूँ", "करता हूं", "करती हूँ", "देखता हूँ", "देखते हैं", "अब मैं",
    "जा रहा", "एक मिनट",
    "^on it", "^right away", "^up next", "i'm on the last", "i'm on it", "^will do", "hold tight",
    "sit tight", "leave it with me", "back in a", "i'm off to", "^off to", "^coming up", "let's go",
    "^here goes", "^here we go", "^not there yet", "^not done yet", "^still going", "^almost there",
    "i'm almost", "bin dran", "bin gleich", "wird gemacht", "melde mich", "ich berichte", "berichte ich",
    "^schaue mir", "^sehe mir", "^mache weiter", "^behebe", "^korrigiere", "laufen noch",
    "laufen gerade", "läuft gerade", "prüfe ich", "schaue ich", "mache ich", "baue ich", "ändere ich",
    "teste ich", "gleich weiter", "je vous donne", "je vous tiens", "je te tiens", "je reviens", "je te dis",
    "je vous dis", "j'attends", "j'y vais", "je m'y mets", "je m'en charge", "encore en cours", "laissez-moi",
    "laisse-moi", "allons-y", "c'est parti", "au tour", "te aviso", "le aviso", "te cuento", "le cuento",
    "te informo", "le informo", "espero a que", "esperaré", "^escribo", "^instalo", "^preparo", "^investigo",
    "^aplico", "^leo", "^abro", "^despliego", "^compilo", "^migro", "me encargo", "manos a la obra", "^vamos",
    "deixa eu", "deixe eu", "aviso quando", "aviso assim", "trago", "volto com", "^analiso",
    "^escrevo", "^reproduzo", "^leio", "^crio",
    "^começo", "^seguindo", "^passando", "^indo", "^partindo", "mãos à obra", "aspetto che", "attendo che",
    "ti avviso quando", "ti avviso appena", "ti riferisco", "ti aggiorno", "ti faccio sapere quando",
    "fammi guardare", "fammi vedere", "fammi controllare", "fammi verificare", "^leggo",
    "^scrivo", "^riproduco", "^modifico", "^installo", "^applico", "^apro", "^guardo",
    "^proseguo", "^procedo", "ci penso", "mi metto", "all'opera", "^*жу", "^*шу", "^*чу", "^*щу", "^*рю",
    "^*лю", "^*ду", "^*усь", "^*юсь", "сообщу", "доложу", "расскажу", "отпишусь", "^ik los", "^ik maak",
    "^ik wacht", "^ik schrijf", "^ik voeg", "^ik herstel", "^ik verander", "^ik verbeter", "^ik start",
    "^ik installeer", "^ik bouw", "^ik haal", "^ik neem", "^ik verwijder", "^ik bekijk", "^ik reproduceer",
    "^ik laat", "^ik meld", "^ik vervolg", "^ik vervang", "^ik fix", "^ik doe", "^door met", "^verder met",
    "^even in", "^even *en", "ben ermee bezig", "kijk ik", "zoek ik", "pas ik", "ga ik", "aan de slag",
    "loopt nog", "lopen nog", "次第お知らせします", "次第ご報告", "次第報告", "報告します", "お知らせします", "ご連絡します", "待って .. ます", "待ちます",
    "取り掛かります", "対応します", "作成します", "追加します", "進みます", "書きます", "読みます", "直していき", "してから .. ます", "探します", "試してみ",
    "変更します", "削除します", "導入します", "見直します", "^先", "^再", "^看看", "^试试", "^查一下", "^看一下", "我等", "后告诉", "再告诉", "会通知",
    "等 .. 完成后", "汇报", "^马上", "^接着", "^然后", "^等待", "^轮到", "다음은", "다음 단계는", "이어서", "계속해서", "계속 진행", "해 보겠",
    "하겠습니다", "넘어갑니다", "살펴봅니다", "수정합니다", "실행합니다", "추가합니다", "ूँगा", "ूंगा", "ूँगी", "ूंगी", "ऊँगा", "ऊंगा",
    "ऊँगी", "ऊंगी", "ता हूँ", "ता हूं", "ती हूँ", "ती हूं", "अब आगे",
    "^noch zwei", "^noch drei", "^noch vier", "^encore deux", "^encore trois", "^plus que",
    "y termino", "y acabo", "e termino", "e ho finito", "e finisco", "и закончу", "te gaan", "만 남았", "就完成",
    "就好了",
    "coming up", "half follows", "rest follows", "part follows", "follows now", "are still running",
    "is still running", "still compiling", "still in progress", "hasn't finished yet", "haven't finished yet",
    "not finished yet", "vuelvo a", "torno a", "volto a", "olho de novo", "ricontrollo", "riguardo",
    "sigue en marcha", "ainda está", "è ancora in corso", "ещё идёт", "ещё идут",
    "and we're there", "and i'm done", "and we're done", "then we're done", "then i'm done", "bleibt noch",
    "fehlt noch", "reste encore",
    "^still .. to go", "^still .. to do", "^ik", "^*су",
    // Polish
    "teraz .. *ę", "teraz .. *am", "następnie .. *ę", "następnie .. *am", "zaraz .. *ę", "zaraz .. *am",
    "najpierw .. *ę", "najpierw .. *am", "potem .. *ę", "potem .. *am", "*uję", "sprawdzam", "uruchamiam",
    "poprawiam", "dodaję", "przechodzę", "zaczynam", "sprawdzę", "uruchomię", "poprawię", "zajmę się",
    "chwileczkę", "następny krok", "w toku",
    // Turkish
    "*ıyorum", "*iyorum", "*uyorum", "*üyorum", "*acağım", "*eceğim", "sıradaki adım", "birazdan",
];

/// What follows depends on something that has not happened.
pub const CONDITIONS: &[&str] = &[
    "if", "and if", "but if", "should", "in case", "wenn", "falls", "si", "se", "если", "als je", "als u",
    "als het", "indien", "もし", "如果", "만약", "अगर",
    "jeśli", "jeżeli", "eğer",
];

/// Promises about manners, not about the work at hand.
pub const KEPT_IN_MIND: &[&str] = &[
    "from now on", "from here on", "going forward", "in future", "in the future", "next time",
    "from this point", "in mind", "i'll remember", "i'll keep", "i'll stick", "i'll avoid", "i'll always",
    "i'll never", "i'll leave", "i'll stop", "i'll note", "let me explain", "let me know",
    "time to first", "time to interactive", "for the rest of", "i'll follow", "ab jetzt", "ab sofort",
    "künftig", "in zukunft", "von nun an", "zukünftig", "beim nächsten mal", "désormais", "dorénavant",
    "à partir de maintenant", "à l'avenir", "la prochaine fois", "de ahora en adelante", "a partir de ahora",
    "en adelante", "en el futuro", "la próxima vez", "daqui em diante", "daqui para frente",
    "a partir de agora", "no futuro", "da próxima vez", "d'ora in poi", "da ora in poi", "in futuro",
    "la prossima volta", "da adesso", "отныне", "впредь", "в дальнейшем", "в будущем", "с этого момента",
    "в следующий раз", "vanaf nu", "voortaan", "in het vervolg", "de volgende keer", "알겠습니다", "모르겠습니다", "今後",
    "これからは", "次回", "以降は", "以后", "今后", "从现在起", "往后", "下次", "앞으로", "이제부터", "다음부터", "आगे से", "अब से", "भविष्य",
    "i'll be here", "i'll be around", "i'll be happy", "i'll be glad", "i'll be careful", "i'll be more",
    "i'll be sure", "i'll be able", "i'll be using",
    "od teraz", "na przyszłość", "w przyszłości", "następnym razem", "bundan sonra", "bundan böyle",
    "gelecekte", "bir dahaki",
];

/// Verbs of opinion and of state: said in the first person, they announce nothing.
pub const OPINIONS: &[&str] = &[
    "ich empfehle", "empfehle ich", "ich würde", "ich denke", "ich glaube", "ich finde", "ich rate",
    "ich vermute", "ich halte", "ich hoffe", "ich bleibe", "ich lasse", "ich könnte", "ich hätte",
    "ich sehe kein*", "ich sehe nicht*", "ich stehe", "ich freue", "ich nehme an", "ich verstehe",
    "ich schlage", "je ne", "je n'*", "je pense", "recommande", "propose", "conseille", "je reste", "suggère",
    "préfère", "j'espère", "je note", "je garde", "je laisse", "je trouve", "je considère", "je doute",
    "j'aime", "j'imagine", "je suppose", "j'estime", "lo mismo", "lo primero", "lo último", "lo único",
    "lo nuevo", "думаю", "считаю", "полагаю", "знаю", "понимаю", "рекомендую", "предлагаю", "советую",
    "je suis", "je peux", "je pourrais", "je sais", "je crois", "je vois", "je préférerais",
    "j'aimerais", "je voulais", "je voudrais", "je comprends", "j'ignore",
    "je vous remercie", "je vous souhaite", "je vous en prie", "je vous laisse", "je te laisse",
    "je t'en prie", "je te souhaite", "je vous rappelle", "je te rappelle",
    "хочу", "благодарю", "ik denk", "ik vind", "ik raad", "ik laat het zo",
    "je hoeft", "je kunt", "je kan", "je moet", "je ziet", "je hebt", "je zult", "je krijgt", "je vindt",
    "je bent", "je .. het", "je .. een", "je .. niet", "je .. niets", "je .. wordt",
    "ik heb", "ik had", "ik ben", "ik was", "ik kon", "ik kan", "ik zou", "ik weet", "ik zie", "ik wil",
    "ik moest", "ik *de", "ik *te", "ik koos", "ik deed", "ik vond", "ik liet", "ik nam", "ik hoop",
    "ik stel", "ik adviseer", "ik geef", "ik begrijp", "heb ik", "was ik",
    "rekomenduję", "sugeruję", "proponuję", "dziękuję", "potrzebuję", "przewiduję", "öneriyorum",
    "düşünüyorum", "sanıyorum", "tahmin ediyorum", "umuyorum", "biliyorum", "bilmiyorum", "istiyorum",
    "bekliyorum", "görüyorum", "inanıyorum",
];

/// German and French put "now", "then" and "I" into the past as well; only what follows "and" is
/// then new.
pub const PAST: &[&str] = &[
    "ich habe", "habe ich", "ich hatte", "konnte ich", "ich konnte", "ich bin", "bin ich",
    "je l'ai", "je les ai", "je vous ai", "je t'ai", "je lui ai", "je leur ai", "je me suis", "je m'en suis",
];
pub const PAST_AND_NOW: &[&str] = &[
    "und *e .. jetzt", "und *e .. nun", "und *e .. als nächstes", "und werde",
    "dann bin ich", "et je", "puis je", "maintenant je",
];

/// A sentence without its subject that opens so says what is next.
pub const SUBJECTLESS: &[&str] = &[
    "will", "going to", "gonna", "about to", "need to", "have to", "want to", "off to", "time to", "time for",
];

/// May stand before an activity: "Now running …".
pub const THEN: &[&str] = &[
    "now", "next", "then", "so", "ok", "okay", "currently", "also", "and", ",", "just", "still", "again",
];

/// A sentence that opens with one of these and has no other verb says what goes on.
pub const GOING_ON: &[&str] = &[
    "running", "rerunning", "re-running", "checking", "rechecking", "reading", "looking", "fixing", "updating",
    "testing", "building", "rebuilding", "compiling", "starting", "continuing", "proceeding", "moving", "going",
    "carrying", "picking", "working", "waiting", "searching", "installing", "adding", "writing", "creating",
    "applying", "converting", "verifying", "investigating", "digging", "trying", "retrying", "pulling",
    "pushing", "deploying", "downloading", "fetching", "generating", "refactoring", "implementing", "removing",
    "cleaning", "switching", "migrating", "finishing", "resuming", "wrapping", "scanning", "launching",
    "kicking", "inspecting", "reviewing", "comparing", "analyzing", "analysing", "collecting", "preparing",
    "restarting", "rebasing", "committing", "opening", "onwards", "onto", "replacing", "porting", "renaming",
    "extracting", "wiring", "tracing", "reproducing", "exploring", "processing", "setting", "turning",
    "tackling", "still *ing",
    "spawning", "importing", "exporting", "polling", "sleeping", "watching", "monitoring", "tracking",
    "bisecting", "profiling", "benchmarking", "measuring", "debugging", "patching", "editing", "drafting",
    "translating", "listing", "loading", "logging", "parsing", "copying", "merging", "splitting", "grepping",
    "querying", "seeding", "dropping", "bumping", "upgrading", "downgrading", "linting", "formatting",
    "sorting", "swapping", "stopping", "connecting", "configuring", "enabling", "disabling", "documenting",
    "reverting", "rolling", "re-checking", "re-reading", "re-testing", "double-checking", "cross-checking",
    "triggering", "dispatching", "delegating", "handing", "syncing", "training", "rendering", "taking",
    "making", "doing", "getting", "heading", "jumping", "diving", "following", "gathering", "mapping",
    "registering", "publishing", "uploading", "regenerating", "rewriting", "reworking", "reorganising",
    "reorganizing", "simplifying", "tidying", "validating", "confirming", "iterating", "crunching", "asking",
    "using", "sending", "tweaking", "adjusting", "hooking", "plugging", "scaffolding", "bootstrapping",
    "stubbing", "mocking", "backing", "restoring", "recreating", "re-creating", "resetting", "cloning",
];

/// Words in "-ing" that are no activity.
pub const NOT_GOING_ON: &[&str] = &[
    "nothing", "everything", "anything", "something", "during", "according", "regarding", "including",
    "excluding", "following", "missing", "pending", "remaining", "outstanding", "depending", "assuming",
    "considering", "concerning", "nothing's", "morning", "evening", "string", "spring", "warning", "heading",
    "timing", "pricing", "billing",
];

/// What stands after the verb of an activity: "attaching the …".
pub const ACTED_ON: &[&str] = &[
    "the", "a", "an", "this", "that", "it", "them", "these", "those", "its", "my", "our", "your", "□", "both",
    "all", "another", "one", "two", "three", "some", "each", "every", "up", "down", "out", "off", "on",
    "onto", "in", "into", "for", "to", "with", "from", "through", "now", "again", "everything", ",",
];

/// Verbs that make such an opening the subject of a sentence: "Running it fixes …".
pub const FINITE: &[&str] = &[
    "is", "are", "was", "were", "will", "would", "can", "could", "fixes", "fixed", "helps", "helped", "takes",
    "took", "makes", "made", "gives", "gave", "shows", "showed", "does", "did", "has", "had", "needs", "should",
    "works", "worked", "fails", "failed", "passes", "pass", "passed", "returns", "cuts", "reduces", "keeps",
    "means", "lets", "reports", "uses", "isn't", "doesn't", "won't", "can't", "causes", "removes", "removed",
    "costs", "saves", "adds", "brings", "solves", "solved", "resolves", "resolved", "breaks", "exits", "prints",
    "succeeds", "succeeded", "remains", "requires", "switches", "sets", "turns", "enables", "allows", "gets",
    "goes", "writes", "leads", "avoids", "prevents", "changes", "becomes", "seems", "looks", "improves",
    "ensures", "creates", "produces",
    "blocks", "deletes", "happens",
    "depends", "matters", "covers", "no longer",
    "now works", "may", "might", "must",
    "went", "came", "ran", "fell", "rose", "grew", "dropped", "got", "became", "kept", "led", "brought",
    "found", "hit",
    "also *s", "now *s", "longer *s", "always *s", "never *s", "then *s", "therefore *s", "still *s",
    "automatically *s",
];

/// The reader is to wait while the agent works.
pub const HOLD_ON: &[&str] = &[
    "please wait", "please hold", "please stand by", "one moment", "just a moment", "one sec", "hold on",
    "hang on", "bear with me", "give me a moment", "give me a minute", "give me a second", "give me a sec",
    "einen moment", "bitte warte*", "un instant", "veuillez patienter", "un momento", "um momento",
    "um instante", "un attimo", "минуту", "секунду", "een moment", "お待ちください", "お待ち下さい", "稍候", "稍等", "请耐心",
    "잠시만", "기다려 주", "एक मिनट", "प्रतीक्षा",
    "hold tight", "sit tight", "back in a moment", "back in a minute",
    "just a sec", "just a second", "just a minute", "a moment please",
];

/// The agent itself as the topic, or none but the order of the work.
pub const OWN_TOPICS: &[&str] = &[
    "次は", "私は", "まずは", "今回は", "残りは", "これからは", "では、", "다음은", "저는", "제가", "먼저", "우선",
];

/// A machine or a program as the topic of a sentence, with what it does.
pub const DESCRIBES: &[&str] = &[
    "ジョブは", "スクリプトは", "ボタンは", "処理は", "関数は", "コマンドは", "サーバーは", "ツールは", "毎晩", "毎日", "毎回", "自動的に", "するたびに",
    "자동으로", "매일", "매번", "스크립트는", "작업은", "서버는", "함수는", "버튼은", "명령은",
    "동작합니다", "작동합니다", "가능합니다", "지원합니다", "의미합니다",
];

/// First-person verbs of opinion or state in the Romance languages, and words that only look like verbs.
pub const NO_STEPS: &[&str] = &[
    "recomiendo", "sugiero", "propongo", "prefiero", "creo", "pienso", "dejo", "adjunto", "entiendo", "veo",
    "tengo", "mantengo", "recomendo", "sugiro", "proponho", "prefiro", "acho", "penso", "deixo", "anexo",
    "entendo", "vejo", "tenho", "mantenho", "consiglio", "suggerisco", "preferisco", "credo", "ritengo",
    "lascio", "allego", "capisco", "vedo", "sono", "todo", "tudo", "solo", "sólo",
    "dopo", "cuando", "quando", "como", "cómo", "luego", "dentro", "contro", "entro", "otro", "altro",
    "outro", "cambio", "paso", "passo", "verso", "presso", "attraverso", "mezzo", "quello", "questo", "esto",
    "isto", "isso", "bajo", "debajo", "segundo", "primero", "primeiro", "primo", "pero", "devo", "debo",
    "espero", "quanto", "cuanto", "durante", "incluso", "mismo", "mesmo", "stesso", "claro", "pronto",
    "listo", "hecho", "nuevo", "novo", "nuovo", "puedo", "posso", "podo", "menos", "meno", "hago notar",
    "resumo", "riepilogo", "resumen",
    "último", "ultimo", "único", "unico", "stato", "spazio", "scopo", "script", "sviluppo", "mínimo",
    "máximo", "mejor", "siguiente", "seguinte", "próximo", "prossimo", "texto", "testo", "proceso",
    "processo", "archivo", "arquivo", "código", "codigo", "servidor", "grupo", "gruppo", "tiempo", "tempo",
    "valor", "campo", "índice", "caso", "modo", "lado", "lato", "punto", "ponto", "número", "numero",
    "ejemplo", "exemplo", "esempio", "tipo", "resto", "error", "formato",
];

/// Articles of the Romance languages.
pub const ARTICLES: &[&str] = &[
    "el", "la", "los", "las", "un", "una", "il", "lo", "i", "gli", "le", "uno", "o", "a", "os", "as", "um",
    "uma",
    "esto", "eso", "todo", "ese", "este", "esta", "questo", "questa", "tutto", "tutti", "tutte", "isso",
    "isto", "tudo", "esse", "essa", "ambos", "ambas", "entrambi", "ogni", "cada", "otra", "otro", "altra",
];

/// Polite verbs that state a fact or a courtesy and announce no step.
pub const STATES_JA: &[&str] = &[
    "おすすめします", "お勧めします", "推奨します", "提案します", "意味します", "失敗します", "存在します", "動作します", "機能します", "発生します", "一致します",
    "成功します", "お願いします", "失礼します", "は", "が", "期待します", "感謝します", "エラーにします", "返します", "依存します",
];

/// In Chinese: the deed is done, is an opinion, or is left undone.
pub const NO_STEPS_ZH: &[&str] = &[
    "了", "已", "过", "没", "不", "建议", "认为", "觉得", "推荐", "倾向", "可以", "能", "希望", "知道", "相信", "明白", "理解", "都",
];

/// Endings of participles in the Romance languages.
pub const PARTICIPLES: &[&str] = &[
    "ado", "ido", "ato", "uto", "ito", "tto", "sto", "cho", "rto",
];

/// Said in the progressive, these are opinions and states, not steps.
pub const STANDING: &[&str] = &[
    "i'm assuming", "i'm leaving", "i'm keeping", "i'm hoping", "i'm wondering", "i'm guessing",
    "i'm missing", "i'm treating", "i'm suggesting", "i'm recommending", "i'm thinking", "i'm leaning",
    "i'm seeing", "i'm getting", "i'm sticking", "i'm proposing", "i'm asking", "i'm closing",
    "i'm looking forward", "i'm standing", "i'm happy", "i'm not *ing",
    "i'm going with",
];

/// Objects that stand before a first-person verb of the Romance languages.
pub const OBJECTS: &[&str] = &[
    "lo", "la", "los", "las", "li", "le", "os", "as", "o", "a",
];

/// Follows an announcement without ending it: "This takes a while."
pub const TAKES_TIME: &[&str] = &[
    "this will", "this should", "this may", "this might", "this takes", "it will", "it should", "it takes",
    "it may", "that should", "that will", "should take", "das dauert", "das kann", "cela peut", "ça peut",
    "esto puede", "isso pode", "это займёт", "это займет",
];

/// Words after which a sentence goes on. One that stops here was cut off.
pub const GOES_ON: &[&str] = &[
    "the", "a", "an", "of", "to", "in", "on", "at", "for", "with", "by", "from", "and", "or", "but", "that",
    "which", "because", "so", "if", "when", "while", "is", "are", "was", "were", "be", "its", "their", "your",
    "our", "into", "than", "as", "whose", "where", "via", "between", "whether", "has", "have", "will", "can",
    "would", "should", "not", "these", "every", "each", "der", "die", "das", "den", "dem", "des", "ein", "eine",
    "einen", "einem", "einer", "und", "oder", "aber", "weil", "dass", "wenn", "mit", "von", "für", "auf", "im",
    "am", "zu", "zum", "zur", "bei", "aus", "nach", "ist", "sind", "wird", "werden", "nicht", "sich", "als",
    "wobei", "le", "la", "les", "un", "une", "du", "de", "et", "ou", "mais", "que", "qui", "dans", "sur",
    "avec", "pour", "par", "en", "au", "aux", "est", "sont", "ce", "cette", "dont", "où", "ne", "se", "parce",
    "el", "los", "las", "una", "unos", "y", "o", "pero", "con", "para", "por", "del", "al", "es", "son", "su",
    "sus", "sin", "sobre", "cuando", "porque", "lo", "os", "um", "uma", "e", "mas", "com", "do", "da", "dos",
    "no", "na", "nos", "nas", "ao", "é", "são", "seu", "sua", "pelo", "pela", "il", "gli", "i", "uno", "ma",
    "che", "di", "della", "dello", "nel", "nella", "sul", "sulla", "per", "tra", "è", "sono", "si", "и", "или",
    "но", "что", "в", "на", "с", "по", "для", "от", "из", "к", "не", "который", "которая", "которые", "если",
    "когда", "потому", "чтобы", "а", "это", "het", "een", "van", "met", "voor", "naar", "bij", "maar", "dat",
    "omdat", "zijn", "wordt", "niet",
];

/// Endings in scripts without spaces after which a sentence goes on.
pub const GOES_ON_SUFFIXES: &[&str] = &[
    "は", "が", "を", "に", "で", "と", "の", "も", "から", "ので", "ため", "て", "的", "和", "在", "因为", "但是", "但", "是", "而",
    "把", "将", "与", "或", "从", "对", "由于", "所以", "은", "는", "을", "를", "에서", "에", "의", "하고", "으로", "로", "와", "과",
    "때문에", "지만", "면", "से", "में", "को", "के", "का", "की", "और", "पर", "कि",
];

/// What an agent does in return for an order: "… and I'll go on".
pub const IN_RETURN: &[&str] = &[
    "and i'll", "and i will", "then i'll", "then i will", "and i can", "then i can", "so i can",
    "so that i can", "i'll .. after that", ", i'll", "or i'll",
];

/// A sentence that opens with one of these is not an order.
pub const SUBJECTS: &[&str] = &[
    "i", "i've", "i'm", "i'll", "i'd", "the", "it", "it's", "its", "this", "that", "that's", "we", "we've",
    "they", "there", "all", "both", "now", "next", "as", "let", "let's", "first", "here", "these", "those",
    "my", "a", "an", "once", "when", "if", "after", "while", "since", "because", "thanks", "ok", "okay", "sure",
    "great", "good", "perfect", "done", "got", "understood", "noted", "no", "yes", "one", "two", "three", "in",
    "on", "at", "for", "with", "by", "from", "so", "then", "also", "step", "□", "tests", "still", "right",
    "alright", "sorry", "hmm", "wait", "interesting", "nice", "excellent", "found", "fixed", "added", "updated",
    "finally", "meanwhile", "afterwards", "but", "and", "not", "everything", "nothing", "some", "most", "looks",
    "before", "to", "until", "later", "instead", "otherwise", "rather", "your", "you", "you're",
];

/// May stand before "now the …".
pub const BEFORE_NEXT: &[&str] = &[
    "so", "ok", "okay", "good", "right", "great", "gut", "bien", "bene", "bem", "alors", "bueno", "allora",
    "prima", "oké", ",",
];

/// "Now the …" opens the next piece of work.
pub const BARE_NEXT: &[&str] = &[
    "now the", "next the", "then the", "now for", "now to", "on to", "jetzt die", "jetzt der", "jetzt das",
    "nun die", "nun der", "nun das", "maintenant le", "maintenant la", "maintenant les", "ahora el", "ahora la",
    "ahora los", "ahora las", "agora o", "agora a", "agora os", "agora as", "ora il", "ora la", "ora i",
    "nu de", "nu het",
];

/// A clause begins after one of these.
pub const JOINTS: &[&str] = &[
    ",", ";", ":", "—", "and", "or", "then", "please", "either", "so", "just", "but", "also", "und", "oder",
    "dann", "bitte", "et", "ou", "puis", "y", "o", "e", "poi", "luego", "depois", "и", "или", "en", "of", "dan",
    "primero", "después", "ahora", "primeiro", "agora", "ora", "adesso", "prima", "maintenant", "ensuite",
    "d'abord", "zuerst", "jetzt", "nun",
    "erst", "zunächst", "сначала", "потом", "теперь", "сейчас", "затем", "поэтому", "eerst", "daarna", "nu",
    "now", "next", "first", "ok", "okay", "oké", "bien", "bene", "bem", "gut", "entonces", "então", "allora",
    "alors", "donc",
];

/// Japanese, Chinese and Korean ask with a particle, and often close with a full stop.
pub const QUESTION_ENDINGS: &[&str] = &["ますか", "ですか", "でしょうか", "ませんか", "ましょうか", "吗", "呢", "까요", "나요", "습니까"];
