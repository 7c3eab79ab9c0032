// The page: what is pressed goes to the conversation, what comes from there is shown.

import { Connection } from "/static/connection.js";
import { Sound } from "/static/sound.js";
import { Timeline } from "/static/timeline.js";
import { Transcript } from "/static/transcript.js";

const $ = (id) => document.getElementById(id);
const PHASES = {
  listening: "listening",
  user: "you have the floor",
  pause: "you have the floor (pause)",
  thinking: "thinking",
  speaking: "Crosstalk has the floor",
};
const STAGES = [
  ["endpoint", "turn over"],
  ["asr", "words"],
  ["first_token", "first token"],
  ["first_clause", "first clause"],
  ["tts", "voice"],
  ["voice_to_voice", "you hear it"],
];

const transcript = new Transcript($("lines"));
const timeline = new Timeline($("timeline"));
let status = { phase: "listening", muted: false, push_to_talk: false, talking: false };
let started = false;

const sound = new Sound((buffer) => connection.sendFrame(buffer, sound.played));
const connection = new Connection({
  open() {
    trouble("");
    sound.restart();
  },
  message(message) {
    handlers[message.type]?.(message);
  },
  sound(buffer) {
    sound.play(buffer);
  },
  lost(text, final) {
    document.body.dataset.phase = "away";
    $("floor-text").textContent = "not connected";
    sound.drop();
    trouble(text, final ? "Take it back here" : "");
  },
});

const handlers = {
  hello({ lines, personas, persona, models, turns, ...rest }) {
    $("models").textContent = models;
    $("persona").replaceChildren(
      ...personas.map(({ name, about }) => {
        const option = new Option(name, name, false, name === persona);
        option.title = about;
        return option;
      }),
    );
    transcript.reset(lines);
    $("lines").scrollTop = $("lines").scrollHeight;
    timeline.reset({ turns, ...rest });
    if (turns.length) handlers.turn(turns.at(-1));
    if (rest.status) showStatus(rest.status);
    document.body.dataset.ready = "yes";
  },
  line(line) {
    transcript.show(line);
    if (line.who === "note") tell(line.text);
  },
  event(event) {
    timeline.event(event);
    if (event.event === "barge_in") tell("You cut in.");
    if (event.event === "user_turn") tell(`You said: ${event.text}`);
    if (event.event === "persona") $("persona").value = event.text;
  },
  turn(turn) {
    timeline.turn(turn);
    showTurn(turn);
  },
  status: (now) => {
    timeline.status(now);
    showStatus(now);
  },
  drop: () => sound.drop(),
  error: ({ text }) => trouble(text),
};

// --- showing ------------------------------------------------------------------------------------------------------

function showStatus(now) {
  status = now;
  document.body.dataset.phase = started ? now.phase : "away";
  const silent = now.muted ? "; you are muted" : now.push_to_talk && !now.talking ? "; hold to talk" : "";
  setText($("floor-text"), started ? PHASES[now.phase] + silent : "not started");
  $("mute").setAttribute("aria-pressed", now.muted);
  $("push").setAttribute("aria-pressed", now.push_to_talk);
  $("hold").hidden = !now.push_to_talk;
  $("hold").classList.toggle("down", now.talking);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function showTurn({ latency, tokens }) {
  const ms = (value) => (value === null ? "–" : `${Math.round(value * 1000)} ms`);
  $("voice-to-voice").textContent = ms(latency.voice_to_voice);
  const longest = Math.max(0.001, ...STAGES.map(([name]) => latency[name] ?? 0));
  $("stages").tBodies[0].replaceChildren(
    ...STAGES.map(([name, label]) => {
      const row = document.createElement("tr");
      row.innerHTML = "<th scope=row></th><td><span class=bar></span></td><td class=n></td>";
      row.cells[0].textContent = label;
      row.querySelector(".bar").style.width = `${(100 * Math.max(0, latency[name] ?? 0)) / longest}%`;
      row.cells[2].textContent = ms(latency[name]);
      return row;
    }),
  );
  $("forwarded").textContent = tokens.forwarded;
  $("reused").textContent = tokens.referenced + tokens.copied;
  $("context").textContent = tokens.context;
}

// For screen readers: what cannot be heard anyway. Answers are spoken aloud already, unless the page only types.
function tell(text) {
  $("spoken").textContent = text;
}

function trouble(text, again = "") {
  const box = $("trouble");
  box.hidden = !text;
  box.textContent = text;
  if (again) {
    const button = document.createElement("button");
    button.textContent = again;
    button.onclick = () => connection.open();
    box.append(button);
  }
}

// --- pressing -----------------------------------------------------------------------------------------------------

async function start(microphone) {
  try {
    await sound.open({ microphone });
  } catch (error) {
    const denied = error.name === "NotAllowedError";
    trouble(
      denied
        ? "The browser gives this page no microphone: allow it in the address bar and start again, or type only."
        : `The sound cannot be opened (${error.message}).`,
    );
    return;
  }
  trouble("");
  started = true;
  sound.restart();
  document.body.dataset.started = "yes";
  $("welcome").hidden = true;
  // Without a voice of their own, people who use a screen reader may want the answers read by it.
  $("lines").setAttribute("aria-live", microphone ? "off" : "polite");
  $(microphone ? "lines" : "text").focus();
}

function hold(down) {
  if (status.push_to_talk && down !== status.talking) {
    if (down && status.phase === "speaking") sound.hush();
    status.talking = down;
    connection.send({ type: "talk", on: down });
    $("hold").classList.toggle("down", down);
  }
}

function mute() {
  sound.mute(!status.muted);
  connection.send({ type: "mute", on: !status.muted });
}

async function copy() {
  try {
    await navigator.clipboard.writeText(transcript.text());
    tell("The transcript is in the clipboard.");
  } catch {
    trouble("The browser does not let this page use the clipboard.");
  }
}

function stop() {
  connection.send({ type: "stop" });
  if (status.phase === "speaking") sound.hush();
}

const push = () => connection.send({ type: "push_to_talk", on: !status.push_to_talk });

$("start").onclick = () => start(true);
$("type-only").onclick = () => start(false);
$("mute").onclick = mute;
$("push").onclick = push;
$("stop").onclick = stop;
$("copy").onclick = copy;
$("persona").onchange = ({ target }) => connection.send({ type: "persona", text: target.value });
$("hold").onpointerdown = (event) => {
  event.target.setPointerCapture(event.pointerId);
  hold(true);
};
$("hold").onpointerup = $("hold").onpointercancel = () => hold(false);
$("say").onsubmit = (event) => {
  event.preventDefault();
  const text = $("text").value.trim();
  if (!text) return;
  if (!started) start(false); // the answer wants a speaker
  connection.send({ type: "say", text });
  $("text").value = "";
};

const KEYS = { m: mute, p: push, c: copy };
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") return stop();
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const elsewhere = event.target.tagName !== "BUTTON" || event.target === $("hold");
  if (event.key === " " && status.push_to_talk && elsewhere) {
    event.preventDefault();
    if (!event.repeat) hold(true);
  } else if (event.key === "/") {
    event.preventDefault();
    $("text").focus();
  } else if (!event.repeat) KEYS[event.key]?.();
});
document.addEventListener("keyup", (event) => event.key === " " && hold(false));
addEventListener("blur", () => hold(false));

// After a reload the browser may still let us use the microphone without being asked again.
async function resume() {
  const permission = await navigator.permissions?.query({ name: "microphone" }).catch(() => null);
  if (permission?.state === "granted" && sessionStorage.getItem("talking") === "yes") await start(true);
}
addEventListener("pagehide", () => sessionStorage.setItem("talking", started ? "yes" : "no"));

connection.open();
resume();
